//! The servers above the conversation: their states, tools, resources, prompts and messages.

use capstan_app::api::{ListedItem, ServerRow, ToolRow};
use capstan_model::ServerName;
use capstan_text::clean::one_line;
use capstan_wire::object;
use ratatui::style::Style;
use ratatui::text::Line;

use super::keys::Key;
use crate::markdown::wrap::{self, Piece};
use crate::news::{Overview, Wish};
use crate::theme::Colours;

/// The longest line of a server.
const MAX_LINE: usize = 400;

/// The open overlay.
#[derive(Default)]
pub(crate) struct Overlay {
    servers: Vec<ServerRow>,
    /// The server under the cursor.
    place: usize,
    /// The page above the list of servers.
    page: Option<Page>,
    /// True once the servers have been listed.
    is_listed: bool,
    /// The text that was printed last, such as the result of a switch.
    message: Option<String>,
}

/// A page about one server.
struct Page {
    server: ServerName,
    title: &'static str,
    content: Content,
    place: usize,
    top: usize,
}

enum Content {
    Waiting,
    Tools(Vec<Tool>),
    Items(Vec<ListedItem>),
    Lines(Vec<String>),
    Failed(String),
}

/// A tool, and what the rules say about it once it was under the cursor.
struct Tool {
    row: ToolRow,
    rule: Option<String>,
}

/// The consequence of a key.
#[derive(Debug)]
pub(crate) enum Step {
    Stay,
    Close,
    Ask(Wish),
}

// === impl Overlay ===

impl Overlay {
    pub(crate) fn hear(&mut self, news: Overview) -> Option<Wish> {
        match news {
            Overview::Servers(rows) => {
                self.servers = rows;
                self.is_listed = true;
                self.place = self.place.min(self.servers.len().saturating_sub(1));
                return None;
            }
            Overview::Tools(server, tools) => {
                let tools = tools.into_iter().map(|row| Tool { row, rule: None }).collect();
                self.fill(&server, Content::Tools(tools));
            }
            Overview::Items(server, items) => self.fill(&server, Content::Items(items)),
            Overview::Lines(server, lines) => self.fill(&server, Content::Lines(lines)),
            Overview::Failed(server, error) => self.fill(&server, Content::Failed(error)),
            Overview::Rule(id, rule) => {
                if let Some(Page { content: Content::Tools(tools), .. }) = &mut self.page {
                    let tool = tools.iter_mut().find(|tool| tool.row.id == id);
                    if let Some(tool) = tool {
                        tool.rule = Some(rule);
                    }
                }
            }
        }
        self.wanted_rule()
    }

    /// Shows a text that was printed.
    pub(crate) fn say(&mut self, text: &str) {
        self.message = Some(one_line(text, MAX_LINE));
    }

    fn fill(&mut self, server: &ServerName, content: Content) {
        if let Some(page) = self.page.as_mut().filter(|page| page.server == *server) {
            page.content = content;
            page.place = 0;
        }
    }

    /// The rule of the tool under the cursor, if it is not known yet.
    fn wanted_rule(&self) -> Option<Wish> {
        let Some(Page { content: Content::Tools(tools), place, .. }) = &self.page else {
            return None;
        };
        let tool = tools.get(*place).filter(|tool| tool.rule.is_none())?;
        Some(Wish::Rule(tool.row.id.clone()))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys mean nothing here")]
    pub(crate) fn key(&mut self, key: Key) -> Step {
        if self.page.is_some() {
            return self.page_key(key);
        }
        let Some(server) = self.servers.get(self.place) else {
            return match key {
                Key::Esc | Key::Interrupt | Key::Char('q') => Step::Close,
                _ => Step::Stay,
            };
        };
        let (name, is_enabled) = (server.name.clone(), server.state.as_str() != "disabled");
        match key {
            Key::Esc | Key::Interrupt | Key::Char('q') => return Step::Close,
            Key::Up => self.place = self.place.saturating_sub(1),
            Key::Down => self.place = (self.place + 1).min(self.servers.len().saturating_sub(1)),
            Key::Enter | Key::Char('t') => return self.open(name, "tools", Wish::Tools),
            Key::Char('o') => return self.open(name, "resources", Wish::Resources),
            Key::Char('p') => return self.open(name, "prompts", Wish::Prompts),
            Key::Char('s') => return self.open(name, "messages (stderr)", Wish::Messages),
            Key::Char('e') => return Step::Ask(Wish::Switch(name, !is_enabled)),
            Key::Char('r') => return Step::Ask(Wish::Refresh(name)),
            Key::Char('l') => return Step::Ask(Wish::Login(name)),
            _ => {}
        }
        Step::Stay
    }

    fn open(
        &mut self,
        server: ServerName,
        title: &'static str,
        wish: fn(ServerName) -> Wish,
    ) -> Step {
        let content = Content::Waiting;
        self.page = Some(Page { server: server.clone(), title, content, place: 0, top: 0 });
        Step::Ask(wish(server))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys mean nothing here")]
    fn page_key(&mut self, key: Key) -> Step {
        let Some(page) = &mut self.page else { return Step::Stay };
        let last = page.content.len().saturating_sub(1);
        match key {
            Key::Esc | Key::Left | Key::Char('q') | Key::Interrupt => self.page = None,
            Key::Up => page.place = page.place.saturating_sub(1),
            Key::Down => page.place = (page.place + 1).min(last),
            Key::PageUp => page.place = page.place.saturating_sub(10),
            Key::PageDown => page.place = (page.place + 10).min(last),
            _ => {}
        }
        self.wanted_rule().map_or(Step::Stay, Step::Ask)
    }

    /// The title, the rows, and the keys.
    pub(crate) fn draw(
        &mut self,
        width: usize,
        height: usize,
        colours: Colours,
    ) -> (String, Vec<Line<'static>>, &'static str) {
        if let Some(page) = &mut self.page {
            let title = format!("{}: {}", one_line(page.server.as_str(), 40), page.title);
            return (title, page.draw(width, height, colours), "↑↓ choose · Esc back");
        }
        let keys =
            "↑↓ · t tools · o resources · p prompts · s stderr · e on/off · r reload · l login";
        let mut lines = Vec::new();
        if self.servers.is_empty() {
            let text =
                if self.is_listed { "no servers are configured" } else { "asking the servers" };
            lines.push(wrap::line(vec![(text.to_owned(), colours.dim())]));
        }
        // The facts of the server under the cursor take the last rows.
        let facts = self.facts(width, colours);
        let room = height.saturating_sub(facts.len() + 1).max(1);
        let first = (self.place + 1).saturating_sub(room);
        for (at, server) in self.servers.iter().enumerate().skip(first).take(room) {
            let style = if at == self.place { Colours::selected() } else { Style::new() };
            lines.push(wrap::line(server_row(server, style, width, colours)));
        }
        lines.push(Line::default());
        lines.extend(facts);
        ("servers".to_owned(), lines, keys)
    }

    fn facts(&self, width: usize, colours: Colours) -> Vec<Line<'static>> {
        let Some(server) = self.servers.get(self.place) else { return Vec::new() };
        let mut pieces = vec![vec![(one_line(&server.target, width), colours.dim())]];
        if let Some(message) = &self.message {
            pieces.extend(wrap::words(&[(message.clone(), colours.warning())], width));
        }
        if let Some(error) = &server.error {
            let error = one_line(error, MAX_LINE);
            let rows = wrap::words(&[(error, colours.error())], width);
            pieces.extend(rows.into_iter().take(4));
        }
        pieces.into_iter().map(wrap::line).collect()
    }
}

fn server_row(server: &ServerRow, style: Style, width: usize, colours: Colours) -> Vec<Piece> {
    let glyph = server.state.glyph().as_str();
    let sign = match glyph {
        "●" => colours.good(),
        "◐" => colours.warning(),
        _ => colours.error(),
    };
    let count = |count: Option<usize>| count.map_or("?".to_owned(), |count| count.to_string());
    let (tools, prompts) = (count(server.tools), count(server.prompts));
    let resources = count(server.resources);
    let tokens = server.tokens.map(|tokens| format!(", ≈{tokens} tokens")).unwrap_or_default();
    let counts = format!("{tools} tools, {resources} res., {prompts} prompts{tokens}");
    let wide = if width > 100 { 32 } else { 14 };
    let name = one_line(server.shown_name(), wide);
    let (transport, state) = (one_line(&server.transport, 7), server.state.as_str());
    let text = format!(" {name:<wide$} {transport:<5} {state:<9} {counts}");
    vec![(glyph.to_owned(), sign), (one_line_kept(&text, width.saturating_sub(1)), style)]
}

/// The beginning of a text that is cleaned already; blanks are kept.
fn one_line_kept(text: &str, width: usize) -> String {
    let rows = wrap::columns(&[(text.to_owned(), Style::new())], width);
    rows.into_iter().next().unwrap_or_default().into_iter().map(|(text, _)| text).collect()
}

// === impl Content ===

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Waiting | Self::Failed(_) => 0,
            Self::Tools(tools) => tools.len(),
            Self::Items(items) => items.len(),
            Self::Lines(lines) => lines.len(),
        }
    }
}

// === impl Page ===

impl Page {
    fn draw(&mut self, width: usize, height: usize, colours: Colours) -> Vec<Line<'static>> {
        let place = self.place;
        let details: Vec<Line<'static>> = match &self.content {
            Content::Waiting => vec![wrap::line(vec![("waiting".to_owned(), colours.dim())])],
            Content::Failed(error) => paragraph(error, width, colours.error()),
            Content::Lines(_) => Vec::new(),
            Content::Items(items) => items.get(place).map_or_else(Vec::new, |item| {
                let about = object::get_string(&item.definition, "description");
                paragraph(&about.unwrap_or_default(), width, colours.dim())
            }),
            Content::Tools(tools) => tools.get(place).map_or_else(Vec::new, |tool| {
                let row = &tool.row;
                let effect = row.effect.as_str();
                let rule = tool.rule.as_deref().unwrap_or("…");
                let facts = format!("{effect} · ≈{} tokens · {rule}", row.tokens);
                let mut lines = paragraph(&facts, width, colours.accent());
                lines.extend(paragraph(&row.description, width, colours.dim()));
                lines.extend(paragraph(row.input_schema.as_str(), width, Style::new()));
                lines
            }),
        };
        let most = (height / 2).max(1);
        let details: Vec<Line<'static>> = details.into_iter().take(most).collect();
        let names: Vec<String> = match &self.content {
            Content::Waiting | Content::Failed(_) => Vec::new(),
            Content::Tools(tools) => tools.iter().map(|t| one_line(&t.row.name, width)).collect(),
            Content::Items(items) => items.iter().map(|i| one_line(&i.name, width)).collect(),
            Content::Lines(lines) => lines.iter().map(|line| one_line(line, MAX_LINE)).collect(),
        };
        let is_log = matches!(self.content, Content::Lines(_));
        let mut lines = Vec::new();
        if names.is_empty() && details.is_empty() {
            lines.push(wrap::line(vec![("none".to_owned(), colours.dim())]));
        }
        let room = height.saturating_sub(details.len() + 1).max(1);
        self.top = self.top.clamp((place + 1).saturating_sub(room), place);
        for (at, name) in names.into_iter().enumerate().skip(self.top).take(room) {
            let style = if at == place && !is_log { Colours::selected() } else { Style::new() };
            lines.push(wrap::line(vec![(format!(" {}", one_line_kept(&name, width - 1)), style)]));
        }
        lines.push(Line::default());
        lines.extend(details);
        lines
    }
}

/// A text that is cleaned and broken into rows.
fn paragraph(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let text = one_line(text, 8_000);
    wrap::words(&[(text, style)], width).into_iter().map(wrap::line).collect()
}

//! Answers the wishes of the overlay, beside the conversation.

use std::sync::Arc;
use std::time::Duration;

use capstan_app::AppError;
use capstan_app::api::{
    Answer, Ask, Event, Interact, ListPrompts, ListResources, ListServers, ListTools, Local,
    Operation as _, Reading, Source,
};
use capstan_hub::Call;
use capstan_hub::catalog::Patience;
use capstan_hub::ports::BoxFuture;
use capstan_model::{Caller, Front, ServerName, Target};
use capstan_text::conversation::{Commands, Output, Printed};

use crate::front::ScreenFront;
use crate::mailbox::Mailbox;
use crate::news::{News, Overview, Wish};

/// How long a list waits for servers that were never seen.
const LIST_WAIT: Patience = Patience::UntilFirstOr(Duration::from_secs(8));

/// The parts that answers need.
pub(crate) struct Answers<'a> {
    pub(crate) local: Arc<Local>,
    pub(crate) front: Arc<ScreenFront>,
    pub(crate) mail: Arc<Mailbox>,
    pub(crate) commands: &'a dyn Commands,
}

// === impl Answers ===

impl Answers<'_> {
    /// Answers a wish; problems are shown where the wish was made.
    pub(crate) async fn answer(self, wish: Wish) {
        let server = match &wish {
            Wish::Tools(server)
            | Wish::Resources(server)
            | Wish::Prompts(server)
            | Wish::Messages(server)
            | Wish::Switch(server, _)
            | Wish::Refresh(server)
            | Wish::Login(server) => Some(server.clone()),
            Wish::Servers | Wish::Nothing | Wish::Rule(_) => None,
        };
        match (self.overview(wish).await, server) {
            (Ok(Some(overview)), _) => self.mail.tell(News::Overview(overview)),
            (Ok(None), _) => {}
            (Err(error), Some(server)) => {
                self.mail.tell(News::Overview(Overview::Failed(server, error.message.clone())));
                self.tell(&error);
            }
            (Err(error), None) => self.tell(&error),
        }
    }

    fn tell(&self, error: &AppError) {
        self.front.print(Printed::Error, &error.message);
        if let Some(hint) = &error.hint {
            self.front.print(Printed::Hint, hint);
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each wish")]
    async fn overview(&self, wish: Wish) -> Result<Option<Overview>, AppError> {
        // Problems were told when the conversation began.
        let front: Arc<dyn Interact> = Arc::new(Quiet);
        let reading = Reading { source: Source::Saved, wait: LIST_WAIT };
        let local = &*self.local;
        Ok(Some(match wish {
            Wish::Nothing => return Ok(None),
            Wish::Servers => {
                Overview::Servers(ListServers { reading }.run(local, &front).await?.rows)
            }
            Wish::Tools(server) => {
                let name = Some(server.to_string());
                let tools = ListTools { name, provider: None, reading };
                Overview::Tools(server, tools.run(local, &front).await?.tools)
            }
            Wish::Resources(server) => {
                let name = Some(server.to_string());
                let mut items = Vec::new();
                for templates in [false, true] {
                    let list = ListResources { server: name.clone(), templates, reading };
                    items.extend(list.run(local, &front).await?.items);
                }
                Overview::Items(server, items)
            }
            Wish::Prompts(server) => {
                let name = Some(server.to_string());
                let prompts = ListPrompts { name, reading };
                Overview::Items(server, prompts.run(local, &front).await?.items)
            }
            Wish::Messages(server) => {
                let lines = local.hub.stderr(&server);
                Overview::Lines(server, lines)
            }
            Wish::Rule(id) => {
                let call = Call::new(Caller::operator(Front::Terminal), Target::tool(&id), None);
                let rule = match local.hub.explain(call).await {
                    Ok(explained) => {
                        let ruling = explained.ruling;
                        format!("{} by {}", ruling.verdict.as_str(), ruling.rule)
                    }
                    Err(error) => error.to_string(),
                };
                Overview::Rule(id, rule)
            }
            Wish::Switch(server, is_on) => {
                let verb = if is_on { "enable" } else { "disable" };
                self.run(&format!("{verb} {server}")).await?;
                let text = "saved; conversations that begin later have it so";
                self.front.print(Printed::Note, text);
                return Ok(None);
            }
            Wish::Refresh(server) => {
                let (name, fresh) = (Some(server.to_string()), fresh());
                ListTools { name, provider: None, reading: fresh }.run(local, &front).await?;
                Overview::Servers(ListServers { reading }.run(local, &front).await?.rows)
            }
            Wish::Login(server) => {
                self.run(&format!("auth {}", ServerName::as_str(&server))).await?;
                return Ok(None);
            }
        }))
    }

    /// Runs `/mcp` with these words.
    async fn run(&self, words: &str) -> Result<(), AppError> {
        let output: Arc<dyn Output> = Arc::<ScreenFront>::clone(&self.front);
        self.commands.run("mcp", words, output).await.map(drop)
    }
}

/// Lists that the servers are asked for.
fn fresh() -> Reading {
    Reading { source: Source::Servers, wait: LIST_WAIT }
}

/// A front that shows nothing and refuses every question.
struct Quiet;

impl Interact for Quiet {
    fn event(&self, _: Event) {}

    fn ask(&self, _: Ask) -> BoxFuture<'_, Answer> {
        Box::pin(std::future::ready(Answer::Nobody))
    }
}

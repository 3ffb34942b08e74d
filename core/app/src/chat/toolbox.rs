//! Offers tools to a model and calls them on the road.
//!
//! At each turn the tools that fit the user's message join the offer ([`TurnSelection`]); the model
//! reaches the others with Capstan's own tools (`own_tools`).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_config::Strategy;
use capstan_hub::catalog::{Gathered, Patience, Provider, ToolView, merged_instructions};
use capstan_hub::ports::{BoxFuture, Listing, ToolCall, ToolOffer};
use capstan_hub::search::{MAX_QUERIES, Search, ToolPool, signature};
use capstan_hub::spills::is_page;
use capstan_hub::{Call, ReadSources};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, Target};
use capstan_wire::{Json, object};

use super::own_tools::{self, OwnCall};
use super::ranking::{MAX_CANDIDATES, ModelRanking, Ranker, purpose};
use crate::api::{Asker, Interact, Local, Missing, Reading, Source};
use crate::selection::{SelectionRules, Turn, TurnSelection};
use crate::{AppError, ErrorKind};

/// How long a turn waits for the lists of servers that were never seen.
const LIST_WAIT: Patience = Patience::UntilFirstOr(Duration::from_secs(8));

/// How long a turn waits for the embeddings of tools that were never searched before.
const EMBED_WAIT: Duration = Duration::from_secs(5);

/// The longest query that is made of a message, in bytes. A longer one only adds noise.
const MAX_QUERY: usize = 2_000;

/// The tools of a conversation.
pub trait Toolbox: Send + Sync {
    /// The tools for the next request, with names and schemas that the provider accepts.
    ///
    /// `asked` are the user's words at the first request of a turn: the tools that fit them join the
    /// offer. It is empty at the other requests, whose offer stays the same.
    fn offer<'a>(&'a self, provider: Provider, asked: &'a [String]) -> BoxFuture<'a, Offer>;

    /// The items by which the conversation has read data that rules about flows depend on.
    fn sources(&self) -> ReadSources;

    /// Runs a call of the model.
    fn call<'a>(
        &'a self,
        provider: Provider,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<ToolAnswer, AppError>>;

    /// Shrinks the offer, because the conversation was shortened.
    fn compacted(&self);
}

/// The tools that a model gets, and what it is told about them.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The tools.
    pub tools: Vec<ToolOffer>,
    /// The instructions of servers, labelled and sorted.
    pub instructions: String,
    /// The number of tools that are not offered; the model can search them.
    pub more: usize,
    /// The servers whose tools are missing.
    pub missing: Missing,
    /// Something that the user should know about the selection of tools.
    pub note: Option<String>,
}

/// The answer of a tool.
#[derive(Clone, Debug)]
pub struct ToolAnswer {
    /// The tool: its server and name, or the name of one of Capstan's own tools.
    pub tool: String,
    /// The result, as the server wrote it.
    pub result: Json,
    /// True if the tool reports an error.
    pub is_error: bool,
}

/// The tools of a hub.
pub struct HubToolbox {
    local: Arc<Local>,
    front: Arc<dyn Interact>,
    rules: SelectionRules,
    ranker: Option<Ranker>,
    state: Mutex<State>,
}

/// The state of one conversation.
#[derive(Default)]
struct State {
    selection: TurnSelection,
    /// The tools of the last request; those of the index stay in memory with them.
    pool: Option<Arc<ToolPool>>,
    /// True if the tools that search were offered: they stay, so that the offer does not change.
    searches: bool,
    /// True if the user knows that the model does not select tools.
    noted: bool,
}

// === impl HubToolbox ===

impl HubToolbox {
    /// The tools of these servers. Questions of the road and of servers go to `front`. A conversation
    /// begins, in which the quota of calls is counted. `ranker` selects tools with the strategy `llm`.
    pub fn new(local: Arc<Local>, front: Arc<dyn Interact>, ranker: Option<Ranker>) -> Self {
        local.begin_conversation();
        let rules = SelectionRules::of(&local.setup.loaded.config);
        let ranker = ranker.filter(|_| rules.strategy == Strategy::Llm);
        Self { local, front, rules, ranker, state: Mutex::default() }
    }

    /// Begins another conversation.
    pub fn begin_again(&self) {
        self.local.begin_conversation();
        self.state().selection = TurnSelection::default();
    }

    /// Continues a conversation that has read data by these items.
    pub fn restore(&self, sources: ReadSources) {
        self.local.session().restore(sources);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn gather(&self, provider: Provider, asked: &[String]) -> Offer {
        let gathered = self.lists(provider).await;
        let hub = &*self.local.hub;
        let visible = hub.visible_tools(&gathered, &caller());
        let available: Vec<ItemId> = visible.iter().map(ToolView::shown_id).collect();
        let (turn, note) = self.select(provider, asked, visible, &available).await;
        let (tools, more) = self.tools(provider, &turn);
        let about = hub.servers().filter_map(|server| {
            let text = hub.about(server)?.instructions.clone()?;
            Some((server, text))
        });
        let about: Vec<_> = about.collect();
        let instructions = merged_instructions(
            &hub.catalog().screens,
            about.iter().map(|(server, text)| (*server, text.as_str())),
        );
        Offer { tools, instructions, more, missing: Missing::of(hub, &gathered), note }
    }

    async fn lists(&self, provider: Provider) -> Gathered {
        let reading = Reading { source: Source::Saved, wait: LIST_WAIT };
        let read = self.local.gather(&*self.front, Listing::Tools, reading).await;
        self.local.hub.name_tools(&read.gathered, provider.alphabet());
        read.gathered
    }

    /// Selects the tools of a request; the note says why the model did not.
    async fn select(
        &self,
        provider: Provider,
        asked: &[String],
        visible: Vec<ToolView>,
        available: &[ItemId],
    ) -> (Turn, Option<String>) {
        let pool = Arc::new(ToolPool::new(&self.local.hub, &*self.local.index, visible));
        self.state().pool = Some(Arc::clone(&pool));
        if asked.is_empty() {
            return (self.state().selection.again(&self.rules, available), None);
        }
        let is_small = self.rules.always_offered(available).len() == available.len();
        let (found, note) =
            if is_small { (Vec::new(), None) } else { self.fitting(provider, asked, &pool).await };
        let found: Vec<ItemId> =
            found.into_iter().filter_map(|at| Some(pool.tools().get(at)?.shown_id())).collect();
        let mut state = self.state();
        let note = note.filter(|_| !state.noted);
        state.noted |= note.is_some();
        (state.selection.turn(&self.rules, available, &found), note)
    }

    /// The positions of the tools that fit a message, best first: chosen by the model, else by search.
    async fn fitting(
        &self,
        provider: Provider,
        asked: &[String],
        pool: &ToolPool,
    ) -> (Vec<usize>, Option<String>) {
        let problem = match &self.ranker {
            None => None,
            Some(Ranker::Unusable(reason)) => Some(reason.clone()),
            Some(Ranker::Model(ranking)) => {
                match self.ranked(ranking, provider, asked, pool).await {
                    Ok(found) => return (found, None),
                    Err(reason) => Some(reason),
                }
            }
        };
        let note = problem.map(|reason| {
            format!(
                "tools are selected by search, because the model does not select them: {reason}"
            )
        });
        let min_similarity = self.min_similarity();
        (self.search(asked, self.rules.top_k, min_similarity, pool).await, note)
    }

    async fn ranked(
        &self,
        ranking: &ModelRanking,
        provider: Provider,
        asked: &[String],
        pool: &ToolPool,
    ) -> Result<Vec<usize>, String> {
        let all: Vec<usize> = if pool.tools().len() > MAX_CANDIDATES {
            self.search(asked, MAX_CANDIDATES, 0.0, pool).await
        } else {
            (0..pool.tools().len()).collect()
        };
        let candidates = all.iter().filter_map(|at| {
            let tool = pool.tools().get(*at)?;
            Some((self.name(provider, tool)?, tool))
        });
        let tools: Vec<(String, &ToolView)> = candidates.collect();
        let chosen = ranking.fitting(&asked.join("\n"), &tools, self.rules.top_k).await?;
        let at: HashMap<&str, usize> = pool
            .tools()
            .iter()
            .enumerate()
            .filter_map(|(at, tool)| {
                Some((tools.iter().find(|(_, other)| other.id == tool.id)?.0.as_str(), at))
            })
            .collect();
        Ok(chosen.iter().filter_map(|name| at.get(name.as_str()).copied()).collect())
    }

    async fn search(
        &self,
        queries: &[String],
        limit: usize,
        min_similarity: f32,
        pool: &ToolPool,
    ) -> Vec<usize> {
        let queries = queries.iter().map(|query| cut(query).to_owned()).collect();
        let search = Search { queries, limit, min_similarity, wait: EMBED_WAIT };
        let found = pool.search(&*self.local.index, &search).await;
        found.tools.iter().map(|tool| tool.position).collect()
    }

    fn min_similarity(&self) -> f32 {
        #[expect(clippy::cast_possible_truncation, reason = "a number from 0 to 1")]
        let min_similarity = self.local.setup.loaded.config.search.min_similarity as f32;
        min_similarity
    }

    fn name(&self, provider: Provider, tool: &ToolView) -> Option<String> {
        let names = &self.local.hub.catalog().names;
        let name = names.public(Kind::Tool, provider.alphabet(), &tool.id)?;
        Some(name.to_string())
    }

    /// The selected tools in the provider's form and Capstan's own, with the number of the others.
    fn tools(&self, provider: Provider, turn: &Turn) -> (Vec<ToolOffer>, usize) {
        let pool = self.state().pool.clone();
        let visible = pool.as_ref().map(|pool| pool.tools()).unwrap_or_default();
        let selected: HashSet<&ItemId> = turn.tools.iter().collect();
        let mut tools = Vec::new();
        for tool in visible.iter().filter(|tool| selected.contains(&tool.shown_id())) {
            let (name, schema) = (self.name(provider, tool), provider.fit(&tool.input_schema()));
            if let (Some(name), Ok(schema)) = (name.filter(|name| !own_tools::is_own(name)), schema)
            {
                let screens = &self.local.hub.catalog().screens;
                let description = screens.description(&tool.description);
                let description = description.into_owned();
                tools.push(ToolOffer { name, description, schema });
            }
        }
        let more = visible.len().saturating_sub(tools.len());
        let mut state = self.state();
        state.searches |= more > 0;
        let mut own = Vec::new();
        if state.searches {
            own.extend(own_tools::searching());
        }
        drop(state);
        if self.local.hub.servers().len() > 0 {
            own.push(own_tools::reading());
        }
        for mut tool in own {
            if let Ok(schema) = provider.fit(&tool.schema) {
                tool.schema = schema;
                tools.push(tool);
            }
        }
        (tools, more)
    }

    async fn run(&self, provider: Provider, call: &ToolCall) -> Result<ToolAnswer, AppError> {
        match OwnCall::of(call).transpose()? {
            None => {
                let catalog = self.local.hub.catalog();
                let named = catalog.names.resolve(Kind::Tool, provider.alphabet(), &call.name);
                self.send(named, &call.name, &call.arguments, call.problem.as_deref()).await
            }
            Some(OwnCall::Call(name, arguments)) => {
                self.send(self.resolve(provider, &name), &name, &arguments, None).await
            }
            Some(OwnCall::Search { queries, limit }) => {
                let text = self.search_text(provider, &queries, limit).await;
                Ok(answer(&call.name, &text))
            }
            Some(OwnCall::Describe(name)) => {
                let text = self.describe(provider, &name)?;
                Ok(answer(&call.name, &text))
            }
            Some(OwnCall::Read { server, uri }) => self.read(server.as_deref(), &uri).await,
        }
    }

    /// The tool of a name that `search_tools` or a person would use.
    fn resolve(&self, provider: Provider, name: &str) -> Option<ItemId> {
        let hub = &self.local.hub;
        let named = hub.catalog().names.resolve(Kind::Tool, provider.alphabet(), name);
        named.or_else(|| hub.id_of(name))
    }

    async fn send(
        &self,
        named: Option<ItemId>,
        name: &str,
        arguments: &Json,
        problem: Option<&str>,
    ) -> Result<ToolAnswer, AppError> {
        let hub = &*self.local.hub;
        let asked = named.as_ref().map_or_else(|| name.to_owned(), ToString::to_string);
        let attempt = hub.begin(&Call::new(caller(), Target::tool(&asked), None));
        let Some(id) = named else {
            let (name, nearest) = (name.to_owned(), Vec::new());
            let error = CallError::Unknown { kind: Kind::Tool, name, nearest };
            return Err(attempt.refuse(error).into());
        };
        if let Some(problem) = problem {
            let (item, problem) = (asked, problem.to_owned());
            return Err(attempt.refuse(CallError::InvalidArguments { item, problem }).into());
        }
        let checked = hub.find_tool(&caller(), &asked).await;
        let checked = checked.and_then(|tool| tool.check(arguments));
        if let Err(error) = checked {
            return Err(attempt.refuse(error).into());
        }
        let sent = Call::new(caller(), Target::tool(&asked), Some(arguments));
        let front = Asker::new(&self.front);
        let screened = attempt.call(&self.local.session(), sent, front.requester()).await?;
        let (tool, result) = (id.to_string(), screened.result().clone());
        Ok(ToolAnswer { tool, result, is_error: screened.is_error() })
    }

    /// The tools that fit queries, in a few words each.
    async fn search_text(&self, provider: Provider, queries: &[String], limit: usize) -> String {
        let pool = self.state().pool.clone();
        let Some(pool) = pool else { return "There are no tools.".to_owned() };
        let queries = queries.iter().take(MAX_QUERIES).map(|query| cut(query).to_owned()).collect();
        let min_similarity = self.min_similarity();
        let search = Search { queries, limit, min_similarity, wait: EMBED_WAIT };
        let found = pool.search(&*self.local.index, &search).await.tools;
        let line = |at: usize| {
            let tool = pool.tools().get(at)?;
            let (name, arguments) = (self.name(provider, tool)?, signature(&tool.input_schema()));
            Some(format!("{name}{arguments}: {}", purpose(&tool.description)))
        };
        let lines: Vec<String> = found
            .iter()
            .filter_map(|tool| {
                let others = tool.alternatives.iter().filter_map(|at| pool.tools().get(*at));
                let others: Vec<String> =
                    others.filter_map(|tool| self.name(provider, tool)).collect();
                let mut text = line(tool.position)?;
                if !others.is_empty() {
                    text = format!("{text} (the same: {})", others.join(", "));
                }
                Some(text)
            })
            .collect();
        if lines.is_empty() {
            return format!("None of {} tools fits.", pool.tools().len());
        }
        lines.join("\n")
    }

    fn describe(&self, provider: Provider, name: &str) -> Result<String, AppError> {
        // Only tools that the model may see can be described.
        let (id, pool) = (self.resolve(provider, name), self.state().pool.clone());
        let visible = pool.as_ref().map(|pool| pool.tools()).unwrap_or_default();
        let tool = visible.iter().find(|tool| Some(&tool.id) == id.as_ref());
        let Some(tool) = tool else {
            let (name, nearest) = (name.to_owned(), Vec::new());
            return Err(CallError::Unknown { kind: Kind::Tool, name, nearest }.into());
        };
        let schema = tool.input_schema();
        let description = self.local.hub.catalog().screens.description(&tool.description);
        Ok(format!("{name}: {description}\n\nArguments:\n{}", schema.as_str()))
    }

    async fn read(&self, server: Option<&str>, uri: &str) -> Result<ToolAnswer, AppError> {
        let hub = &*self.local.hub;
        let name = match server {
            Some(name) if !is_page(uri) => {
                let server = self.local.setup.server(name)?.name.clone();
                ItemId { server, item: uri.to_owned() }.to_string()
            }
            _ => uri.to_owned(),
        };
        let call = Call::new(caller(), Target::resource(&name), None);
        let attempt = hub.begin(&call);
        let front = Asker::new(&self.front);
        let screened = attempt.call(&self.local.session(), call, front.requester()).await?;
        let contents = object::get(screened.result(), "contents");
        let contents = contents.and_then(|list| object::items(&list).ok()).unwrap_or_default();
        let blocks: Vec<String> = contents
            .iter()
            .map(|one| format!(r#"{{"type":"resource","resource":{}}}"#, one.as_str()))
            .collect();
        let result = Json::parse(format!(r#"{{"content":[{}]}}"#, blocks.join(",")));
        let result = result.map_err(|error| AppError::internal(error.to_string()))?;
        Ok(ToolAnswer { tool: name, result, is_error: screened.is_error() })
    }
}

impl Toolbox for HubToolbox {
    fn sources(&self) -> ReadSources {
        self.local.session().read_sources()
    }

    fn offer<'a>(&'a self, provider: Provider, asked: &'a [String]) -> BoxFuture<'a, Offer> {
        Box::pin(self.gather(provider, asked))
    }

    fn call<'a>(
        &'a self,
        provider: Provider,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<ToolAnswer, AppError>> {
        Box::pin(async move {
            let answer = self.run(provider, call).await;
            // A model that names a wrong tool can search for the right one.
            answer.map_err(|error| {
                if error.kind != ErrorKind::NotFound || !self.state().searches {
                    return error;
                }
                let message = format!("{}; `search_tools` finds tools", error.message);
                AppError { message, ..error }
            })
        })
    }

    fn compacted(&self) {
        self.state().selection.compact();
    }
}

/// The answer of one of Capstan's own tools.
fn answer(tool: &str, text: &str) -> ToolAnswer {
    let text = Json::from_value(&text).unwrap_or_else(|_| Json::empty_object());
    let result = format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, text.as_str());
    let result = Json::parse(result).unwrap_or_else(|_| Json::empty_object());
    ToolAnswer { tool: tool.to_owned(), result, is_error: false }
}

/// The caller of a model's calls. A model is no person who typed a command, so the rules of the
/// terminal apply.
fn caller() -> Caller {
    Caller::operator(Front::Terminal)
}

fn cut(query: &str) -> &str {
    query.get(..query.floor_char_boundary(MAX_QUERY)).unwrap_or_default()
}

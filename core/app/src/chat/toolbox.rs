//! Offers tools to a model and calls them on the road.

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::{Patience, Provider, merged_instructions};
use capstan_hub::ports::{BoxFuture, Listing, ToolCall, ToolOffer};
use capstan_hub::{Call, ReadSources};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, Target};
use capstan_wire::Json;

use crate::AppError;
use crate::api::{Asker, Interact, Local, Missing, Reading, Source};

/// The largest number of tools that are offered at once; providers refuse more.
const MAX_TOOLS: usize = 128;

/// How long a turn waits for the lists of servers that were never seen.
const LIST_WAIT: Patience = Patience::UntilFirstOr(Duration::from_secs(8));

/// The tools of a conversation.
pub trait Toolbox: Send + Sync {
    /// The tools for the next request, with names and schemas that the provider accepts.
    fn offer(&self, provider: Provider) -> BoxFuture<'_, Offer>;

    /// The items by which the conversation has read data that rules about flows depend on.
    fn sources(&self) -> ReadSources;

    /// Runs a call of the model.
    fn call<'a>(
        &'a self,
        provider: Provider,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<ToolAnswer, AppError>>;
}

/// The tools that a model gets, and what it is told about them.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The tools.
    pub tools: Vec<ToolOffer>,
    /// The instructions of servers, labelled and sorted.
    pub instructions: String,
    /// The number of tools that are not offered, because there are too many.
    pub left_out: usize,
    /// The servers whose tools are missing.
    pub missing: Missing,
}

/// The answer of a tool.
#[derive(Clone, Debug)]
pub struct ToolAnswer {
    /// The tool.
    pub id: ItemId,
    /// The result, as the server wrote it.
    pub result: Json,
    /// True if the tool reports an error.
    pub is_error: bool,
}

/// The tools of a hub.
pub struct HubToolbox {
    local: Arc<Local>,
    front: Arc<dyn Interact>,
}

// === impl HubToolbox ===

impl HubToolbox {
    /// The tools of these servers. Questions of the road and of servers go to `front`. A conversation
    /// begins, in which the quota of calls is counted.
    pub fn new(local: Arc<Local>, front: Arc<dyn Interact>) -> Self {
        local.begin_conversation();
        Self { local, front }
    }

    /// Begins another conversation.
    pub fn begin_again(&self) {
        self.local.begin_conversation();
    }

    /// Continues a conversation that has read data by these items.
    pub fn restore(&self, sources: ReadSources) {
        self.local.session().restore(sources);
    }

    async fn gather(&self, provider: Provider) -> Offer {
        let hub = &*self.local.hub;
        let reading = Reading { source: Source::Saved, wait: LIST_WAIT };
        let read = self.local.gather(&*self.front, Listing::Tools, reading).await;
        hub.name_tools(&read.gathered, provider.alphabet());
        let caller = caller();
        let mut tools = Vec::new();
        let mut left_out = 0_usize;
        for tool in hub.visible_tools(&read.gathered, &caller) {
            let name = hub.catalog().names.public(Kind::Tool, provider.alphabet(), &tool.id);
            let (Some(name), Ok(schema)) = (name, provider.fit(&tool.input_schema())) else {
                continue;
            };
            if tools.len() >= MAX_TOOLS {
                left_out = left_out.saturating_add(1);
                continue;
            }
            let description = hub.catalog().screens.description(&tool.description).into_owned();
            let name = name.to_string();
            tools.push(ToolOffer { name, description, schema });
        }
        let about = hub.servers().filter_map(|server| {
            let text = hub.about(server)?.instructions.clone()?;
            Some((server, text))
        });
        let about: Vec<_> = about.collect();
        let instructions = merged_instructions(
            &hub.catalog().screens,
            about.iter().map(|(server, text)| (*server, text.as_str())),
        );
        let missing = Missing::of(hub, &read.gathered);
        Offer { tools, instructions, left_out, missing }
    }

    async fn run(&self, provider: Provider, call: &ToolCall) -> Result<ToolAnswer, AppError> {
        let hub = &*self.local.hub;
        let named = hub.catalog().names.resolve(Kind::Tool, provider.alphabet(), &call.name);
        let asked = named.as_ref().map_or_else(|| call.name.clone(), ToString::to_string);
        let attempt = hub.begin(&Call::new(caller(), Target::tool(&asked), None));
        let Some(id) = named else {
            let (name, nearest) = (call.name.clone(), Vec::new());
            let error = CallError::Unknown { kind: Kind::Tool, name, nearest };
            return Err(attempt.refuse(error).into());
        };
        if let Some(problem) = &call.problem {
            let (item, problem) = (asked, problem.clone());
            return Err(attempt.refuse(CallError::InvalidArguments { item, problem }).into());
        }
        let checked = hub.find_tool(&caller(), &asked).await;
        let checked = checked.and_then(|tool| tool.check(&call.arguments));
        if let Err(error) = checked {
            return Err(attempt.refuse(error).into());
        }
        let sent = Call::new(caller(), Target::tool(&asked), Some(&call.arguments));
        let front = Asker::new(&self.front);
        let screened = attempt.call(&self.local.session(), sent, front.requester()).await?;
        Ok(ToolAnswer { id, result: screened.result().clone(), is_error: screened.is_error() })
    }
}

impl Toolbox for HubToolbox {
    fn sources(&self) -> ReadSources {
        self.local.session().read_sources()
    }

    fn offer(&self, provider: Provider) -> BoxFuture<'_, Offer> {
        Box::pin(self.gather(provider))
    }

    fn call<'a>(
        &'a self,
        provider: Provider,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<ToolAnswer, AppError>> {
        Box::pin(self.run(provider, call))
    }
}

/// The caller of a model's calls. A model is no person who typed a command, so the rules of the
/// terminal apply.
fn caller() -> Caller {
    Caller::operator(Front::Terminal)
}

//! Runs one tool.

use std::sync::Arc;

use capstan_hub::ports::BoxFuture;
use capstan_hub::{Attempt, Call, Requester};
use capstan_model::{CallError, ItemId, ServerName, Target};
use capstan_wire::Json;
use serde::{Deserialize, Serialize};

use super::interact::{self, Asker, Misfit};
use super::{Interact, Local, Operation, operator};
use crate::{AppError, HubPurpose};

/// Runs a tool; the front is asked for the arguments once the schema is known.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallTool {
    /// The tool, in any spelling.
    pub name: String,
    /// The number of tokens above which the front shows pages; `None` for any.
    pub max_tokens: Option<u32>,
}

/// The result of [`CallTool`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Called {
    /// The tool.
    pub id: ItemId,
    /// The result, as the server wrote it.
    pub result: Json,
    /// True if the tool reports an error.
    pub is_error: bool,
}

/// A call that was not sent: the error to record and the hint to show.
pub(super) struct Refusal {
    pub(super) error: CallError,
    pub(super) hint: Option<String>,
}

impl Operation for CallTool {
    const NAME: &'static str = "tools/call";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = Called;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Called, AppError>> {
        Box::pin(call(self, local, front))
    }
}

async fn call(
    asked: &CallTool,
    local: &Local,
    front: &Arc<dyn Interact>,
) -> Result<Called, AppError> {
    let (hub, name) = (&*local.hub, &*asked.name);
    local.tell_problems(&**front, |problem| problem.server.is_none());
    let attempt = hub.begin(&Call::new(operator(), Target::tool(name), None));
    front.status(&format!("starting the server of `{name}`"));
    let tool = match hub.find_tool(&operator(), name).await {
        Ok(tool) => tool,
        Err(error) => {
            let named = server_in(local, name);
            local.tell_problems(&**front, |problem| match (&problem.server, named) {
                (Some(server), Some(named)) => server == named,
                // No server is named, so any server with a problem may be the intended one.
                (Some(_), None) => true,
                (None, _) => false,
            });
            return Err(attempt.refuse(error).into());
        }
    };
    local.tell_problems(&**front, |problem| problem.server.as_ref() == Some(&tool.id.server));
    let arguments = match interact::arguments(&**front, tool.input_schema()).await {
        Ok(arguments) => arguments,
        Err(Misfit { problem, hint }) => {
            let message = format!("invalid arguments for `{name}`: {problem}");
            drop(attempt.refuse(CallError::InvalidArguments { item: name.to_owned(), problem }));
            let usual = || format!("`capstan tools {name}` shows its arguments");
            return Err(AppError::usage(message).hint(hint.unwrap_or_else(usual)));
        }
    };
    if let Err(error) = tool.check(&arguments) {
        return Err(attempt.refuse(error).into());
    }
    front.status(&format!("calling `{}`", tool.id));
    let call = Call::new(operator(), Target::tool(tool.id.to_string()), Some(&arguments));
    let person = Asker::new(front);
    let requester = Requester { max_tokens: asked.max_tokens, ..person.requester() };
    let screened = attempt.call(&local.session(), call, requester).await?;
    Ok(Called { id: tool.id, result: screened.result().clone(), is_error: screened.is_error() })
}

/// The server whose name is the longest prefix of a tool's name.
fn server_in<'a>(local: &'a Local, tool: &str) -> Option<&'a ServerName> {
    let begins = |server: &&ServerName| {
        let rest = tool.strip_prefix(server.as_str());
        rest.is_some_and(|rest| rest.starts_with("__") || rest.starts_with([':', '.']))
    };
    let servers = local.setup.loaded.config.servers.keys();
    servers.filter(begins).max_by_key(|server| server.as_str().len())
}

// === impl Refusal ===

impl Refusal {
    /// Refuses arguments that do not fit; `usual` is the hint if the misfit has none.
    pub(super) fn misfit(item: String, misfit: Misfit, usual: impl Into<String>) -> Self {
        let Misfit { problem, hint } = misfit;
        let hint = Some(hint.unwrap_or_else(|| usual.into()));
        Self { error: CallError::InvalidArguments { item, problem }, hint }
    }

    /// Replaces the hint.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Records the refusal and returns it as the operation's error.
    pub(super) fn record(self, attempt: Attempt<'_>) -> AppError {
        drop(attempt.refuse(self.error.clone()));
        self.into()
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        Self { error, hint: None }
    }
}

impl From<Refusal> for AppError {
    fn from(refusal: Refusal) -> Self {
        let error = Self::from(refusal.error);
        match refusal.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

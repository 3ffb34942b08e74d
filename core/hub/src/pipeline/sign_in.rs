//! Sign-in of callers at servers that they use with accounts of their own.
//!
//! The client is asked to have its user visit a page; the call goes on when the login is stored. A
//! client that cannot be asked gets the address of the page in the error.

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, Caller, ServerName};
use capstan_wire::{compose, object};
use futures::future::{Either, select};

use crate::hub::Hub;
use crate::life::{Lease, Server};
use crate::ports::{Ask, Asking, ClientSide, Lane, PendingLogin, Principal};

/// How long a call waits for its user to sign in.
const WAIT: Duration = Duration::from_mins(5);

/// The next step of a caller who has no name to sign in with.
const NOBODY: &str =
    "it is used with the accounts of callers, and this caller has not authenticated";

/// The next step after a request that no user can be asked about.
const CALL_A_TOOL: &str = "call one of its tools to get the address of the page";

/// The caller of a request, and its client if that can be asked.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) caller: &'a Arc<Caller>,
    pub(super) client: Option<&'a dyn ClientSide>,
}

/// The accounts with which a server is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Accounts {
    /// The operator's, for all callers.
    Operators,
    /// One of each caller.
    Callers,
}

// === impl Accounts ===

impl Accounts {
    pub(super) fn at(hub: &Hub, server: &ServerName) -> Self {
        if hub.per_caller.contains(server) { Self::Callers } else { Self::Operators }
    }

    /// The error of a request in this lane. It must not tell a caller who needs an account of their
    /// own to log in as the operator.
    pub(super) fn explain(self, error: CallError, lane: Lane) -> CallError {
        let next = match (self, lane.principal) {
            (Self::Operators, _) | (Self::Callers, Principal::Operator) => return error,
            (Self::Callers, Principal::Caller(_)) => CALL_A_TOOL,
            (Self::Callers, Principal::Nobody) => NOBODY,
        };
        if let CallError::NeedsLogin { server, .. } = error {
            return CallError::NeedsSignIn { server, next: next.to_owned() };
        }
        error
    }
}

/// Wakes a server; if the caller has to sign in first, lets it do that and wakes the server again.
pub(super) async fn wake(
    hub: &Hub,
    server: &Arc<Server>,
    lane: Lane,
    asked: Asked<'_>,
) -> Result<Lease, CallError> {
    match server.wake(lane).await {
        Ok(lease) => Ok(lease),
        Err(error) => {
            sign_in(hub, server.name(), lane, asked, error).await?;
            let accounts = Accounts::at(hub, server.name());
            server.wake(lane).await.map_err(|error| accounts.explain(error, lane))
        }
    }
}

/// Lets a caller sign in whose request failed for that reason.
///
/// # Errors
/// If it failed for another reason, or the caller has not signed in.
pub(super) async fn sign_in(
    hub: &Hub,
    server: &ServerName,
    lane: Lane,
    asked: Asked<'_>,
    error: CallError,
) -> Result<(), CallError> {
    let accounts = Accounts::at(hub, server);
    let (CallError::NeedsLogin { .. }, Principal::Caller(_), Some(logins), Accounts::Callers) =
        (&error, lane.principal, &hub.caller_logins, accounts)
    else {
        return Err(accounts.explain(error, lane));
    };
    let refused = |next: String| CallError::NeedsSignIn { server: server.clone(), next };
    let PendingLogin { id, url, done } =
        logins.begin(asked.caller, server).await.map_err(refused)?;
    let visit = || refused(format!("open {url} to sign in, then call again"));
    let client = asked.client.filter(|client| can_visit(*client)).ok_or_else(visit)?;
    let message = format!("Sign in to `{server}` with your own account. The call then continues.");
    let [mode, message, address, id] =
        ["url", message.as_str(), url.as_str(), id.as_str()].map(compose::string);
    let params = compose::object(&[
        ("mode", &mode),
        ("message", &message),
        ("url", &address),
        ("elicitationId", &id),
    ]);
    let ask = Ask { server: server.clone(), asking: Asking::Elicit, params };
    let answer = client.ask(ask).await.map_err(|_| visit())?;
    if object::get_string(&answer, "action").as_deref() != Some("accept") {
        return Err(visit());
    }
    match select(done, hub.clock.sleep(WAIT)).await {
        Either::Left((true, _)) => Ok(()),
        Either::Left((false, _)) => {
            Err(refused("the sign-in failed; call again to retry".to_owned()))
        }
        Either::Right(_) => Err(visit()),
    }
}

fn can_visit(client: &dyn ClientSide) -> bool {
    let capabilities = client.capabilities();
    capabilities.is_some_and(|all| object::at_path(&all, "elicitation.url").is_some())
}

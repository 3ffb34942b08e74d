//! Operations in a running gateway: selects the gateway and sends the request.

use std::sync::Arc;

use capstan_app::api::{Interact, ask_front, tell_front};
use capstan_app::{AppError, ErrorKind, Gateways, NotRun, Selection, Which};
use capstan_config::SourceFile;
use capstan_control::{ControlError, Gateway, OperationMessage, find};
use capstan_hub::approvals::policy_version;
use capstan_hub::ports::BoxFuture;
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::join_all;

use crate::host::LocalHost;
use crate::pending_approvals::folders;
use crate::world::World;

/// Prefixes of variables that configurations may depend on without naming them.
const OUR_VARIABLES: [&str; 3] = ["CAPSTAN_", "CALIBAN_", "MCP_"];

/// Variables of ours that do not affect servers or rules.
const BESIDE: [&str; 1] = ["CAPSTAN_REGISTRY"];

/// A variable that the shell sets to a different value for every command.
const LAST_COMMAND: &str = "_";

/// The digest of a configuration.
///
/// Two configurations with equal digests start the same servers with the same rules.
pub(crate) fn digest(world: &World, selection: &Selection, files: &[SourceFile]) -> String {
    let mut texts = vec![
        world.workspace().display().to_string(),
        format!("{} {} {}", selection.demo, selection.no_mcp, selection.trust_project),
    ];
    for file in files {
        let SourceFile { path, scope, text, approved, .. } = file;
        texts.push(format!("{} {approved} {path}", scope.as_str()));
        texts.push(text.clone());
    }
    for (name, value) in world.variables() {
        // A file that refers to a variable contains its name, in whatever syntax.
        let named = || files.iter().any(|file| file.text.contains(name.as_str()));
        let ours = OUR_VARIABLES.iter().any(|prefix| name.starts_with(prefix))
            && !BESIDE.contains(&name.as_str());
        if name != LAST_COMMAND && (ours || named()) {
            texts.push(format!("{name}={value}"));
        }
    }
    policy_version(texts.iter().map(String::as_str))
}

// === impl LocalHost ===

impl LocalHost {
    /// The gateway to use if none is named.
    async fn only(&self, selection: &Selection) -> Result<Gateway, AppError> {
        let all = find(&folders(&self.world));
        let all = with_digests(all).await;
        if let [(gateway, _)] = all.as_slice() {
            return Ok(gateway.clone());
        }
        if all.is_empty() {
            return Err(none_runs());
        }
        let digest = self.sources(selection).map(|files| digest(&self.world, selection, &files));
        let digest = digest.unwrap_or_default();
        let like: Vec<&Gateway> =
            all.iter().filter(|(_, other)| *other == digest).map(|(one, _)| one).collect();
        if let [only] = like.as_slice() {
            return Ok((*only).clone());
        }
        let numbers = all.iter().filter_map(|(gateway, _)| gateway.process());
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let message = format!("several gateways run: {}", numbers.join(", "));
        Err(AppError::usage(message).hint("select one with `--attach=PID`"))
    }

    /// Sends a request to the only gateway with exactly the configuration that is selected here.
    async fn send_to_like(
        &self,
        selection: &Selection,
        request: &(dyn Fn(Option<String>) -> Json + Send + Sync),
        front: &Arc<dyn Interact>,
    ) -> Result<Json, NotRun> {
        let all = find(&folders(&self.world));
        if all.is_empty() {
            return Err(NotRun::Here);
        }
        // Errors in the files are reported by the process that runs the operation.
        let files = self.sources(selection).map_err(|_| NotRun::Here)?;
        let digest = digest(&self.world, selection, &files);
        let gateway = if let [only] = all.as_slice() {
            only.clone()
        } else {
            let mut like = with_digests(all).await;
            like.retain(|(_, other)| *other == digest);
            let [(only, _)] = like.as_slice() else { return Err(NotRun::Here) };
            only.clone()
        };
        match run(&gateway, &request(Some(digest)), front).await {
            Ok(result) => Ok(result),
            Err(ControlError::Declined(_) | ControlError::Foreign { .. }) => Err(NotRun::Here),
            Err(ControlError::Io { cause, .. }) if is_gone(&cause) => Err(NotRun::Here),
            Err(error) => Err(failed(&error).into()),
        }
    }
}

impl Gateways for LocalHost {
    fn send<'a>(
        &'a self,
        which: Which<'a>,
        request: &'a (dyn Fn(Option<String>) -> Json + Send + Sync),
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, NotRun>> {
        async move {
            let gateway = match which {
                Which::Like(selection) => {
                    return self.send_to_like(selection, request, front).await;
                }
                Which::Only(selection) => self.only(selection).await?,
                Which::Process(number) => {
                    let all = find(&folders(&self.world));
                    let found = all.into_iter().find(|one| one.process() == Some(number));
                    found.ok_or_else(|| {
                        AppError::not_found(format!(
                            "none of your gateways has the process ID {number}"
                        ))
                        .hint("`--attach` without a number selects the only gateway")
                    })?
                }
            };
            Ok(run(&gateway, &request(None), front).await.map_err(|error| failed(&error))?)
        }
        .boxed()
    }
}

/// True if there was no gateway to connect to.
fn is_gone(cause: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    [ConnectionRefused, NotFound, PermissionDenied].contains(&cause.kind())
}

/// The gateways that respond, with the digests of their configurations.
async fn with_digests(all: Vec<Gateway>) -> Vec<(Gateway, String)> {
    let asked = all.into_iter().map(|gateway| async move {
        let digest = gateway.digest().await.ok()?;
        Some((gateway, digest))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Runs a request in a gateway and forwards its events and questions to the front.
async fn run(
    gateway: &Gateway,
    request: &Json,
    front: &Arc<dyn Interact>,
) -> Result<Json, ControlError> {
    let hears = |heard: OperationMessage| -> Option<BoxFuture<'static, Json>> {
        match heard {
            OperationMessage::Event(event) => {
                tell_front(&**front, &event);
                None
            }
            OperationMessage::Ask(question) => Some(ask_front(Arc::clone(front), &question)),
        }
    };
    gateway.run(request, &hears).await
}

fn none_runs() -> AppError {
    AppError::not_found("no gateway of yours is running").hint("`capstan serve --http` starts one")
}

fn failed(error: &ControlError) -> AppError {
    match error {
        ControlError::Declined(reason) => {
            AppError::new(ErrorKind::Unreachable, format!("the gateway says: {reason}"))
        }
        ControlError::Io { cause, .. } if is_gone(cause) => none_runs(),
        // The operation may have been carried out.
        ControlError::Io { .. }
        | ControlError::Foreign { .. }
        | ControlError::Silent { .. }
        | ControlError::Unknown
        | ControlError::Refused(_)
        | _ => {
            let message = format!("the connection to the gateway was lost: {error}");
            AppError::new(ErrorKind::Unreachable, message).code("outcome_unknown")
        }
    }
}

//! Running gateways of this user: finds them, and selects the one that an operation runs in.

mod digest;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_hub::ports::BoxFuture;
use capstan_wire::Json;
use futures::future::join_all;

use crate::api::Interact;
use crate::{AppError, Configs, Environment, ErrorKind, FileFacts, Selection};

pub(crate) use digest::digest;

/// Finds the control sockets of this user's gateways.
pub trait ControlSockets: Send + Sync {
    /// The sockets that exist; the processes of some may have ended.
    fn find(&self) -> Vec<Arc<dyn ControlSocket>>;
}

/// The control socket of one gateway.
pub trait ControlSocket: Send + Sync {
    /// The path of the socket.
    fn path(&self) -> &Path;

    /// The id of the gateway's process.
    fn process(&self) -> Option<u32>;

    /// Asks for the digest of the configuration in force.
    fn digest(&self) -> BoxFuture<'_, Result<String, ControlFault>>;

    /// Runs a request, forwards events and questions to the front, and returns the result.
    ///
    /// Dropping the future ends the operation.
    fn run<'a>(
        &'a self,
        request: &'a Json,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, ControlFault>>;
}

/// The reason why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum ControlFault {
    /// The gateway does not run the request; nothing was done.
    #[error("the gateway refused the operation: {0}")]
    Declined(String),
    /// The process of the gateway has ended; nothing was done.
    #[error("the gateway has ended")]
    Gone,
    /// The socket is not accessible; nothing was done.
    #[error(transparent)]
    NoAccess(Box<dyn std::error::Error + Send + Sync>),
    /// The socket belongs to another user; nothing was done.
    #[error(transparent)]
    Foreign(Box<dyn std::error::Error + Send + Sync>),
    /// The connection failed. The request may have been carried out.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Selects the gateway that an operation runs in.
pub struct Gateways {
    /// The configuration files, to compare configurations.
    pub configs: Arc<Configs>,
    /// The control sockets.
    pub sockets: Arc<dyn ControlSockets>,
}

/// The choice of a gateway.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// The gateway with this process id.
    Process(u32),
    /// The only gateway, or the only one with the configuration that is selected here.
    Only(&'a Selection),
    /// The only gateway with exactly the configuration that is selected here.
    Like(&'a Selection),
}

/// The reason why an operation did not complete in a gateway.
#[derive(Debug)]
pub enum NotRun {
    /// No gateway accepted it; nothing was done.
    Here,
    /// It failed.
    Failed(Box<AppError>),
}

/// A gateway that was selected.
pub(crate) struct Selected {
    pub(crate) socket: Arc<dyn ControlSocket>,
    /// The digest that its configuration must have.
    pub(crate) digest: Option<String>,
}

// === impl Gateways ===

impl Gateways {
    /// Selects a gateway.
    pub(crate) async fn select(&self, which: Which<'_>) -> Result<Selected, NotRun> {
        let all = self.sockets.find();
        let socket = match which {
            Which::Like(selection) => return self.select_like(all, selection).await,
            Which::Only(selection) => self.select_only(all, selection).await?,
            Which::Process(number) => {
                let found = all.into_iter().find(|one| one.process() == Some(number));
                found.ok_or_else(|| {
                    AppError::not_found(format!(
                        "none of your gateways has the process ID {number}"
                    ))
                    .hint("`--attach` without a number selects the only gateway")
                })?
            }
        };
        Ok(Selected { socket, digest: None })
    }

    /// Selects the only gateway with exactly the configuration that is selected here.
    async fn select_like(
        &self,
        all: Vec<Arc<dyn ControlSocket>>,
        selection: &Selection,
    ) -> Result<Selected, NotRun> {
        if all.is_empty() {
            return Err(NotRun::Here);
        }
        // Errors in the files are reported by the process that runs the operation.
        let digest = self.digest(selection).map_err(|_| NotRun::Here)?;
        let mut like = match all.as_slice() {
            // The gateway compares the digest itself.
            [_] => all,
            _ => like(&with_digests(all).await, &digest),
        };
        match (like.pop(), like.is_empty()) {
            (Some(socket), true) => Ok(Selected { socket, digest: Some(digest) }),
            (_, _) => Err(NotRun::Here),
        }
    }

    /// Selects the gateway to use if none is named.
    async fn select_only(
        &self,
        all: Vec<Arc<dyn ControlSocket>>,
        selection: &Selection,
    ) -> Result<Arc<dyn ControlSocket>, AppError> {
        let all = with_digests(all).await;
        match all.as_slice() {
            [] => return Err(none_runs()),
            [(only, _)] => return Ok(Arc::clone(only)),
            _ => {}
        }
        let digest = self.digest(selection).unwrap_or_default();
        if let [only] = like(&all, &digest).as_slice() {
            return Ok(Arc::clone(only));
        }
        let numbers = all.iter().filter_map(|(gateway, _)| gateway.process());
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let message = format!("several gateways run: {}", numbers.join(", "));
        Err(AppError::usage(message).hint("select one with `--attach=PID`"))
    }

    fn digest(&self, selection: &Selection) -> Result<String, AppError> {
        let files = self.configs.sources(selection)?;
        Ok(digest(&self.configs.environment, selection, &files))
    }
}

// === impl ControlFault ===

impl ControlFault {
    /// The error of an operation that was sent to a selected gateway.
    pub(crate) fn of_operation(self, which: Which<'_>) -> NotRun {
        let error = match (self, which) {
            (
                Self::Declined(_) | Self::Gone | Self::NoAccess(_) | Self::Foreign(_),
                Which::Like(_),
            ) => return NotRun::Here,
            (Self::Declined(reason), _) => {
                AppError::new(ErrorKind::Unreachable, format!("the gateway says: {reason}"))
            }
            (Self::Gone | Self::NoAccess(_), _) => none_runs(),
            // The operation may have been carried out.
            (Self::Foreign(error) | Self::Failed(error), _) => {
                let message = format!("the connection to the gateway was lost: {error}");
                AppError::new(ErrorKind::Unreachable, message).code("outcome_unknown")
            }
        };
        error.into()
    }
}

// === impl NotRun ===

impl From<AppError> for NotRun {
    fn from(error: AppError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// The folders of control sockets, best first.
pub fn socket_folders(environment: &Environment) -> Vec<PathBuf> {
    let runtime = runtime_folder(environment).map(|folder| folder.join("capstan"));
    runtime.into_iter().chain([environment.state.join("run")]).collect()
}

/// The user's folder for sockets, if the session has one.
pub(crate) fn runtime_folder(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.variable("XDG_RUNTIME_DIR").map(PathBuf::from)?;
    let is_folder = environment.files.facts(&folder).is_some_and(FileFacts::is_folder);
    (folder.is_absolute() && is_folder).then_some(folder)
}

/// A gateway with the digest of its configuration.
type WithDigest = (Arc<dyn ControlSocket>, String);

/// The gateways that respond, with the digests of their configurations.
async fn with_digests(all: Vec<Arc<dyn ControlSocket>>) -> Vec<WithDigest> {
    let asked = all.into_iter().map(|gateway| async move {
        let digest = gateway.digest().await.ok()?;
        Some((gateway, digest))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// The gateways whose configuration has this digest.
fn like(all: &[WithDigest], digest: &str) -> Vec<Arc<dyn ControlSocket>> {
    let like = all.iter().filter(|(_, other)| other == digest);
    like.map(|(gateway, _)| Arc::clone(gateway)).collect()
}

pub(crate) fn none_runs() -> AppError {
    AppError::not_found("no gateway of yours is running").hint("`capstan serve --http` starts one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{FakeFiles, FakeSocket, FakeSockets, configs};

    /// Gateways with these process ids; the digest of those above 100 is that of an empty
    /// configuration.
    fn gateways(processes: &[u32]) -> Gateways {
        let configs = Arc::new(configs(FakeFiles::with(&[])));
        let ours = digest(&configs.environment, &Selection::default(), &[]);
        let socket = |process: &u32| {
            let digest = if *process > 100 { ours.clone() } else { "other".to_owned() };
            FakeSocket::new(*process, digest, |_| None)
        };
        let sockets = FakeSockets(processes.iter().map(socket).collect());
        Gateways { configs, sockets: Arc::new(sockets) }
    }

    async fn selected(processes: &[u32], which: Which<'_>) -> Result<Option<u32>, NotRun> {
        gateways(processes).select(which).await.map(|selected| selected.socket.process())
    }

    fn message(result: Result<Option<u32>, NotRun>) -> String {
        match result {
            Err(NotRun::Failed(error)) => error.message,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_plain_command_uses_only_the_gateway_with_its_own_configuration() {
        let selection = Selection::default();
        let like = Which::Like(&selection);
        assert!(matches!(selected(&[], like).await, Err(NotRun::Here)));
        assert_eq!(selected(&[1, 101], like).await.unwrap(), Some(101));
        assert!(matches!(selected(&[101, 102], like).await, Err(NotRun::Here)));
        assert!(matches!(selected(&[1, 2], like).await, Err(NotRun::Here)));
        let only = gateways(&[1]).select(like).await.unwrap();
        assert!(only.digest.is_some(), "the gateway itself refuses another configuration");
    }

    #[tokio::test]
    async fn an_attached_command_uses_the_only_gateway_or_the_one_with_its_configuration() {
        let selection = Selection::default();
        let only = Which::Only(&selection);
        assert_eq!(message(selected(&[], only).await), "no gateway of yours is running");
        assert_eq!(selected(&[1], only).await.unwrap(), Some(1));
        assert_eq!(selected(&[1, 101], only).await.unwrap(), Some(101));
        assert_eq!(message(selected(&[1, 2], only).await), "several gateways run: 1, 2");
    }

    #[tokio::test]
    async fn a_named_gateway_is_used_whatever_its_configuration() {
        assert_eq!(selected(&[1, 2], Which::Process(2)).await.unwrap(), Some(2));
        let missing = message(selected(&[1, 2], Which::Process(3)).await);
        assert_eq!(missing, "none of your gateways has the process ID 3");
    }

    #[test]
    fn sockets_are_in_the_runtime_folder_if_the_session_has_one() {
        let mut here = crate::fakes::environment(FakeFiles::with(&[("/run/user/1/x", "")]));
        let state = here.state.join("run");
        for (variable, expected) in [
            ("/run/user/1", vec![PathBuf::from("/run/user/1/capstan"), state.clone()]),
            ("/run/user/2", vec![state.clone()]),
            ("run/user/1", vec![state.clone()]),
        ] {
            here.variables.insert("XDG_RUNTIME_DIR".to_owned(), variable.to_owned());
            assert_eq!(socket_folders(&here), expected, "{variable}");
        }
    }
}

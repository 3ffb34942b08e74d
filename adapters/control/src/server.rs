//! The gateway's side: accepts shells of the same user only.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_hub::Approvals;
use capstan_hub::approvals::AnswerError;
use capstan_hub::ports::BoxFuture;
use capstan_wire::protocol::{INVALID_PARAMS, METHOD_NOT_FOUND};
use capstan_wire::{Json, Message, RequestId, compose};
use rustix::process::{geteuid, getpid};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::conversation::{Outgoing, Shell};
use crate::message::{
    ABOUT, ANSWER, About, AnswerParams, LIST, Listed, NOT_HERE, NOT_TAKEN, Outcome, Question, RUN,
    SHOW, Show, UNKNOWN_QUESTION, WATCH, Watch,
};
use crate::{ControlError, MAX_LONG_LINE, PATIENCE, folder};

/// Maximum number of concurrent shells; further ones are refused.
const MAX_SHELLS: usize = 64;

/// Maximum wait of a shell for a change.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// A running gateway, as reached by shells.
pub trait ControlEndpoint: Send + Sync + 'static {
    /// The pending approvals.
    fn approvals(&self) -> Arc<Approvals>;

    /// The digest of the configuration in force.
    fn digest(&self) -> String;

    /// Runs an operation; its events and questions go to the shell through `messages`.
    ///
    /// Dropping the future ends the operation.
    fn run(
        &self,
        request: Json,
        messages: Sender<Outgoing>,
    ) -> BoxFuture<'_, Result<Json, Declined>>;
}

/// An operation does not run here, and nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined(pub String);

/// A socket for shells. It is removed on drop.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// The user id that is accepted.
    user: u32,
}

/// The error of a request.
struct Fault {
    code: i64,
    message: String,
}

// === impl Control ===

impl Control {
    /// Opens the socket of this process, and removes the sockets of ended processes.
    ///
    /// Must be called within a tokio runtime.
    pub fn open(folder: &Path) -> Result<Self, ControlError> {
        folder::prepare(folder)?;
        clear(folder);
        let process = u32::try_from(getpid().as_raw_nonzero().get()).unwrap_or_default();
        let path = folder::socket(folder, process);
        let failed = |cause| ControlError::Io { path: path.clone(), cause };
        // Only an ended process can have left a socket with our process id.
        drop(fs::remove_file(&path));
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let control = Self { listener, path: path.clone(), user: geteuid().as_raw() };
        // Until then the permissions of the folder are sufficient.
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(control)
    }

    /// Accepts another user than ours, so that every connection is refused.
    #[cfg(test)]
    fn for_user(self, user: u32) -> Self {
        let mut control = self;
        control.user = user;
        control
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers shells until the future is dropped.
    pub async fn serve(self, endpoint: Arc<dyn ControlEndpoint>) {
        let places = Arc::new(Semaphore::new(MAX_SHELLS));
        let mut shells = JoinSet::new();
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Usually too many open files, which is temporary.
                    warn!(%error, "the control socket cannot accept connections");
                    sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            while shells.try_join_next().is_some() {}
            if !self.admits(&stream) {
                warn!("a process of another user tried to use the control socket, and was refused");
                continue;
            }
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                debug!("too many shells at the control socket");
                send_away(&stream);
                continue;
            };
            let endpoint = Arc::clone(&endpoint);
            shells.spawn(async move {
                if let Err(error) = talk(stream, &*endpoint).await {
                    debug!(%error, "a shell disconnected");
                }
                drop(place);
            });
        }
    }

    /// True if the kernel reports our user id for the other side.
    fn admits(&self, stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == self.user)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // It may have been removed.
        drop(fs::remove_file(&self.path));
    }
}

/// Removes sockets without a listener.
fn clear(folder: &Path) {
    for path in folder::sockets(folder) {
        let refused = std::os::unix::net::UnixStream::connect(&path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if refused {
            drop(fs::remove_file(&path));
        }
    }
}

/// Handles one connection: one reply line per request line.
async fn talk(stream: UnixStream, endpoint: &dyn ControlEndpoint) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    loop {
        let Some(line) = timeout(PATIENCE, read_line(&mut reading, MAX_LONG_LINE)).await?? else {
            return Ok(());
        };
        let mut reply = match Message::parse(&line) {
            Ok(Message::Request { id, method, params }) if method == RUN => {
                drop(line);
                let request = params.unwrap_or_else(Json::empty_object);
                let mut shell = Shell { reading: &mut reading, writing: &mut writing };
                let done = shell.run(endpoint, request).await?;
                let refused = |Declined(message)| Fault { code: NOT_HERE, message };
                reply(&id, done.map_err(refused))
            }
            Ok(Message::Request { id, method, params }) => {
                reply(&id, answer(endpoint, &method, params.as_ref()).await)
            }
            // Only requests get a reply.
            Ok(Message::Notification { .. } | Message::Reply { .. }) | Err(_) => return Ok(()),
        };
        reply.push(b'\n');
        timeout(PATIENCE, writing.write_all(&reply)).await??;
    }
}

/// Sends an error reply that there is no room, if the socket accepts it at once.
fn send_away(stream: &UnixStream) {
    let mut line = compose::error_reply(&RequestId::Number(1), NOT_HERE, "too many shells");
    line.push(b'\n');
    // The line is short enough to be sent at once.
    drop(stream.try_write(&line));
}

/// Reads a line of at most `most` bytes, without its newline; `None` at the end.
pub(crate) async fn read_line(
    reading: &mut (impl AsyncBufReadExt + Unpin),
    most: usize,
) -> io::Result<Option<Bytes>> {
    let mut line = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    reading.take(most).read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line.into())),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long")),
    }
}

fn reply(id: &RequestId, result: Result<Json, Fault>) -> Vec<u8> {
    match result {
        Ok(result) => compose::reply(id, &result),
        Err(Fault { code, message }) => compose::error_reply(id, code, &message),
    }
}

async fn answer(
    endpoint: &dyn ControlEndpoint,
    method: &str,
    params: Option<&Json>,
) -> Result<Json, Fault> {
    let approvals = &*endpoint.approvals();
    match method {
        ABOUT => written(&About { digest: endpoint.digest() }),
        LIST => listed(approvals).await,
        WATCH => {
            let Watch { revision, wait } = read(params)?;
            let wait = Duration::from_millis(wait).min(MAX_WAIT);
            // After the timeout, the unchanged list is the answer.
            drop(timeout(wait, approvals.changed(revision)).await);
            listed(approvals).await
        }
        SHOW => {
            let Show { id } = read(params)?;
            written(&Question::from(approvals.question(&id).await?))
        }
        ANSWER => {
            let said: AnswerParams = read(params)?;
            let answer = said.read().ok_or_else(|| invalid("the answer cannot be parsed"))?;
            let (answered, saved) = approvals.answer(&said.id, answer).await?;
            written(&Outcome::new(&answered, saved))
        }
        unknown => {
            let message = format!("unknown method `{unknown}`");
            Err(Fault { code: METHOD_NOT_FOUND, message })
        }
    }
}

async fn listed(approvals: &Approvals) -> Result<Json, Fault> {
    let (revision, questions) = approvals.questions().await;
    let questions = questions.into_iter().map(Question::from).collect();
    written(&Listed { revision, questions })
}

fn read<T: serde::de::DeserializeOwned>(params: Option<&Json>) -> Result<T, Fault> {
    let params = params.ok_or_else(|| invalid("`params` is missing"))?;
    params.read().map_err(|_| invalid("the params cannot be parsed"))
}

fn written(value: &impl serde::Serialize) -> Result<Json, Fault> {
    Json::from_value(value)
        .map_err(|_| Fault { code: NOT_TAKEN, message: "the answer cannot be written".to_owned() })
}

fn invalid(message: &str) -> Fault {
    Fault { code: INVALID_PARAMS, message: message.to_owned() }
}

// === impl Fault ===

impl From<AnswerError> for Fault {
    fn from(error: AnswerError) -> Self {
        let is_unknown = matches!(error, AnswerError::Unknown { .. });
        let code = if is_unknown { UNKNOWN_QUESTION } else { NOT_TAKEN };
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        Self { code, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    /// A gateway without any function.
    struct Nothing;

    impl ControlEndpoint for Nothing {
        fn approvals(&self) -> Arc<Approvals> {
            Arc::default()
        }

        fn digest(&self) -> String {
            String::new()
        }

        fn run(&self, _: Json, _: Sender<Outgoing>) -> BoxFuture<'_, Result<Json, Declined>> {
            panic!("nobody may come so far")
        }
    }

    #[tokio::test]
    async fn whoever_is_somebody_else_gets_no_answer() {
        let folder = tempfile::TempDir::new().unwrap();
        let ours = Control::open(folder.path()).unwrap();
        let other = geteuid().as_raw() + 1;
        let served = tokio::spawn(ours.for_user(other).serve(Arc::new(Nothing)));
        let gateways = find(&[folder.path().to_owned()]);
        let [gateway] = gateways.as_slice() else { panic!("{gateways:?}") };
        assert!(gateway.questions().await.is_err());
        assert!(gateway.digest().await.is_err());
        let hears = |_: crate::OperationMessage| -> Option<BoxFuture<'static, Json>> { None };
        assert!(gateway.run(&Json::empty_object(), &hears).await.is_err());
        served.abort();
    }
}

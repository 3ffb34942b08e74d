//! The gateway's side: accepts shells of the same user only.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_hub::ports::BoxFuture;
use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_wire::{Json, Message, RequestId, compose};
use rustix::process::{geteuid, getpid};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::conversation::{Shell, ToShell};
use crate::message::{ABOUT, DECLINED, RUN};
use crate::{ControlError, MAX_LONG_LINE, PATIENCE, folder};

/// Maximum number of concurrent shells; further ones are refused.
const MAX_SHELLS: usize = 64;

/// A running gateway, as reached by shells.
pub trait ControlEndpoint: Send + Sync + 'static {
    /// The digest of the configuration in force.
    fn digest(&self) -> String;

    /// Runs an operation; its events and questions go to the shell through `messages`.
    ///
    /// Dropping the future ends the operation.
    fn run(
        &self,
        request: Json,
        messages: Sender<ToShell>,
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
                let refused = |Declined(message)| Fault { code: DECLINED, message };
                reply(&id, done.map_err(refused))
            }
            Ok(Message::Request { id, method, .. }) => reply(&id, answer(endpoint, &method)),
            // Only requests get a reply.
            Ok(Message::Notification { .. } | Message::Reply { .. }) | Err(_) => return Ok(()),
        };
        reply.push(b'\n');
        timeout(PATIENCE, writing.write_all(&reply)).await??;
    }
}

/// Sends an error reply that there is no room, if the socket accepts it at once.
fn send_away(stream: &UnixStream) {
    let mut line = compose::error_reply(&RequestId::Number(1), DECLINED, "too many shells");
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

fn answer(endpoint: &dyn ControlEndpoint, method: &str) -> Result<Json, Fault> {
    if method != ABOUT {
        let message = format!("unknown method `{method}`");
        return Err(Fault { code: METHOD_NOT_FOUND, message });
    }
    Ok(compose::object(&[("digest", &compose::string(&endpoint.digest()))]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    /// A gateway without any function.
    struct Nothing;

    impl ControlEndpoint for Nothing {
        fn digest(&self) -> String {
            String::new()
        }

        fn run(&self, _: Json, _: Sender<ToShell>) -> BoxFuture<'_, Result<Json, Declined>> {
            panic!("a stranger was let in")
        }
    }

    #[tokio::test]
    async fn another_user_gets_no_answer() {
        let folder = tempfile::TempDir::new().unwrap();
        let ours = Control::open(folder.path()).unwrap();
        let other = geteuid().as_raw() + 1;
        let served = tokio::spawn(ours.for_user(other).serve(Arc::new(Nothing)));
        let gateways = find(&[folder.path().to_owned()]);
        let [gateway] = gateways.as_slice() else { panic!("{gateways:?}") };
        assert!(gateway.digest().await.is_err());
        let handler = |_: crate::OperationMessage| -> Option<BoxFuture<'static, Json>> { None };
        assert!(gateway.run(&Json::empty_object(), &handler).await.is_err());
        served.abort();
    }
}

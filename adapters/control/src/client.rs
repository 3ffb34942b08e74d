//! The shell's side: finds running gateways, and talks to one at a time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_wire::{Json, Message, Reply, compose};
use rustix::process::geteuid;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::conversation::{Handler, OperationMessage, send};
use crate::message::{ABOUT, About, DECLINED, RUN};
use crate::server::read_line;
use crate::{ControlError, MAX_LINE, MAX_LONG_LINE, PATIENCE, folder};

/// A gateway that may be running.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gateway {
    path: PathBuf,
}

/// The gateways whose sockets are in these folders. Some may have ended.
pub fn find(folders: &[PathBuf]) -> Vec<Gateway> {
    let sockets = folders.iter().flat_map(|folder| folder::sockets(folder));
    sockets.map(|path| Gateway { path }).collect()
}

// === impl Gateway ===

impl Gateway {
    /// The path of its socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id of its process.
    pub fn process(&self) -> Option<u32> {
        folder::process(&self.path)
    }

    /// The digest of its current configuration.
    pub async fn digest(&self) -> Result<String, ControlError> {
        let asked = timeout(PATIENCE, self.ask_about());
        let about = asked.await.map_err(|_| self.silent())??;
        Ok(about.digest)
    }

    /// Runs an operation there, without a timeout; `handler` handles its events and questions.
    ///
    /// Dropping the future ends the operation.
    pub async fn run(&self, request: &Json, handler: Handler<'_>) -> Result<Json, ControlError> {
        let failed = |cause: io::Error| ControlError::Io { path: self.path.clone(), cause };
        let (reading, mut writing) = self.connect().await?.into_split();
        let mut reading = BufReader::new(reading);
        let line = compose::request(1, RUN, Some(request));
        if let Err(cause) = send(&mut writing, line).await {
            // A full gateway answers without reading the request.
            let said = timeout(PATIENCE, read_line(&mut reading, MAX_LINE)).await;
            let said = said.ok().and_then(Result::ok).flatten();
            return Err(said.and_then(|line| declined(&line)).unwrap_or_else(|| failed(cause)));
        }
        loop {
            let line = read_line(&mut reading, MAX_LONG_LINE).await.map_err(failed)?;
            let line = line.ok_or_else(|| self.silent())?;
            match Message::parse(&line) {
                Ok(Message::Reply { reply: Reply::Result(done), .. }) => return Ok(done),
                Ok(Message::Reply { reply: Reply::Error(error), .. }) => {
                    return Err(match error.code {
                        DECLINED => ControlError::Declined(error.message),
                        // A gateway of another version.
                        METHOD_NOT_FOUND => {
                            ControlError::Declined("it has another version".to_owned())
                        }
                        _ => ControlError::Refused(error.message),
                    });
                }
                Ok(Message::Notification { params, .. }) => {
                    drop(handler(OperationMessage::Event(
                        params.unwrap_or_else(Json::empty_object),
                    )));
                }
                Ok(Message::Request { id, params, .. }) => {
                    let asked = OperationMessage::Ask(params.unwrap_or_else(Json::empty_object));
                    let Some(answer) = handler(asked) else { continue };
                    let typed = answer.await;
                    send(&mut writing, compose::reply(&id, &typed)).await.map_err(failed)?;
                }
                Err(_) => return Err(self.silent()),
            }
        }
    }

    /// Connects to the gateway, if it runs as the same user.
    async fn connect(&self) -> Result<UnixStream, ControlError> {
        let failed = |cause: io::Error| {
            if cause.kind() == io::ErrorKind::ConnectionRefused {
                // Its process has ended without removing the socket.
                drop(fs::remove_file(&self.path));
            }
            ControlError::Io { path: self.path.clone(), cause }
        };
        let stream = UnixStream::connect(&self.path).await.map_err(failed)?;
        let peer = stream.peer_cred().map_err(failed)?;
        if peer.uid() != geteuid().as_raw() {
            return Err(ControlError::Foreign { path: self.path.clone() });
        }
        Ok(stream)
    }

    async fn ask_about(&self) -> Result<About, ControlError> {
        let failed = |cause: io::Error| ControlError::Io { path: self.path.clone(), cause };
        let (reading, mut writing) = self.connect().await?.into_split();
        let line = compose::request(1, ABOUT, Some(&Json::empty_object()));
        send(&mut writing, line).await.map_err(failed)?;
        let line = read_line(&mut BufReader::new(reading), MAX_LINE).await.map_err(failed)?;
        let line = line.ok_or_else(|| self.silent())?;
        match Message::parse(&line) {
            Ok(Message::Reply { reply: Reply::Result(result), .. }) => {
                result.read().map_err(|_| self.silent())
            }
            Ok(Message::Reply { reply: Reply::Error(error), .. }) => {
                Err(ControlError::Refused(error.message))
            }
            Ok(Message::Request { .. } | Message::Notification { .. }) | Err(_) => {
                Err(self.silent())
            }
        }
    }

    fn silent(&self) -> ControlError {
        ControlError::Silent { path: self.path.clone() }
    }
}

/// Parses the reply of a full gateway.
fn declined(line: &[u8]) -> Option<ControlError> {
    match Message::parse(&Bytes::copy_from_slice(line)) {
        Ok(Message::Reply { reply: Reply::Error(error), .. }) if error.code == DECLINED => {
            Some(ControlError::Declined(error.message))
        }
        _ => None,
    }
}

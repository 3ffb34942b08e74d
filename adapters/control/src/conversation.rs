//! An operation that runs in the gateway.
//!
//! Its events and questions go to the shell as they come, and answers come back. A shell that
//! disconnects ends it.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use capstan_hub::ports::BoxFuture;
use capstan_wire::{Json, Message, Reply, RequestId, compose};
use futures::channel::oneshot;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::channel;
use tokio::time::timeout;

use crate::MAX_LINE;
use crate::message::{ASK, EVENT};
use crate::server::{ControlEndpoint, Declined};

/// Timeout for a shell to read a message: people read page by page.
const MAX_PAUSE: Duration = Duration::from_mins(10);

/// Capacity of the queue of events and questions to the shell.
const MAX_WAITING: usize = 1024;

/// A message of a running operation to the shell.
#[derive(Debug)]
pub enum ToShell {
    /// An event.
    Event(Json),
    /// A question. The sender is dropped when there is no answer.
    Ask(Json, oneshot::Sender<Json>),
}

/// The shell's handler of messages. A question returns its answer.
pub type Handler<'a> = &'a (dyn Fn(OperationMessage) -> Option<BoxFuture<'static, Json>> + Sync);

/// A message of a running operation, at the shell.
#[derive(Debug)]
pub enum OperationMessage {
    /// An event.
    Event(Json),
    /// A question.
    Ask(Json),
}

/// The gateway's side of one conversation.
pub(crate) struct Shell<'a> {
    pub(crate) reading: &'a mut BufReader<OwnedReadHalf>,
    pub(crate) writing: &'a mut OwnedWriteHalf,
}

// === impl Shell ===

impl Shell<'_> {
    /// Runs an operation to its end, or until the shell disconnects.
    pub(crate) async fn run(
        &mut self,
        endpoint: &dyn ControlEndpoint,
        request: Json,
    ) -> io::Result<Result<Json, Declined>> {
        let (events, mut coming) = channel(MAX_WAITING);
        let mut running = endpoint.run(request, events);
        let mut asked: HashMap<RequestId, oneshot::Sender<Json>> = HashMap::new();
        let (mut number, mut line) = (0, Vec::new());
        loop {
            tokio::select! {
                biased;
                Some(event) = coming.recv() => {
                    let line = match event {
                        ToShell::Event(event) => compose::notification(EVENT, Some(&event)),
                        ToShell::Ask(question, answer) => {
                            number += 1;
                            asked.insert(RequestId::Number(number), answer);
                            let id = u64::try_from(number).unwrap_or_default();
                            compose::request(id, ASK, Some(&question))
                        }
                    };
                    send(self.writing, line).await?;
                }
                done = &mut running => {
                    // Its last events go out before its result.
                    drop(running);
                    while let Ok(ToShell::Event(event)) = coming.try_recv() {
                        send(self.writing, compose::notification(EVENT, Some(&event))).await?;
                    }
                    return Ok(done);
                }
                // A partial line is kept when another branch wins.
                read = read_more(self.reading, &mut line) => {
                    read?;
                    let line = std::mem::take(&mut line).into();
                    if let Ok(Message::Reply { id: Some(id), reply: Reply::Result(answered) }) =
                        Message::parse(&line)
                        && let Some(answer) = asked.remove(&id)
                    {
                        // The operation may have stopped waiting.
                        drop(answer.send(answered));
                    }
                }
            }
        }
    }
}

/// Reads the rest of a line. Cancel-safe.
async fn read_more(reading: &mut BufReader<OwnedReadHalf>, line: &mut Vec<u8>) -> io::Result<()> {
    let most = MAX_LINE.saturating_sub(line.len());
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    reading.take(most).read_until(b'\n', line).await?;
    match line.pop() {
        Some(b'\n') => Ok(()),
        Some(_) | None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub(crate) async fn send(writing: &mut OwnedWriteHalf, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    timeout(MAX_PAUSE, writing.write_all(&line)).await?
}

//! A command that runs in the gateway: what it says goes to the shell as it comes, and what it asks
//! comes back from there. A shell that goes away ends it.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use capstan_hub::ports::BoxFuture;
use capstan_wire::{Json, Message, Reply, RequestId, compose};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use crate::MAX_LINE;
use crate::message::{ASK, SAID};
use crate::server::{NotHere, Steered};

/// How long a shell may take to read what it is told: people read page by page.
const MAX_PAUSE: Duration = Duration::from_mins(10);

/// What happens while a command runs.
#[derive(Debug)]
pub enum ShellEvent {
    /// It says something.
    Said(Json),
    /// It asks something, and waits for the answer. The sender is dropped when there is none.
    Ask(Json, SyncSender<Json>),
}

/// The shell's end of what a command says and asks. A question gives back what answers it.
pub type Hears<'a> = &'a (dyn Fn(ShellLine) -> Option<BoxFuture<'static, Json>> + Sync);

/// What arrives at the shell.
#[derive(Debug)]
pub enum ShellLine {
    /// The command says something.
    Said(Json),
    /// The command asks something.
    Ask(Json),
}

/// The gateway's end of one such conversation.
pub(crate) struct Shell<'a> {
    pub(crate) reading: &'a mut BufReader<OwnedReadHalf>,
    pub(crate) writing: &'a mut OwnedWriteHalf,
}

// === impl Shell ===

impl Shell<'_> {
    /// Runs a command to its end, or until the shell is gone.
    pub(crate) async fn run(
        &mut self,
        steered: &dyn Steered,
        order: Json,
    ) -> io::Result<Result<Json, NotHere>> {
        let (events, mut coming) = unbounded_channel();
        let mut running = steered.run(order, events);
        let mut asked: HashMap<RequestId, SyncSender<Json>> = HashMap::new();
        let (mut number, mut line) = (0, Vec::new());
        loop {
            tokio::select! {
                biased;
                Some(event) = coming.recv() => {
                    let line = match event {
                        ShellEvent::Said(said) => compose::notification(SAID, Some(&said)),
                        ShellEvent::Ask(prompt, answer) => {
                            number += 1;
                            asked.insert(RequestId::Number(number), answer);
                            let id = u64::try_from(number).unwrap_or_default();
                            compose::request(id, ASK, Some(&prompt))
                        }
                    };
                    send(self.writing, line).await?;
                }
                done = &mut running => {
                    // What was said last is still to be told.
                    drop(running);
                    while let Ok(ShellEvent::Said(said)) = coming.try_recv() {
                        send(self.writing, compose::notification(SAID, Some(&said))).await?;
                    }
                    return Ok(done);
                }
                // What has come of a line stays, whatever happens in between.
                read = read_more(self.reading, &mut line) => {
                    read?;
                    let line = std::mem::take(&mut line).into();
                    if let Ok(Message::Reply { id: Some(id), reply: Reply::Result(typed) }) =
                        Message::parse(&line)
                        && let Some(answer) = asked.remove(&id)
                    {
                        // Nobody need wait for it any more.
                        drop(answer.send(typed));
                    }
                }
            }
        }
    }
}

/// Reads to the end of a line that has begun.
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

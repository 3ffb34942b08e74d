//! Serves a stdio connection: writes, reads, and ends the process when either side is done.

use std::sync::Arc;
use std::time::Duration;

use capstan_process::line::{Line, LineError, Lines};
use capstan_process::spawn::{Exit, Keeper};
use capstan_process::stderr::Ring;
use capstan_wire::line::flatten;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{Instrument, warn};

use crate::channel::dispatch::dispatch;
use crate::channel::inbound::Inbound;
use crate::channel::requests::Requests;
use crate::fault::Fault;
use crate::server::tracker::ConnectionTracker;

/// The largest number of messages per write.
const BATCH: usize = 64;

/// How long writing the queued messages may take when a connection ends.
const WRITE_GRACE: Duration = Duration::from_millis(50);

/// How long reading the remaining output of an ended server may take.
const READ_GRACE: Duration = Duration::from_millis(100);

/// How long a server may run after its input is closed before it gets a signal.
const EOF_GRACE: Duration = Duration::from_millis(15);

/// How long to wait for the exit code of a server that seems to have ended.
const CODE_GRACE: Duration = Duration::from_secs(1);

/// How long a keeper may take to end its tree.
const KEEPER_GRACE: Duration = Duration::from_secs(4);

/// The offset between a signal's number and a keeper's exit code.
/// A keeper adds it to the number of the signal that ended its server.
const BY_SIGNAL: i32 = 128;

/// Ends the process when the connection is over, and reports the reason.
pub(crate) struct Supervisor {
    pub(crate) keeper: Keeper,
    pub(crate) ring: Ring,
    /// Reads stderr into the ring.
    pub(crate) stderr: JoinHandle<()>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) tracker: Arc<ConnectionTracker>,
}

/// The streams of a server, the queue for its input and the handler for its output.
pub(crate) struct Streams {
    pub(crate) stdin: ChildStdin,
    pub(crate) outgoing: mpsc::Receiver<Vec<u8>>,
    pub(crate) stdout: ChildStdout,
    /// The longest line accepted, in bytes.
    pub(crate) max_line: usize,
    pub(crate) inbound: Inbound,
}

/// The reason why a connection is over.
#[derive(Debug)]
enum EndReason {
    /// We closed the connection.
    Stopped,
    /// Writing to the server's input failed.
    Input,
    /// The server's output has ended.
    Output,
    /// The server's output is unusable.
    Broken(String),
    /// The keeper has ended.
    Keeper,
}

// === impl Supervisor ===

impl Supervisor {
    /// Serves the connection until either side is done, then ends the process.
    pub(crate) async fn run(mut self, streams: Streams, stopped: oneshot::Receiver<()>) {
        let reason = self.serve(streams, stopped).await;
        // Both streams are closed now, which a well-behaved server takes as the request to end.
        let grace = match reason {
            EndReason::Stopped | EndReason::Broken(_) => EOF_GRACE,
            EndReason::Input | EndReason::Output | EndReason::Keeper => CODE_GRACE,
        };
        let ended = timeout(grace, self.keeper.ended()).await.ok();
        if ended.is_some() {
            // A process that left the tree may hold stderr open.
            drop(timeout(READ_GRACE, &mut self.stderr).await);
        }
        let text = self.describe(reason, ended);
        self.requests.lose(Fault::Unreachable(text));
        if ended.is_none() {
            self.end().await;
        }
    }

    /// Serves until either side is done. Messages queued or printed by then are not lost.
    async fn serve(&mut self, streams: Streams, stopped: oneshot::Receiver<()>) -> EndReason {
        let Streams { stdin, outgoing, stdout, max_line, inbound } = streams;
        let (finish, finishing) = oneshot::channel();
        let writer = write_all(stdin, outgoing, finishing);
        let mut writer = tokio::spawn(writer.in_current_span());
        let reader = read_all(stdout, max_line, inbound);
        tokio::pin!(reader);
        let reason = tokio::select! {
            reason = &mut reader => reason,
            _ = stopped => EndReason::Stopped,
            () = self.tracker.closing() => EndReason::Stopped,
            _ = &mut writer => EndReason::Input,
            _ = self.keeper.ended() => EndReason::Keeper,
        };
        if !writer.is_finished() {
            drop(finish);
            if timeout(WRITE_GRACE, &mut writer).await.is_err() {
                writer.abort();
                // Awaited, so that nothing can be queued after the pending requests are woken.
                drop(writer.await);
            }
        }
        match reason {
            // A keeper ends last, unless it was killed.
            EndReason::Keeper => self.keeper.kill(),
            EndReason::Input => {}
            EndReason::Stopped | EndReason::Output | EndReason::Broken(_) => return reason,
        }
        drop(timeout(READ_GRACE, &mut reader).await);
        reason
    }

    async fn end(&mut self) {
        self.keeper.stop();
        if timeout(KEEPER_GRACE, self.keeper.ended()).await.is_err() {
            warn!("a keeper did not end in time; its process group is killed");
            self.keeper.kill();
        }
    }

    fn describe(&self, reason: EndReason, ended: Option<Exit>) -> String {
        let what = match (reason, ended) {
            (EndReason::Stopped, _) => return "it was stopped".to_owned(),
            (EndReason::Broken(problem), _) => return problem,
            (_, Some(Exit::Code(code))) => match signal(code) {
                Some(name) => format!("it was killed by signal {} ({name})", code - BY_SIGNAL),
                None => format!("it exited with code {code}"),
            },
            (_, Some(Exit::Killed)) => "its keeper was killed".to_owned(),
            (EndReason::Input, None) => "it closed its input".to_owned(),
            (EndReason::Output | EndReason::Keeper, None) => "it closed its output".to_owned(),
        };
        match self.ring.last() {
            Some(line) => format!("{what}; last line of its output: {line}"),
            None => what,
        }
    }
}

/// The name of the signal that ended a server, from the exit code of its keeper.
fn signal(code: i32) -> Option<&'static str> {
    Some(match code - BY_SIGNAL {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// Writes the queued messages in batches; on `finishing`, writes those that are queued and ends.
async fn write_all(
    mut stdin: ChildStdin,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
    mut finishing: oneshot::Receiver<()>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut text = Vec::new();
    let mut is_open = true;
    loop {
        let count = tokio::select! {
            biased;
            _ = &mut finishing, if is_open => {
                is_open = false;
                outgoing.close();
                continue;
            }
            count = outgoing.recv_many(&mut batch, BATCH) => count,
        };
        if count == 0 {
            return;
        }
        text.clear();
        for mut line in batch.drain(..) {
            flatten(&mut line);
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        if stdin.write_all(&text).await.is_err() {
            return;
        }
    }
}

/// Dispatches every message until the stream ends.
async fn read_all(stdout: ChildStdout, max_line: usize, inbound: Inbound) -> EndReason {
    let mut lines = Lines::new(stdout, max_line);
    loop {
        match lines.next().await {
            Ok(Some(Line::Whole(line))) => dispatch(&line, &inbound, None).await,
            Ok(Some(Line::Cut { beginning, end })) => {
                inbound.too_long(&beginning, &end, max_line);
            }
            Ok(None) => return EndReason::Output,
            Err(error) => {
                if let LineError::Endless { printed, beginning } = &error {
                    inbound.endless(beginning, *printed, &error.to_string());
                }
                return EndReason::Broken(error.to_string());
            }
        }
    }
}

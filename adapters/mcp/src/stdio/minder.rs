//! Serves a connection: writes, reads, and ends the process when either side is done.

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
use crate::server::alive::Alive;

/// Messages written at once.
const BATCH: usize = 64;

/// How long the messages that are queued when a connection ends may take to be written.
const WRITE_GRACE: Duration = Duration::from_millis(50);

/// How long what a server printed before it ended may take to be read.
const READ_GRACE: Duration = Duration::from_millis(100);

/// How long a server that was asked to end by closing its input has before it is told by signal.
const EOF_GRACE: Duration = Duration::from_millis(15);

/// How long the exit code of a server that seems to have ended is waited for.
const CODE_GRACE: Duration = Duration::from_secs(1);

/// How long a keeper may take to end its tree.
const KEEPER_GRACE: Duration = Duration::from_secs(4);

/// What a keeper adds to the number of the signal that ended its server, to make an exit code.
const BY_SIGNAL: i32 = 128;

/// Ends the process when the connection is over, and says why it was.
pub(crate) struct Minder {
    pub(crate) keeper: Keeper,
    pub(crate) ring: Ring,
    /// Reads stderr into the ring.
    pub(crate) stderr: JoinHandle<()>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) alive: Arc<Alive>,
}

/// The streams between a server and us, and what goes through them.
pub(crate) struct Streams {
    pub(crate) stdin: ChildStdin,
    pub(crate) outgoing: mpsc::Receiver<Vec<u8>>,
    pub(crate) stdout: ChildStdout,
    /// The longest line that is taken.
    pub(crate) max_line: usize,
    pub(crate) inbound: Inbound,
}

/// Why a connection is over.
#[derive(Debug)]
enum Over {
    /// We want no more of it.
    Stopped,
    /// The server's input cannot be written to any more.
    Input,
    /// The server's output has ended.
    Output,
    /// The server's output makes no sense.
    Broken(String),
    /// The keeper has ended.
    Keeper,
}

// === impl Minder ===

impl Minder {
    /// Serves the connection until either side is done, then ends the process.
    pub(crate) async fn mind(mut self, streams: Streams, stopped: oneshot::Receiver<()>) {
        let over = self.serve(streams, stopped).await;
        // Both streams are closed now, which asks a well-behaved server to end.
        let grace = match over {
            Over::Stopped | Over::Broken(_) => EOF_GRACE,
            Over::Input | Over::Output | Over::Keeper => CODE_GRACE,
        };
        let ended = timeout(grace, self.keeper.ended()).await.ok();
        if ended.is_some() {
            // Somebody who left the tree may hold stderr open.
            drop(timeout(READ_GRACE, &mut self.stderr).await);
        }
        let reason = self.describe(over, ended);
        self.requests.lose(Fault::Unreachable(reason));
        if ended.is_none() {
            self.end().await;
        }
    }

    /// Serves until either side is done. Nothing that was queued or printed by then is lost.
    async fn serve(&mut self, streams: Streams, stopped: oneshot::Receiver<()>) -> Over {
        let Streams { stdin, outgoing, stdout, max_line, inbound } = streams;
        let (finish, finishing) = oneshot::channel();
        let writer = write_all(stdin, outgoing, finishing);
        let mut writer = tokio::spawn(writer.in_current_span());
        let reader = read_all(stdout, max_line, inbound);
        tokio::pin!(reader);
        let over = tokio::select! {
            over = &mut reader => over,
            _ = stopped => Over::Stopped,
            () = self.alive.closing() => Over::Stopped,
            _ = &mut writer => Over::Input,
            _ = self.keeper.ended() => Over::Keeper,
        };
        if !writer.is_finished() {
            drop(finish);
            if timeout(WRITE_GRACE, &mut writer).await.is_err() {
                writer.abort();
                // Waited for, so that nobody can queue anything when we wake up those who wait.
                drop(writer.await);
            }
        }
        match over {
            // A keeper ends last, unless somebody killed it.
            Over::Keeper => self.keeper.kill(),
            Over::Input => {}
            Over::Stopped | Over::Output | Over::Broken(_) => return over,
        }
        drop(timeout(READ_GRACE, &mut reader).await);
        over
    }

    async fn end(&mut self) {
        self.keeper.stop();
        if timeout(KEEPER_GRACE, self.keeper.ended()).await.is_err() {
            warn!("a keeper did not end in time; its process group is killed");
            self.keeper.kill();
        }
    }

    fn describe(&self, over: Over, ended: Option<Exit>) -> String {
        let what = match (over, ended) {
            (Over::Stopped, _) => return "it was stopped".to_owned(),
            (Over::Broken(problem), _) => return problem,
            (_, Some(Exit::Code(code))) => match signal(code) {
                Some(name) => format!("it was killed by signal {} ({name})", code - BY_SIGNAL),
                None => format!("it exited with code {code}"),
            },
            (_, Some(Exit::Killed)) => "its keeper was killed".to_owned(),
            (Over::Input, None) => "it closed its input".to_owned(),
            (Over::Output | Over::Keeper, None) => "it closed its output".to_owned(),
        };
        match self.ring.last() {
            Some(line) => format!("{what}; its last words: {line}"),
            None => what,
        }
    }
}

/// The name of the signal that ended a server, by the exit code of its keeper.
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

/// Writes what is queued, as much as there is at once; told to finish, what is queued by then.
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

/// Hands on every message until the stream ends.
async fn read_all(stdout: ChildStdout, max_line: usize, inbound: Inbound) -> Over {
    let mut lines = Lines::new(stdout, max_line);
    loop {
        match lines.next().await {
            Ok(Some(Line::Whole(line))) => dispatch(&line, &inbound, None).await,
            Ok(Some(Line::Cut { beginning, end })) => {
                inbound.too_long((&beginning, &end), max_line);
            }
            Ok(None) => return Over::Output,
            Err(error) => {
                if let LineError::Endless { printed, beginning } = &error {
                    inbound.endless(beginning, *printed, &error.to_string());
                }
                return Over::Broken(error.to_string());
            }
        }
    }
}

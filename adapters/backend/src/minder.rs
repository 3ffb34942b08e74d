//! Serves a connection: writes, reads, and ends the process when either side is done.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_wire::{Json, Message, RequestId, object};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::alive::Alive;
use crate::inbound::Inbound;
use crate::line::{Lines, MAX_LINE};
use crate::pending::Pending;
use crate::spawn::Keeper;
use crate::stderr::Ring;

/// Messages written at once.
const BATCH: usize = 64;

/// How long a server that was asked to end by closing its input has before it is told by signal.
const EOF_GRACE: Duration = Duration::from_millis(50);

/// How long a keeper may take to end its tree.
const KEEPER_GRACE: Duration = Duration::from_secs(4);

/// Ends the process when the connection is over, and says why it was.
pub(crate) struct Minder {
    pub(crate) keeper: Keeper,
    pub(crate) ring: Ring,
    pub(crate) tell_gone: watch::Sender<Option<String>>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) alive: Arc<Alive>,
}

/// The streams between a server and us, and what goes through them.
pub(crate) struct Streams {
    pub(crate) stdin: ChildStdin,
    pub(crate) outgoing: mpsc::Receiver<Vec<u8>>,
    pub(crate) stdout: ChildStdout,
    pub(crate) inbound: Inbound,
}

// === impl Minder ===

impl Minder {
    /// Serves the connection until either side is done, then ends the process.
    pub(crate) async fn mind(mut self, streams: Streams, stopped: oneshot::Receiver<()>) {
        let Streams { stdin, outgoing, stdout, inbound } = streams;
        let mut writer = tokio::spawn(write_all(stdin, outgoing));
        let reason = tokio::select! {
            reason = read_all(stdout, inbound) => Some(reason),
            _ = stopped => None,
            () = self.alive.closing() => None,
            // The server closed its input; what it still prints does not matter any more.
            _ = &mut writer => Some("it closed its input".to_owned()),
        };
        writer.abort();
        // Its input is closed now, which asks a well-behaved server to end.
        let mut code = timeout(EOF_GRACE, self.keeper.ended()).await.ok();
        if code.is_none() {
            self.keeper.stop();
            code = timeout(KEEPER_GRACE, self.keeper.ended()).await.ok();
        }
        if code.is_none() {
            warn!("a keeper did not end in time; its process group is killed");
            self.keeper.kill();
        }
        let reason = self.describe(reason, code.flatten());
        self.tell_gone.send_replace(Some(reason));
        // Last, so that whoever wakes up finds the reason.
        self.pending.clear();
    }

    fn describe(&self, reason: Option<String>, code: Option<i32>) -> String {
        let what = match (reason, code) {
            (None, _) => return "it was stopped".to_owned(),
            (Some(reason), _) if !reason.is_empty() => reason,
            (Some(_), Some(code)) => format!("it exited with code {code}"),
            (Some(_), None) => "it closed its output".to_owned(),
        };
        match self.ring.last() {
            Some(line) => format!("{what}; its last words: {line}"),
            None => what,
        }
    }
}

/// Writes what is queued, as much as there is at once.
async fn write_all(mut stdin: ChildStdin, mut outgoing: mpsc::Receiver<Vec<u8>>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut text = Vec::new();
    while outgoing.recv_many(&mut batch, BATCH).await > 0 {
        text.clear();
        for line in batch.drain(..) {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        if stdin.write_all(&text).await.is_err() {
            return;
        }
    }
}

/// Hands on every message until the stream ends; the reason, empty when it simply ended.
async fn read_all(stdout: ChildStdout, inbound: Inbound) -> String {
    let mut lines = Lines::new(stdout, MAX_LINE);
    loop {
        match lines.next().await {
            Ok(Some(line)) => take(&line, &inbound).await,
            Ok(None) => return String::new(),
            Err(error) => return error.to_string(),
        }
    }
}

async fn take(line: &Bytes, inbound: &Inbound) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    inbound.log(line);
    // Servers of 2025-03-26 may send several messages in one line.
    let batch = line.first() == Some(&b'[');
    let parts = if batch {
        Json::parse(line.clone()).ok().and_then(|j| object::items(&j).ok())
    } else {
        None
    };
    match parts {
        Some(parts) => {
            for part in parts {
                take_one(part.bytes(), inbound).await;
            }
        }
        None => take_one(line, inbound).await,
    }
}

async fn take_one(line: &Bytes, inbound: &Inbound) {
    match Message::parse(line) {
        Ok(Message::Reply { id: Some(RequestId::Number(id)), reply }) => {
            if let Ok(id) = u64::try_from(id) {
                inbound.pending.answer(id, reply);
            }
        }
        Ok(Message::Reply { reply, .. }) => {
            debug!(server = %inbound.server, ?reply, "a reply to nothing we asked");
        }
        Ok(Message::Notification { method, params }) => {
            inbound.notification(&method, params.as_ref());
        }
        Ok(Message::Request { id, method, params }) => inbound.request(id, &method, params).await,
        Err(_) => inbound.not_protocol(line),
    }
}

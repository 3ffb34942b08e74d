//! The stdio transport: one client over standard input and output.
//!
//! [`serve`] carries messages until the client is gone. `conversation` handles each one, `batch`
//! collects the answers of a batch, `lines` and `outbox` read and write, and [`streams`] opens the
//! standard streams.
//!
//! **Invariant:** stdout belongs to the protocol. Nothing but messages is ever written there.

mod batch;
mod conversation;
mod lines;
mod outbox;
pub mod streams;

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use capstan_model::Caller;
use tokio::io::AsyncRead;
use tokio::time::{Instant, MissedTickBehavior};

use crate::gateway::shutdown::LAST_WORDS;
use crate::{Gateway, View};
use conversation::Conversation;
use lines::{Line, Lines};
use streams::Outlet;

/// Maximum length of a message, in bytes.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// Time for running requests after the client has closed its sending side, while it still reads.
const CLOSED: Duration = Duration::from_secs(10);

/// Interval of the check if a client that has closed its sending side still reads.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// Serves one client until it closes its sending side, or until `stop`.
///
/// Running requests get time to end: `ending` after `stop`; after the client has closed its side,
/// as long as it reads their answers, up to a limit.
///
/// # Errors
/// If reading from or writing to the client fails.
pub async fn serve(
    gateway: Arc<Gateway>,
    (caller, view): (Arc<Caller>, View),
    input: impl AsyncRead + Unpin,
    mut output: impl Outlet,
    stop: impl Future<Output = ()>,
    ending: Duration,
) -> io::Result<()> {
    gateway.own.store(true, Ordering::Relaxed);
    let mut talk = Conversation::new(Arc::clone(&gateway), caller, view);
    let mut lines = Lines::new(input, MAX_LINE);
    let result = carry(&mut talk, &mut lines, &mut output, stop, ending).await;
    talk.leave();
    let rest = async {
        while result.is_ok() && !talk.out.is_empty() {
            talk.out.write_to(&mut output).await?;
        }
        io::Result::Ok(())
    };
    match tokio::time::timeout(LAST_WORDS, rest).await {
        Ok(flushed) => result.and(flushed),
        Err(_) => result,
    }
}

/// Runs the message loop.
async fn carry(
    talk: &mut Conversation,
    lines: &mut Lines<impl AsyncRead + Unpin>,
    output: &mut impl Outlet,
    stop: impl Future<Output = ()>,
    time: Duration,
) -> io::Result<()> {
    let gateway = Arc::clone(&talk.gateway);
    let mut stop = pin!(stop);
    let mut shutdown: Option<Shutdown<'_>> = None;
    let (mut open, mut asked, mut gone) = (true, false, false);
    let mut probe = tokio::time::interval(PROBE_INTERVAL);
    // First polled when the client closes its side, which may be hours later.
    probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        while talk.takes()
            && let Some(line) = lines.buffered()
        {
            take(talk, line);
        }
        if shutdown.as_ref().is_some_and(|shutdown| shutdown.drained) && talk.is_idle() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = &mut stop, if !asked => {
                asked = true;
                // A client that has closed its side and stops the gateway waits for nothing more.
                shutdown = Some(Shutdown::new(&gateway, if open { time } else { Duration::ZERO }));
            }
            late = ending(&mut shutdown) => match late {
                ShutdownEvent::Drained => {}
                ShutdownEvent::DeadlineReached => gateway.give_up(),
                ShutdownEvent::GraceOver => return Ok(()),
            },
            // Back-pressure: no more output is produced than the client reads.
            event = talk.work.next(), if talk.out.waiting() < MAX_LINE => talk.on_all(event),
            written = talk.out.write_to(output), if !talk.out.is_empty() => written?,
            read = lines.fill(), if open && talk.takes() => if read? == 0 {
                open = false;
                if let Some(line) = lines.rest() {
                    take(talk, line);
                }
                if shutdown.is_none() {
                    shutdown = Some(Shutdown::new(&gateway, CLOSED));
                }
            },
            _ = probe.tick(), if !open && !gone => {
                gone = !output.is_read();
                if gone && !asked {
                    shutdown = Some(Shutdown::new(&gateway, Duration::ZERO));
                }
            }
        }
    }
}

/// A shutdown in progress: new requests are refused, and running ones have a deadline.
struct Shutdown<'a> {
    drain: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    limit: Pin<Box<tokio::time::Sleep>>,
    drained: bool,
    given_up: bool,
}

/// Events of a shutdown.
enum ShutdownEvent {
    Drained,
    DeadlineReached,
    /// The time for clients to read their last messages is over.
    GraceOver,
}

// === impl Shutdown ===

impl<'a> Shutdown<'a> {
    fn new(gateway: &'a Gateway, time: Duration) -> Self {
        let limit = Box::pin(tokio::time::sleep(time));
        Self { drain: Box::pin(gateway.drain()), limit, drained: false, given_up: false }
    }
}

async fn ending(shutdown: &mut Option<Shutdown<'_>>) -> ShutdownEvent {
    let Some(shutdown) = shutdown else { return std::future::pending().await };
    tokio::select! {
        () = &mut shutdown.drain, if !shutdown.drained => {
            shutdown.drained = true;
            ShutdownEvent::Drained
        }
        () = &mut shutdown.limit => {
            if std::mem::replace(&mut shutdown.given_up, true) {
                return ShutdownEvent::GraceOver;
            }
            shutdown.limit.as_mut().reset(Instant::now() + LAST_WORDS);
            ShutdownEvent::DeadlineReached
        }
    }
}

fn take(talk: &mut Conversation, line: Line) {
    match line {
        Line::Whole(line) => talk.take(&line),
        Line::TooLong => talk.refuse_long(MAX_LINE),
    }
}

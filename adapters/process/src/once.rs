//! Runs a program once and reads what it prints: for programs that do not speak MCP.
//!
//! It is started as servers are, by `spawn` behind a keeper. When the future is dropped, or time is
//! up, the whole tree below the keeper is ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use capstan_model::Secret;
use capstan_safety::clean::visible;
use capstan_safety::mask::Masker;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::spawn::{Exit, Keeper, Launch, SpawnError, find, spawn};

/// How long the keeper has to end the tree before it is killed itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Read at a time.
const CHUNK: usize = 16 * 1024;

/// The longest piece of a line that is handed to whoever listens.
const MAX_LINE: usize = 4 * 1024;

/// A program that can be run, and what is around it.
#[derive(Clone, Debug)]
pub struct Program {
    /// A name to be found in `PATH`, or a path.
    pub command: String,
    /// Its whole environment.
    pub environment: BTreeMap<String, Secret<String>>,
    /// Values that must not appear in anything we show.
    pub secrets: Vec<Secret<String>>,
    /// Where it runs; `None` for our own folder.
    pub cwd: Option<PathBuf>,
    /// Our own program, which becomes the keeper.
    pub keeper: PathBuf,
}

/// What a run may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// How many bytes of each of its two streams are kept.
    pub output: usize,
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout.
    pub stdout: Captured,
    /// What it wrote to stderr.
    pub stderr: Captured,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code; 128 and the number where a signal ended it.
    Code(i32),
    /// Somebody killed its keeper.
    Killed,
    /// It took too long and was ended.
    TimedOut,
}

/// The beginning of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// What was kept.
    pub bytes: Vec<u8>,
    /// How many bytes followed that were not.
    pub cut: u64,
}

// === impl Program ===

impl Program {
    /// Where the program is.
    pub fn find(&self) -> Result<PathBuf, SpawnError> {
        find(self.launch(&[]))
    }

    /// Runs it with these arguments and no input, and tells `heard` each line of its stdout.
    pub async fn run(
        &self,
        args: &[String],
        limits: Limits,
        heard: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Output, SpawnError> {
        let spawned = spawn(self.launch(args))?;
        // It reads the end of its input at once, so that it cannot wait for what nobody types.
        drop(spawned.stdin);
        let mut keeper = spawned.keeper;
        let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
        let ended = {
            let mut lines = Lines::new(heard);
            let out = stdout.fill(spawned.stdout, limits.output, |bytes| lines.take(bytes));
            let err = stderr.fill(spawned.stderr, limits.output, |_| {});
            let whole = async { tokio::join!(keeper.ended(), out, err).0 };
            timeout(limits.time, whole).await
        };
        let end = match ended {
            Ok(Exit::Code(code)) => End::Code(code),
            Ok(Exit::Killed) => End::Killed,
            Err(_) => {
                end(&mut keeper).await;
                End::TimedOut
            }
        };
        Ok(Output { end, stdout, stderr })
    }

    /// `text` without the program's secrets, and without what a terminal would obey.
    pub fn mask(&self, text: &str) -> String {
        let secrets = self.secrets.iter().map(|secret| secret.reveal().clone());
        visible(&Masker::beside(secrets, &self.environment).mask(text))
    }

    fn launch<'a>(&'a self, args: &'a [String]) -> Launch<'a> {
        Launch {
            command: &self.command,
            args,
            environment: &self.environment,
            cwd: self.cwd.as_deref(),
            keeper: &self.keeper,
        }
    }
}

async fn end(keeper: &mut Keeper) {
    keeper.stop();
    if timeout(PATIENCE, keeper.ended()).await.is_err() {
        keeper.kill();
    }
}

// === impl Captured ===

impl Captured {
    /// Reads to the end, whatever comes: a program whose output nobody reads would stand still.
    async fn fill(
        &mut self,
        mut stream: impl AsyncRead + Unpin,
        limit: usize,
        mut heard: impl FnMut(&[u8]),
    ) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = stream.read(&mut chunk).await {
            let bytes = chunk.get(..read).unwrap_or_default();
            heard(bytes);
            let room = limit.saturating_sub(self.bytes.len());
            let (kept, cut) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.bytes.extend_from_slice(kept);
            self.cut = self.cut.saturating_add(u64::try_from(cut.len()).unwrap_or(u64::MAX));
        }
    }
}

/// Cuts a stream into lines.
struct Lines<'a> {
    heard: &'a mut (dyn FnMut(&str) + Send),
    begun: Vec<u8>,
}

// === impl Lines ===

impl<'a> Lines<'a> {
    fn new(heard: &'a mut (dyn FnMut(&str) + Send)) -> Self {
        Self { heard, begun: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, ends) = match piece.split_last() {
                Some((b'\n' | b'\r', text)) => (text, true),
                Some(_) | None => (piece, false),
            };
            let room = MAX_LINE.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(text.get(..room).unwrap_or(text));
            if ends {
                let line = std::mem::take(&mut self.begun);
                let line = String::from_utf8_lossy(&line);
                if !line.trim().is_empty() {
                    (self.heard)(&line);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_is_kept_up_to_its_limit_and_the_rest_is_counted() {
        let mut captured = Captured::default();
        let text = "x".repeat(CHUNK + 10);
        captured.fill(text.as_bytes(), 100, |_| {}).await;
        assert_eq!((captured.bytes.len(), captured.cut), (100, 16_294));
    }

    #[test]
    fn lines_are_heard_whole_however_they_arrive() {
        let mut lines = Vec::new();
        let mut heard = |line: &str| lines.push(line.to_owned());
        let mut cutter = Lines::new(&mut heard);
        for piece in ["on", "e\ntw", "o\r\n\n", "10%\r20%\rlast"] {
            cutter.take(piece.as_bytes());
        }
        cutter.take("x".repeat(2 * MAX_LINE).as_bytes());
        cutter.take(b"\n");
        let last = lines.pop().unwrap();
        assert_eq!(lines, ["one", "two", "10%", "20%"]);
        assert_eq!(last.len(), MAX_LINE);
    }
}

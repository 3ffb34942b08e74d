//! Runs a program once and reads its output: for programs that do not speak MCP.
//!
//! It is started like a server, by `spawn` behind a keeper. When the future is dropped or the time
//! limit is reached, the whole tree below the keeper is ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::Secret;
use capstan_safety::clean::visible;
use capstan_safety::mask::Masker;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::sandbox::Sandbox;
use crate::spawn::{Exit, Keeper, Launch, SpawnError, find, spawn};

/// How long the keeper may take to end the tree before it is killed itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of bytes read at a time.
const CHUNK: usize = 16 * 1024;

/// The longest piece of a line that is passed to the callback.
const MAX_LINE: usize = 4 * 1024;

/// A program that can be run, with its environment.
#[derive(Clone, Debug)]
pub struct Program {
    /// A name to be found in `PATH`, or a path.
    pub command: String,
    /// The program's whole environment.
    pub environment: BTreeMap<String, Secret<String>>,
    /// Values that must not appear in anything we show.
    pub secrets: Vec<Secret<String>>,
    /// The working directory; `None` for our own.
    pub cwd: Option<PathBuf>,
    /// The path of our own program, which runs as the keeper.
    pub keeper: PathBuf,
    /// The sandbox to run it in.
    pub sandbox: Option<Arc<Sandbox>>,
}

/// The limits of one run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest run time.
    pub time: Duration,
    /// The number of bytes kept of each of the two output streams.
    pub output: usize,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The way in which the program ended.
    pub end: End,
    /// The output on stdout.
    pub stdout: Captured,
    /// The output on stderr.
    pub stderr: Captured,
}

/// The way in which a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code; 128 plus the number if a signal ended it.
    Code(i32),
    /// The keeper was killed.
    Killed,
    /// The time limit was reached and the program was ended.
    TimedOut,
}

/// The beginning of an output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The bytes that were kept.
    pub bytes: Vec<u8>,
    /// The number of bytes that followed and were dropped.
    pub cut: u64,
}

// === impl Program ===

impl Program {
    /// Finds the program's path.
    pub fn find(&self) -> Result<PathBuf, SpawnError> {
        find(self.launch(&[]))
    }

    /// Runs the program with these arguments and no input. Calls `heard` with each line of stdout.
    pub async fn run(
        &self,
        args: &[String],
        limits: Limits,
        heard: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Output, SpawnError> {
        let spawned = spawn(self.launch(args))?;
        // It reads the end of its input at once, so that it cannot wait for input that never comes.
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

    /// Masks the program's secrets in `text`, and makes terminal control characters visible.
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
            sandbox: self.sandbox.as_deref(),
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
    /// Reads to the end, whatever arrives: a program whose output is not read would block.
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

/// Splits a stream into lines.
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

//! Records what one client and one server say to each other: copies of the streams, and the file.
//!
//! Without a client, [`ask_for_lists`] is one, so that a recording has the lists at least.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use capstan_app::cassette::{Asker, Recorder, Recording, Side};
use capstan_app::{AppError, Environment, Setup, server_settings};
use capstan_config::{Kind, ServerEntry};
use capstan_gateway::stdio::streams::Outlet;
use capstan_gateway::{Gateway, View, stdio};
use capstan_model::{Caller, ServerName};
use capstan_safety::mask::{Masker, mask_tokens};
use serde_json::{Value as Json, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream,
    ReadBuf,
};

use super::DRAIN;

/// The longest line that is recorded, in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// The most pages of one list that are asked for.
const MAX_PAGES: usize = 1000;

/// The size of the pipe between the gateway and [`ask_for_lists`], in bytes.
const PIPE: usize = 64 * 1024;

/// A recording, and the file that it goes to.
pub(crate) struct Tape {
    recorder: Mutex<Recorder>,
    file: PathBuf,
}

/// A stream whose bytes are copied to a recording, line by line.
pub(crate) struct Copied<S> {
    stream: S,
    side: Side,
    tape: Arc<Tape>,
    line: Vec<u8>,
    /// True while the rest of a line is dropped that is too long.
    is_skipping: bool,
}

/// The end of a pipe in this process.
pub(crate) struct Inner(DuplexStream);

/// A server that is recorded, and its client.
#[derive(Clone)]
pub(crate) struct Recorded {
    tape: Arc<Tape>,
    server: ServerName,
    asker: Asker,
}

/// The setup with the recorded server alone.
pub(crate) fn only(setup: &Setup, recording: &Recording) -> Setup {
    let mut loaded = (*setup.loaded).clone();
    loaded.config.servers.retain(|name, _| *name == recording.server);
    Setup { loaded: Arc::new(loaded), files: Arc::clone(&setup.files) }
}

// === impl Recorded ===

impl Recorded {
    pub(crate) fn new(
        environment: &Environment,
        setup: &Setup,
        recording: Recording,
    ) -> Result<Self, AppError> {
        let Recording { server, file, asker } = recording;
        let entry = setup.server(server.as_str())?;
        let masker = Masker::new(secrets(environment, entry));
        let mask = move |text: &str| mask_tokens(&masker.mask(text)).into_owned();
        let tape = Tape::new(Recorder::new(server.as_str(), Box::new(mask)), file)?;
        Ok(Self { tape, server, asker })
    }

    /// Serves one client, and records what is said.
    pub(crate) async fn serve(
        &self,
        gateway: Arc<Gateway>,
        caller: Arc<Caller>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let caller = (caller, View::One(self.server.clone()));
        match self.asker {
            Asker::Client => {
                let (input, output) = stdio::streams::standard();
                let input = Copied::new(input, Side::Client, &self.tape);
                let output = Copied::new(output, Side::Server, &self.tape);
                stdio::serve(gateway, caller, input, output, stop, DRAIN).await
            }
            Asker::Ourselves => {
                let (input, output) = ask_for_lists();
                let input = Copied::new(input, Side::Client, &self.tape);
                let output = Copied::new(output, Side::Server, &self.tape);
                stdio::serve(gateway, caller, input, output, stop, DRAIN).await
            }
        }
    }

    /// Writes the file.
    pub(crate) fn save(&self) -> Result<(), AppError> {
        self.tape.save().map(drop)
    }
}

/// The secrets of a server, which its answers may repeat.
fn secrets(environment: &Environment, entry: &ServerEntry) -> Vec<String> {
    let Ok(server) = &entry.status else { return Vec::new() };
    let secrets = match &server.kind {
        Kind::Stdio(program) => server_settings::program_secrets(environment, entry, program),
        Kind::Cli(cli) => server_settings::program_secrets(environment, entry, &cli.program),
        Kind::Http(remote) | Kind::Sse(remote) => {
            let headers = remote.headers.iter().map(|(_, value)| value.clone());
            headers.chain(server_settings::remote_secrets(entry, remote)).collect()
        }
        Kind::OpenApi(document) => server_settings::document_secrets(entry, document),
    };
    secrets.iter().map(|secret| secret.reveal().clone()).collect()
}

// === impl Tape ===

impl Tape {
    pub(crate) fn new(recorder: Recorder, file: PathBuf) -> Result<Arc<Self>, AppError> {
        if let Ok(old) = fs::File::open(&file) {
            let mut start = [0; 19];
            let read = io::Read::read(&mut io::BufReader::new(old), &mut start).unwrap_or(0);
            if start.get(..read) != Some(b"{\"capstan_cassette\"".as_slice()) {
                let message = format!("{} exists and is no recording", file.display());
                return Err(AppError::usage(message).hint("choose another file with `-o`"));
            }
        }
        let tape = Self { recorder: Mutex::new(recorder), file };
        // Finds out now, and not at the end, whether it can be written.
        tape.save()?;
        Ok(Arc::new(tape))
    }

    /// Writes the file, which is replaced as a whole; returns the number of recorded answers.
    pub(crate) fn save(&self) -> Result<usize, AppError> {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, answers, is_cut) = (recorder.cassette(), recorder.answered(), recorder.is_cut());
        drop(recorder);
        replace(&self.file, text.as_bytes()).map_err(|error| {
            AppError::usage(format!("{} cannot be written: {error}", self.file.display()))
                .hint("choose another file with `-o`")
        })?;
        if is_cut {
            tracing::warn!(
                answers,
                "the recording has reached its limit; later answers are missing"
            );
        }
        Ok(answers)
    }

    fn line(&self, side: Side, line: &[u8]) {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner).line(side, line);
    }
}

/// Replaces a file, which only its owner can read, by a complete one.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = file.with_file_name(name);
    let written = || -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut open = options.write(true).create_new(true).mode(0o600).open(&part)?;
        open.write_all(bytes)?;
        open.sync_all()?;
        fs::rename(&part, file)
    };
    written().inspect_err(|_| drop(fs::remove_file(&part)))
}

// === impl Copied ===

impl<S> Copied<S> {
    pub(crate) fn new(stream: S, side: Side, tape: &Arc<Tape>) -> Self {
        let tape = Arc::clone(tape);
        Self { stream, side, tape, line: Vec::new(), is_skipping: false }
    }

    fn copy(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_skipping {
                self.line.extend_from_slice(piece);
            }
            self.is_skipping |= self.line.len() > MAX_LINE;
            if piece.ends_with(b"\n") {
                if !self.is_skipping {
                    self.tape.line(self.side, &self.line);
                }
                self.line.clear();
                self.is_skipping = false;
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Copied<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        if polled.is_ready() {
            this.copy(buffer.filled().get(before..).unwrap_or_default());
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Copied<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = &polled {
            this.copy(bytes.get(..*written).unwrap_or_default());
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl<S: Outlet> Outlet for Copied<S> {
    fn is_read(&self) -> bool {
        self.stream.is_read()
    }
}

// === impl Inner ===

impl AsyncWrite for Inner {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}

impl Outlet for Inner {
    fn is_read(&self) -> bool {
        true
    }
}

/// Streams for the gateway whose client asks for all lists, and then leaves.
pub(crate) fn ask_for_lists() -> (DuplexStream, Inner) {
    let (input, ours) = tokio::io::duplex(PIPE);
    let (theirs, output) = tokio::io::duplex(PIPE);
    tokio::spawn(async move {
        // An error means that the gateway is gone.
        drop(lists(ours, theirs).await);
    });
    (input, Inner(output))
}

async fn lists(mut to: DuplexStream, from: DuplexStream) -> io::Result<()> {
    let mut answers = BufReader::new(from);
    let mut id = 0;
    let mut ask = async |method: &str, params: Json| -> io::Result<Json> {
        id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        to.write_all(format!("{request}\n").as_bytes()).await?;
        loop {
            let mut line = String::new();
            if answers.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let message: Json = serde_json::from_str(&line).unwrap_or_default();
            if message.get("method").is_none() && message.get("id") == Some(&json!(id)) {
                if method == "initialize" {
                    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                    to.write_all(format!("{ready}\n").as_bytes()).await?;
                }
                return Ok(message.get("result").cloned().unwrap_or_default());
            }
        }
    };
    let client = json!({ "name": "capstan record", "version": env!("CARGO_PKG_VERSION") });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let greeting = ask("initialize", hello).await?;
    for (capability, methods) in [
        ("tools", &["tools/list"][..]),
        ("resources", &["resources/list", "resources/templates/list"]),
        ("prompts", &["prompts/list"]),
    ] {
        let is_there =
            greeting.get("capabilities").is_some_and(|all| all.get(capability).is_some());
        for method in methods.iter().filter(|_| is_there) {
            let mut params = json!({});
            for _ in 0..MAX_PAGES {
                let page = ask(method, params).await?;
                let Some(cursor) = page.get("nextCursor") else { break };
                params = json!({ "cursor": cursor });
            }
        }
    }
    Ok(())
}

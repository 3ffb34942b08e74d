//! A stand-in for the interfaces of model providers, which answers with the steps of a plan.
//!
//! It speaks the Messages API of Anthropic, the Chat Completions API and Gemini's
//! `streamGenerateContent`, each in its real streaming format: texts and arguments of calls in
//! pieces, cut anywhere, also within a character. `check` refuses requests that the real provider
//! refuses, `write` writes the answers.

mod check;
mod write;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::fail::OrFail as _;
use crate::process::wait_until;

/// The key that the stand-in accepts.
pub const MODEL_KEY: &str = "test-key-of-a-model";

/// The number of bytes that are written at once.
const PIECE: usize = 23;

/// How long a test waits for a request.
const LIMIT: Duration = Duration::from_secs(30);

/// One answer of the plan.
#[derive(Clone, Debug, Default)]
pub struct ModelStep {
    /// The text.
    pub text: String,
    /// The reasoning before it.
    pub reasoning: Option<String>,
    /// Tool calls: names with arguments, which may be any text.
    pub calls: Vec<(String, String)>,
    /// The way in which it ends.
    pub end: StepEnd,
}

/// The end of an answer.
#[derive(Clone, Debug, Default)]
pub enum StepEnd {
    /// It is complete.
    #[default]
    Complete,
    /// It is complete and reached the limit of its length.
    Length,
    /// The connection closes after half of the bytes.
    Cut,
    /// Nothing more comes after the text, and the connection stays open.
    Hang,
    /// The provider reports an error after the text.
    Reported,
    /// There is no answer but this status, with these headers and this message.
    Status(u16, Vec<(&'static str, String)>, String),
}

/// A request that the stand-in received.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The path with the query.
    pub path: String,
    /// The headers, in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

/// The interface that a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Anthropic,
    OpenAi,
    Gemini,
}

/// The stand-in, listening on a port of this machine while a test runs.
#[derive(Debug)]
pub struct ModelApi {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    plan: Mutex<std::collections::VecDeque<ModelStep>>,
    requests: Mutex<Vec<ModelRequest>>,
    hung_up: AtomicUsize,
}

// === impl ModelStep ===

impl ModelStep {
    /// A complete answer with this text.
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// A complete answer that calls tools.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls.into_iter().map(|(name, value)| (name.to_owned(), value.to_string()));
        Self { calls: calls.collect(), ..Self::default() }
    }

    /// An error with this status.
    pub fn status(status: u16, message: &str) -> Self {
        let end = StepEnd::Status(status, Vec::new(), message.to_owned());
        Self { end, ..Self::default() }
    }
}

// === impl ModelApi ===

impl ModelApi {
    /// Starts to answer with these steps, in this order, one a request.
    #[track_caller]
    pub fn start(plan: impl IntoIterator<Item = ModelStep>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").or_fail("cannot listen");
        let address = listener.local_addr().or_fail("no address");
        let state =
            Arc::new(State { plan: Mutex::new(plan.into_iter().collect()), ..State::default() });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A client that leaves is part of what is tested.
                thread::spawn(move || drop(state.serve(&stream)));
            }
        });
        Self { address, state }
    }

    /// The address, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a client closes the connection of an answer that hangs.
    pub fn wait_for_hang_up(&self) -> bool {
        wait_until(|| self.state.hung_up.load(Ordering::SeqCst) > 0, LIMIT)
    }
}

// === impl State ===

impl State {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader)? {
            let api = Api::of(&request.path);
            self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
            let Some(api) = api else {
                respond(stream, 404, &[], "{\"error\":{\"message\":\"no such path\"}}")?;
                continue;
            };
            if let Err((status, message)) = check::request(api, &request) {
                respond(stream, status, &[], &write::error(api, status, &message))?;
                continue;
            }
            let step = self.plan.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(step) = step else {
                respond(stream, 400, &[], &write::error(api, 400, "the plan has no step left"))?;
                continue;
            };
            if let StepEnd::Status(status, headers, message) = &step.end {
                respond(stream, *status, headers, &write::error(api, *status, message))?;
                continue;
            }
            if !self.answer(stream, &mut reader, api, &request, &step)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes an answer; true if the connection can be used again.
    fn answer(
        &self,
        mut stream: &TcpStream,
        reader: &mut BufReader<&TcpStream>,
        api: Api,
        request: &ModelRequest,
        step: &ModelStep,
    ) -> std::io::Result<bool> {
        let is_stream =
            api == Api::Gemini || request.body.get("stream") == Some(&Value::Bool(true));
        if !is_stream {
            respond(stream, 400, &[], &write::error(api, 400, "only streams are supported"))?;
            return Ok(true);
        }
        let text = write::stream(api, request, step);
        let is_cut = matches!(step.end, StepEnd::Cut);
        let length = if is_cut { text.len() / 2 } else { text.len() };
        let bytes = text.as_bytes().get(..length).unwrap_or_default();
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        for piece in bytes.chunks(PIECE) {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
            stream.write_all(piece)?;
            stream.write_all(b"\r\n")?;
        }
        match step.end {
            StepEnd::Cut => {
                stream.shutdown(Shutdown::Both)?;
                Ok(false)
            }
            StepEnd::Hang => {
                drop(reader.read_to_end(&mut Vec::new()));
                self.hung_up.fetch_add(1, Ordering::SeqCst);
                Ok(false)
            }
            StepEnd::Complete | StepEnd::Length | StepEnd::Reported | StepEnd::Status(..) => {
                stream.write_all(b"0\r\n\r\n").map(|()| true)
            }
        }
    }
}

// === impl Api ===

impl Api {
    fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/v1/messages") {
            return Some(Self::Anthropic);
        }
        if path.ends_with("/chat/completions") {
            return Some(Self::OpenAi);
        }
        let has_version = path.contains("/v1beta/models/") || path.contains("/v1/models/");
        let is_gemini = has_version && path.ends_with(":streamGenerateContent");
        is_gemini.then_some(Self::Gemini)
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<ModelRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(ModelRequest { path, headers, body }))
}

fn respond(
    mut stream: &TcpStream,
    status: u16,
    headers: &[(&'static str, String)],
    body: &str,
) -> std::io::Result<()> {
    let more: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let more = more.concat();
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

// === impl ModelRequest ===

impl ModelRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

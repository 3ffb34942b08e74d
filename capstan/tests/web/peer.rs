//! A server on the loopback that answers as its script says, one thread a connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a connection on which nothing happens is kept.
const PATIENCE: Duration = Duration::from_mins(1);

/// A scripted server. It takes no more connections once it is dropped.
pub(crate) struct Peer {
    /// What an address of it begins with.
    pub(crate) origin: String,
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    over: Arc<AtomicBool>,
}

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    /// With their names in lower case, in their order.
    pub(crate) headers: Vec<(String, String)>,
    /// The message, `null` without one.
    pub(crate) body: Value,
}

/// What goes back.
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<Piece>,
}

/// A part of a body, which is sent in chunks.
pub(crate) enum Piece {
    Send(Vec<u8>),
    /// Sends whatever is fed to it, until the feeder goes away.
    Feed(Receiver<String>),
    /// One byte a second, until the other side goes away.
    Trickle,
    /// Nothing more until the other side goes away.
    Hold,
    /// Closes the connection in the middle of everything; as the first piece, without a word.
    Cut,
}

/// How to make a connection of what was accepted.
pub(crate) type Wrap = Box<dyn Fn(TcpStream) -> Box<dyn Stream> + Send>;

/// A connection.
pub(crate) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

// === impl Peer ===

impl Peer {
    pub(crate) fn new(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::wrapped("http", Box::new(|stream| Box::new(stream)), script)
    }

    /// The same with something around every connection, such as TLS.
    pub(crate) fn wrapped(
        scheme: &str,
        wrap: Wrap,
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = Self {
            origin: format!("{scheme}://{address}"),
            address,
            seen: Arc::default(),
            over: Arc::default(),
        };
        let (seen, over) = (Arc::clone(&peer.seen), Arc::clone(&peer.over));
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                let stream = wrap(stream);
                // A client may go away at any time.
                thread::spawn(move || drop(serve(stream, &seen, &*script)));
            }
        });
        peer
    }

    /// Everything that came in.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How often this JSON-RPC method came in.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.seen().iter().filter(|seen| seen.method() == method).count()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes up whoever waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

/// Serves behind a socket in the file system until the test ends.
pub(crate) fn serve_socket(
    path: &Path,
    script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
) -> Arc<Mutex<Vec<Seen>>> {
    let listener = UnixListener::bind(path).unwrap();
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let (all, script) = (Arc::clone(&seen), Arc::new(script));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (seen, script) = (Arc::clone(&all), Arc::clone(&script));
            thread::spawn(move || drop(serve(Box::new(stream), &seen, &*script)));
        }
    });
    seen
}

// === impl Seen ===

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// All values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let same = self.headers.iter().filter(|(other, _)| other == name);
        same.map(|(_, value)| value.as_str()).collect()
    }

    /// A result for this request, as a message.
    pub(crate) fn result(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}).to_string()
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), pieces: Vec::new() }
    }

    pub(crate) fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::typed("application/json", body)
    }

    pub(crate) fn typed(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).with("content-type", kind).then(Piece::Send(body.into()))
    }

    pub(crate) fn events(text: &str) -> Self {
        Self::typed("text/event-stream", text)
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }
}

fn serve(
    stream: Box<dyn Stream>,
    seen: &Mutex<Vec<Seen>>,
    script: &dyn Fn(&Seen) -> Answer,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream)? {
        seen.lock().unwrap().push(request.clone());
        let answer = script(&request);
        if !write(stream.get_mut(), answer)? {
            break;
        }
    }
    Ok(())
}

/// Reads a request, as far as it is a whole one.
pub(crate) fn read(stream: &mut impl BufRead) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let mut words = line.split(' ').map(ToOwned::to_owned);
    let (Some(verb), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Some(Seen { verb, path, headers, body }))
}

/// Writes an answer; whether the connection goes on.
fn write(stream: &mut dyn Stream, answer: Answer) -> io::Result<bool> {
    if let Some(Piece::Cut) = answer.pieces.first() {
        return Ok(false);
    }
    let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head += "\r\n";
    stream.write_all(head.as_bytes())?;
    stream.flush()?;
    for piece in answer.pieces {
        match piece {
            Piece::Send(bytes) => chunk(stream, &bytes)?,
            Piece::Feed(feed) => feed.iter().try_for_each(|text| chunk(stream, text.as_bytes()))?,
            Piece::Trickle => loop {
                chunk(stream, b" ")?;
                thread::sleep(Duration::from_secs(1));
            },
            Piece::Hold => drop(stream.read(&mut [0])?),
            Piece::Cut => return Ok(false),
        }
    }
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()?;
    Ok(true)
}

fn chunk(stream: &mut dyn Stream, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    write!(stream, "{:x}\r\n", bytes.len())?;
    stream.write_all(bytes)?;
    stream.write_all(b"\r\n")?;
    stream.flush()
}

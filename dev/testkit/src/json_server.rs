//! A small HTTP server on this machine that answers JSON with JSON, for stand-ins of services.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use crate::fail::OrFail as _;

/// A request.
#[derive(Clone, Debug)]
pub struct JsonRequest {
    /// The method, in capitals.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The headers, in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null if there is none or it is no JSON.
    pub body: Value,
}

/// The server, which listens while the test runs.
#[derive(Clone, Debug)]
pub struct JsonServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<JsonRequest>>>,
}

/// Answers a request with a status and a body.
type Handler = Arc<dyn Fn(&JsonRequest) -> (u16, Value) + Send + Sync>;

// === impl JsonServer ===

impl JsonServer {
    /// Starts to answer on a free port.
    #[track_caller]
    pub fn start(handler: impl Fn(&JsonRequest) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").or_fail("cannot listen");
        let address = listener.local_addr().or_fail("no address");
        let requests: Arc<Mutex<Vec<JsonRequest>>> = Arc::default();
        let (seen, handler): (_, Handler) = (Arc::clone(&requests), Arc::new(handler));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
                // A client that leaves is part of what is tested.
                thread::spawn(move || drop(serve(&stream, &seen, &handler)));
            }
        });
        Self { address, requests }
    }

    /// The address, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<JsonRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

// === impl JsonRequest ===

impl JsonRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn serve(
    mut stream: &TcpStream,
    seen: &Mutex<Vec<JsonRequest>>,
    handler: &Handler,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let (status, body) = handler(&request);
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<JsonRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
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
    Ok(Some(JsonRequest { method, path, headers, body }))
}

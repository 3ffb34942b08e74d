//! As much HTTP as a client needs: one request a connection, and a body read as it comes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The answer to a request, of which the head is read.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: Body,
}

/// A body, without the marks of its pieces.
struct Body {
    stream: BufReader<TcpStream>,
    framing: Framing,
}

enum Framing {
    /// So many bytes are left.
    Length(u64),
    /// So many bytes of this piece are left.
    Pieces(u64),
    UntilTheEnd,
    Over,
}

/// Sends a request; its answer is read by [`Response::read`] from what this gives back.
pub(crate) fn send(
    address: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    let mut text = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.extend(["\r\n", body]);
    stream.write_all(text.as_bytes())?;
    Ok(stream)
}

// === impl Response ===

impl Response {
    /// Reads the head.
    pub(crate) fn read(stream: TcpStream) -> io::Result<Self> {
        let mut stream = BufReader::new(stream);
        let first = line(&mut stream)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(bad)?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut stream)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response =
            Self { status, headers, body: Body { stream, framing: Framing::UntilTheEnd } };
        if response.header("transfer-encoding") == Some("chunked") {
            response.body.framing = Framing::Pieces(0);
        } else if let Some(length) = response.header("content-length") {
            response.body.framing = Framing::Length(length.parse().map_err(|_| bad())?);
        }
        Ok(response)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_events(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// All of the body.
    pub(crate) fn text(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Hands over each event, name and data, until one is refused or there are no more.
    pub(crate) fn events(self, mut take: impl FnMut(&str, String) -> bool) -> io::Result<()> {
        let (mut name, mut data) = (String::new(), String::new());
        for line in BufReader::new(self.body).lines() {
            let line = line?;
            if let Some(rest) = line.strip_prefix("data:") {
                data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
            } else if let Some(rest) = line.strip_prefix("event:") {
                rest.trim().clone_into(&mut name);
            } else if line.is_empty() {
                let (name, data) = (std::mem::take(&mut name), std::mem::take(&mut data));
                if !data.is_empty() && !take(&name, data) {
                    break;
                }
            }
        }
        Ok(())
    }
}

// === impl Body ===

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Framing::Pieces(0) = self.framing {
            let size = line(&mut self.stream)?;
            let size = u64::from_str_radix(size.trim(), 16).map_err(|_| bad())?;
            self.framing = if size == 0 { Framing::Over } else { Framing::Pieces(size) };
        }
        let (left, stream) = match &mut self.framing {
            Framing::Over | Framing::Length(0) => return Ok(0),
            Framing::UntilTheEnd => return self.stream.read(buffer),
            Framing::Length(left) | Framing::Pieces(left) => (left, &mut self.stream),
        };
        let read = stream.take(*left).read(buffer)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *left -= u64::try_from(read).map_err(|_| bad())?;
        if *left == 0 && matches!(self.framing, Framing::Pieces(_)) {
            line(&mut self.stream)?;
        }
        Ok(read)
    }
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn bad() -> io::Error {
    io::Error::other("not HTTP")
}

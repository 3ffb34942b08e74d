//! The way in over standard input and output: a message a line.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::legacy::serve_apart;
use super::message::{Fault, Incoming};
use super::server::Server;
use super::session::Session;
use super::stream::Reader;

const PARSE_ERROR: i64 = -32700;

/// Serves one client until it closes our input.
pub(super) async fn serve(server: &Arc<Server>) -> io::Result<()> {
    let session = Session::new();
    server.join(&session).map_err(io::Error::other)?;
    let writer = tokio::spawn(write(session.main.reader()));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if !line.trim().is_empty() {
            receive(server, &session, &line);
        }
    }
    server.leave(&session.id);
    writer.await.map_err(io::Error::other)?
}

fn receive(server: &Arc<Server>, session: &Arc<Session>, line: &str) {
    let message = serde_json::from_str(line)
        .map_err(|_| Fault::new(PARSE_ERROR, "not JSON"))
        .and_then(Incoming::read);
    match message {
        Ok(Incoming::Request(request)) => serve_apart(server, session, &session.main, request),
        Ok(Incoming::Notification { method, params }) => session.heed(&method, &params),
        Ok(Incoming::Answer { id, said }) => session.answered(&id, said),
        Err(fault) => session.main.push(fault.line(&Value::Null)),
    }
}

async fn write(mut reader: Reader) -> io::Result<()> {
    let mut output = tokio::io::stdout();
    while let Some(event) = reader.next().await {
        output.write_all(format!("{}\n", event.line).as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

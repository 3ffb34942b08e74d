//! A server with everything that the MCP conformance suite looks for in one, and what tests of our
//! own need beside it.
//!
//! `capstan-conformance-server (--http ADDRESS | --stdio) [--era legacy|modern|both] [--revision R]`
//! speaks the revisions with a handshake (`legacy`, of which `--revision` picks one), 2026-07-28
//! (`modern`), or both. Over HTTP it serves Streamable HTTP at `/mcp` and, unless it is modern only,
//! HTTP with SSE at `/sse`, on loopback names only, and says on stderr where it listens.
//!
//! A tool is written once. What it asks its client goes as a request of the server in the legacy
//! era, as a result that asks for input in the modern one, and as the state of a task where the
//! client runs tasks; a question that an earlier round has answered is not put again.
//!
//! Read in this order: `message.rs` and `stream.rs` are what goes to and fro, `session.rs` is a
//! client, `call.rs` and `ask.rs` are a request in service, `tools.rs` lists the tools that
//! `suite.rs` and `matrix.rs` run, `server.rs` serves a request, `modern.rs` checks one of the modern
//! era, and `http.rs`, `legacy.rs` and `stdio.rs` are the ways in.

mod options;
mod message;
mod stream;
mod seal;
mod session;
mod ask;
mod call;
mod tasks;
mod tools;
mod suite;
mod matrix;
mod library;
mod server;
mod modern;
mod sse;
mod http;
mod legacy;
mod stdio;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;

use options::{Face, Options};
use server::Server;

/// The server as a program: what `main` of `capstan-conformance-server` does.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(problem) => {
            say(&problem.to_string());
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&problem.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let face = options.face;
    let server = Arc::new(Server::new(options));
    let ended = runtime.block_on(async move {
        match face {
            Face::Http(address) => listen(server, address).await,
            Face::Stdio => stdio::serve(&server).await,
        }
    });
    // A read of stdin cannot be called off.
    runtime.shutdown_background();
    ended
}

async fn listen(server: Arc<Server>, address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    say(&format!("listening on http://{}/mcp", listener.local_addr()?));
    http::serve(server, listener).await
}

fn say(text: &str) {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(io::stderr(), "{text}"));
}

/// The value of a lock, even if a task died with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

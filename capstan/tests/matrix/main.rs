//! Every client against every server: each revision and transport on one side, each on the other,
//! and everything that the protocol can do between them. What a cell cannot do is in `rows.rs` with
//! the reason; the tables of docs/bridging.md are made from it.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "a missing member of a JSON value is null")]

mod kinds;
mod http;
mod wire;
mod client;
mod stage;
mod rows;
mod basics;
mod events;
mod questions;
mod extensions;
mod page;

use std::collections::BTreeSet;
use std::thread;

use client::{Client, SILENCE};
use kinds::{CLIENTS, ClientKind, MODERN, SERVERS, ServerKind};
use rows::{ROWS, Row};
use stage::Stage;

/// What went wrong in a cell, or nothing.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// One client with one server behind the gateway.
pub(crate) struct Cell {
    pub(crate) client: Client,
    /// The revision in which the gateway speaks to the server.
    pub(crate) revision: kinds::Revision,
    /// Tells this cell from the others that have used the same server.
    pub(crate) tag: String,
}

#[test]
fn every_client_can_do_everything_with_every_server() {
    let stage = Stage::set();
    let mut wrong = Vec::new();
    // In a round every client has a server of its own: a server over stdio does not say whose call
    // its question belongs to, so nobody is asked while there are calls of several clients.
    for round in 0..SERVERS.len() {
        let server = |at| &SERVERS[(at + round) % SERVERS.len()];
        let pairs = CLIENTS.iter().enumerate().map(|(at, (_, client))| (*client, server(at)));
        thread::scope(|scope| {
            let stage = &stage;
            let cells: Vec<_> = pairs
                .map(|(client, server)| scope.spawn(move || play(stage, client, server)))
                .collect();
            for cell in cells {
                wrong.extend(cell.join().unwrap_or_else(|_| vec!["a cell panicked".to_owned()]));
            }
        });
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_cannot_be_bridged_is_written_down() {
    let doc = page::checked();
    let told: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.exceptions).map(|e| e.name).collect();
    for name in told {
        assert!(doc.contains(&format!("**{name}**")), "nothing about `{name}`");
    }
}

/// All rows of a cell: what was wrong. Each way of a client takes its turn in each row.
fn play(stage: &Stage, ways: &'static [ClientKind], server: &'static ServerKind) -> Vec<String> {
    let named =
        |client: &str, row: &str, why: &str| format!("{client} × {}, {row}: {why}", server.name);
    let (mut cells, mut wrong) = (Vec::new(), Vec::new());
    for client in ways {
        match stage.cell(client, server) {
            Ok(cell) => cells.push(cell),
            Err(why) => wrong.push(named(client.name, "connect", &why)),
        }
    }
    for row in &ROWS {
        for cell in &mut cells {
            let Err(why) = run(row, cell) else { continue };
            let client = cell.client.kind.name;
            wrong.push(named(client, row.name, &why));
            if why.contains(SILENCE) {
                // So it goes on, and each row would wait for as long.
                wrong.push(named(client, "the rest", "not tried"));
                return wrong;
            }
        }
    }
    wrong
}

// === impl Cell ===

impl Cell {
    /// Whether the server is spoken to in the modern era.
    pub(crate) fn is_modern_server(&self) -> bool {
        self.revision == MODERN
    }
}

fn run(row: &Row, cell: &mut Cell) -> Outcome {
    cell.client.forget();
    let (client, revision) = (cell.client.kind, cell.revision);
    match row.exceptions.iter().find(|exception| (exception.holds)(client, revision)) {
        None => (row.run)(cell),
        Some(exception) => (exception.instead)(cell),
    }
}

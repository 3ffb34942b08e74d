//! Every client against every server: each revision and transport on one side, each on the other,
//! and everything that the protocol can do between them. What a cell cannot do is in `rows.rs` with
//! the reason, and docs/bridging.md says the same.

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

use std::collections::BTreeSet;
use std::thread;

use client::{Client, SILENCE};
use kinds::{CLIENTS, ClientKind, SERVERS, ServerKind};
use rows::{ROWS, Row};
use stage::Stage;

/// What went wrong in a cell, or nothing.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// One client with one server behind the gateway.
pub(crate) struct Cell {
    pub(crate) client: Client,
    pub(crate) server: &'static ServerKind,
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
        let pairs = (0..CLIENTS.len()).map(|at| (&CLIENTS[at], &SERVERS[(at + round) % 7]));
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
    let doc = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bridging.md");
    let doc = std::fs::read_to_string(doc).unwrap();
    for row in &ROWS {
        assert!(doc.contains(&format!("| {} |", row.name)), "no row `{}`", row.name);
    }
    let told: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.exceptions).map(|e| e.name).collect();
    for name in told {
        assert!(doc.contains(&format!("**{name}**")), "nothing about `{name}`");
    }
}

/// All rows of a cell: what was wrong.
fn play(stage: &Stage, client: &'static ClientKind, server: &'static ServerKind) -> Vec<String> {
    let named = |row: &str, why: &str| format!("{} × {}, {row}: {why}", client.name, server.name);
    let mut cell = match stage.cell(client, server) {
        Ok(cell) => cell,
        Err(why) => return vec![named("connect", &why)],
    };
    let mut wrong = Vec::new();
    for row in &ROWS {
        if let Err(why) = run(row, &mut cell) {
            wrong.push(named(row.name, &why));
            if why.contains(SILENCE) {
                // So it goes on, and each row would wait for as long.
                wrong.push(named("the rest", "not tried"));
                break;
            }
        }
    }
    wrong
}

fn run(row: &Row, cell: &mut Cell) -> Outcome {
    cell.client.forget();
    let (client, server) = (cell.client.kind, cell.server);
    match row.exceptions.iter().find(|exception| (exception.holds)(client, server)) {
        None => (row.run)(cell),
        Some(exception) => (exception.instead)(cell),
    }
}

//! Servers and clients that others wrote, as people use them.
//!
//! `./dev/test servers` installs them and runs this; nothing here is skipped without them.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

#[path = "../leftovers/mod.rs"]
mod leftovers;
mod record;
mod remote;
mod sandbox;
mod screen;
mod stdio;
mod http;
mod gateway;
mod clients;
mod search;
mod eras;
mod extensions;
mod large;
mod providers;
mod qdrant;
mod login;
mod accounts;
mod issuers;

use std::path::PathBuf;
use std::time::Duration;

use capstan_testkit::{Ended, World};
use leftovers::running_in;
use serde_json::Value;

/// How long a run may take; interpreters start slowly on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// Allows everything, because what is called here is called by us.
const ALLOW: &str = "[permissions]\nallow = [\"*\"]\n";

/// The folder of what `./dev/servers` installs.
fn dev_folder() -> PathBuf {
    std::env::var_os("CAPSTAN_DEV_DIR").map(PathBuf::from).unwrap_or_default()
}

/// The path of an installed program.
#[track_caller]
fn installed(program: &str) -> String {
    let folder = dev_folder();
    let places = [
        "npm/node_modules/.bin",
        "inspector/node_modules/.bin",
        "clients/node_modules/.bin",
        "py/bin",
    ];
    let found = places.iter().map(|place| folder.join(place).join(program));
    let found = found.into_iter().find(|path| path.is_absolute() && path.exists());
    assert!(found.is_some(), "`{program}` is not installed; run `./dev/test servers`");
    found.unwrap_or_default().display().to_string()
}

/// Runs a command, which must leave no process behind.
#[track_caller]
fn run(world: &World, arguments: &[&str]) -> Ended {
    let ended = world.capstan(arguments).limit(LIMIT).run();
    assert_eq!(running_in(world), [""; 0], "{arguments:?}");
    ended
}

/// Calls a tool with JSON; its answer as a person reads it.
#[track_caller]
fn call(world: &World, tool: &str, arguments: &Value) -> Ended {
    run(world, &["call", &format!("it__{tool}"), &arguments.to_string()])
}

#[track_caller]
fn told(world: &World, arguments: &[&str]) -> Value {
    let words: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&run(world, &words).ok()).unwrap()
}

#[track_caller]
fn tools(world: &World) -> Vec<String> {
    let listed = told(world, &["tools", "it"]);
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    listed.as_array().unwrap().iter().map(name).collect()
}

#[track_caller]
fn assert_offers(world: &World, expected: &[&str]) {
    let tools = tools(world);
    for name in expected {
        assert!(tools.iter().any(|tool| tool == name), "no {name} in {tools:?}");
    }
}

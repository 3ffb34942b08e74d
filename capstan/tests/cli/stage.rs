//! What the tests play on: a world with fixture servers, and short words for runs and what they say.

use std::fs;
use std::path::Path;

use capstan_testkit::{Ended, World, binary};
use serde_json::Value;

/// A world whose user has this configuration.
#[track_caller]
pub(crate) fn with(config: &str) -> World {
    let world = World::new();
    world.write_user_config(config);
    world
}

/// A world with one server, `f`, that behaves well and may do everything.
#[track_caller]
pub(crate) fn with_fixture() -> World {
    with(&format!("[permissions]\nallow = [\"*\"]\n\n{}", fixture("f", &[])))
}

/// A world whose `project` folder is a project; nothing is configured.
#[track_caller]
pub(crate) fn with_project() -> World {
    let world = World::new();
    world.write("project/.git/HEAD", "");
    world
}

/// The entry of a fixture with these options. More keys can follow it.
#[track_caller]
pub(crate) fn fixture(name: &str, options: &[&str]) -> String {
    let command = quoted(binary("capstan-fixture").to_str().unwrap());
    let options: Vec<String> = options.iter().map(|option| quoted(option)).collect();
    format!("[servers.{name}]\ncommand = {command}\nargs = [{}]\n", options.join(", "))
}

/// The same, with a protocol of the legacy era.
#[track_caller]
pub(crate) fn legacy(name: &str) -> String {
    format!("{}protocol = \"legacy\"\n", fixture(name, &["--era", "legacy"]))
}

/// The same, with a protocol of the modern era.
#[track_caller]
pub(crate) fn modern(name: &str) -> String {
    format!("{}protocol = \"modern\"\n", fixture(name, &["--era", "modern"]))
}

/// A TOML string; JSON's is one too.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Runs `capstan` with words that contain no spaces.
#[track_caller]
pub(crate) fn run(world: &World, words: &str) -> Ended {
    world.capstan(words.split_whitespace()).run()
}

/// The output of a run that must end with this code.
#[track_caller]
pub(crate) fn ends_with(ended: Ended, code: i32) -> Ended {
    let Ended { status, stdout, stderr } = &ended;
    assert_eq!(*status, Some(code), "stdout:\n{stdout}\nstderr:\n{stderr}");
    ended
}

/// The JSON on stdout.
#[track_caller]
pub(crate) fn json(ended: &Ended) -> Value {
    match serde_json::from_str(&ended.stdout) {
        Ok(value) => value,
        Err(problem) => panic_with(ended, &problem.to_string()),
    }
}

/// The JSON of a command that must go well.
#[track_caller]
pub(crate) fn ok_json(world: &World, words: &str) -> Value {
    json(&ends_with(run(world, &format!("{words} --json")), 0))
}

/// What a failed run with `--json` says: its code, message and hint.
#[track_caller]
pub(crate) fn failure(ended: &Ended) -> (String, String, String) {
    let error = &json(ended)["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    assert!(error["retryable"].is_boolean(), "{}", ended.stdout);
    (text("code"), text("message"), text("hint"))
}

/// The texts of a list under a key.
#[track_caller]
pub(crate) fn column(list: &Value, key: &str) -> Vec<String> {
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| row[key].as_str().unwrap_or_default().to_owned()).collect()
}

/// The row of a list whose `key` is `value`.
#[track_caller]
pub(crate) fn row(list: &Value, key: &str, value: &str) -> Value {
    let found = list.as_array().unwrap().iter().find(|row| row[key] == value);
    found.cloned().unwrap_or_else(|| fail(&format!("no {key} {value} in {list:#}")))
}

/// What a fixture's `env` tool says of its surroundings.
#[track_caller]
pub(crate) fn surroundings(ended: Ended) -> Value {
    json(&ends_with(ended, 0))["structuredContent"].clone()
}

/// The last entry of the audit log.
#[track_caller]
pub(crate) fn last_entry(world: &World) -> Value {
    let log = read(world.state().join("capstan/audit.jsonl"));
    serde_json::from_str(log.lines().last().unwrap()).unwrap()
}

/// A file's text.
#[track_caller]
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| fail(&format!("{}: {error}", path.display())))
}

/// The user's configuration as it is now.
#[track_caller]
pub(crate) fn user_config(world: &World) -> String {
    read(world.config().join("capstan/config.toml"))
}

/// Asserts that a text contains another.
#[track_caller]
pub(crate) fn says(text: &str, piece: &str) {
    assert!(text.contains(piece), "{piece:?} is not in:\n{text}");
}

#[track_caller]
fn panic_with(ended: &Ended, problem: &str) -> ! {
    fail(&format!("{problem}\nstdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr))
}

#[track_caller]
#[expect(clippy::panic, reason = "a test that cannot have what it stands on must fail")]
fn fail(why: &str) -> ! {
    panic!("{why}")
}

//! The keyring of a real session: `gnome-keyring-daemon` on a message bus of its own.
//!
//! Each test starts itself again inside `dbus-run-session`; the parts of these children are the
//! tests named `inside_…`, which do nothing in an ordinary run.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use capstan_hub::ports::{Vault as _, VaultError, VaultKey, VaultKind, VaultPlace};
use capstan_model::Secret;
use capstan_vault::{KeyringMode, SystemVault};
use tempfile::TempDir;

/// The variable by which a child learns where the file is.
const FILE: &str = "CAPSTAN_TEST_VAULT";

/// So many processes are killed while they store in the keyring.
const KILLS: usize = 40;

/// The value of the tests.
const VALUE: &str = "correct-horse-battery";

/// A session with a keyring that is unlocked.
const UNLOCKED: &str = "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null";

/// A session with a keyring daemon that has no keyring yet.
const EMPTY: &str = "gnome-keyring-daemon --start --components=secrets >/dev/null";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn key(name: &str) -> VaultKey {
    VaultKey { kind: VaultKind::Secret, name: name.to_owned() }
}

fn secret(value: &str) -> Secret<String> {
    Secret::new(value.to_owned())
}

async fn value(vault: &SystemVault, name: &str) -> Option<String> {
    vault.read(&key(name)).await.unwrap().map(|secret| secret.reveal().clone())
}

/// The file of a child; `None` in an ordinary run.
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn file() -> Option<PathBuf> {
    std::env::var(FILE).ok().map(PathBuf::from)
}

fn vault(file: &Path) -> SystemVault {
    SystemVault::new(file.to_owned(), KeyringMode::System)
}

#[expect(clippy::disallowed_methods, reason = "a tool of the session")]
fn tool(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    output
}

/// Calls a method of the keyring's service with a list of one path.
fn lock_keyring() {
    let collection = "array:objpath:/org/freedesktop/secrets/aliases/default";
    let service = ["--session", "--print-reply", "--dest=org.freedesktop.secrets"];
    let method = ["/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock", collection];
    tool("dbus-send", &[&service[..], &method[..]].concat());
}

/// The process of the keyring, from the message bus.
fn daemon() -> String {
    let bus = ["--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/"];
    let method = ["org.freedesktop.DBus.GetConnectionUnixProcessID"];
    let of = ["string:org.freedesktop.secrets"];
    let reply = tool("dbus-send", &[&bus[..], &method, &of].concat());
    let reply = String::from_utf8_lossy(&reply.stdout).into_owned();
    reply.split_whitespace().last().unwrap().to_owned()
}

/// Runs a part inside a session of its own.
#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn session(start: &str, part: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let home = folder.path();
    fs::create_dir_all(home.join("run")).unwrap();
    let script = format!("{start}; exec \"$0\" --exact {part} --nocapture");
    let output = Command::new("dbus-run-session")
        .args(["--", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(FILE, home.join("mcp-tokens.json"))
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_RUNTIME_DIR", home.join("run"))
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| unusable(&error.to_string()));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("1 passed"), "{out}\n{err}");
    folder
}

#[expect(clippy::panic, reason = "a test that cannot have what it stands on must fail")]
fn unusable(why: &str) -> ! {
    panic!("install gnome-keyring and dbus: {why}")
}

fn all_text(folder: &Path) -> String {
    fs::read_to_string(folder.join("mcp-tokens.json")).unwrap()
}

#[test]
fn inside_values_are_stored_replaced_and_removed() {
    let Some(file) = file() else { return };
    runtime().block_on(async {
        assert_eq!(vault(&file).write(&key("a"), &secret("1")).await, Ok(VaultPlace::Keyring));
        assert_eq!(value(&vault(&file), "a").await.as_deref(), Some("1"));
        for name in ["a", "b"] {
            let place = vault(&file).write(&key(name), &secret(VALUE)).await;
            assert_eq!(place, Ok(VaultPlace::Keyring));
            assert_eq!(value(&vault(&file), name).await.as_deref(), Some(VALUE));
        }
        let listed = vault(&file).list(VaultKind::Secret).await.unwrap();
        assert_eq!(listed, [(key("a"), VaultPlace::Keyring), (key("b"), VaultPlace::Keyring)]);
        assert!(vault(&file).remove(&key("a")).await.unwrap());
        assert_eq!(value(&vault(&file), "a").await, None);
        assert_eq!(value(&vault(&file), "b").await.as_deref(), Some(VALUE));
    });
    // One item of all those that were written is left, and an outsider reads it.
    let found = tool("secret-tool", &["search", "--all", "service", "capstan"]);
    let found = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.matches("secret = ").count(), 1, "{found}");
    assert!(found.contains(&format!("secret = {VALUE}")), "{found}");
}

#[test]
fn a_real_keyring_stores_replaces_and_removes_values() {
    let folder = session(UNLOCKED, "inside_values_are_stored_replaced_and_removed");
    assert!(!all_text(folder.path()).contains(VALUE));
}

#[test]
fn inside_a_locked_keyring() {
    let Some(file) = file() else { return };
    runtime().block_on(async {
        assert_eq!(vault(&file).write(&key("a"), &secret("old")).await, Ok(VaultPlace::Keyring));
        lock_keyring();
        let start = Instant::now();
        let locked = vault(&file);
        let error = locked.read(&key("a")).await.unwrap_err();
        assert!(matches!(error, VaultError::Unavailable { place: VaultPlace::Keyring, .. }));
        let place = locked.write(&key("a"), &secret(VALUE)).await.unwrap();
        assert!(matches!(place, VaultPlace::File(_)), "{place:?}");
        assert_eq!(value(&locked, "a").await.as_deref(), Some(VALUE));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    });
}

#[test]
fn a_locked_keyring_is_not_waited_for_and_the_file_takes_the_value() {
    let folder = session(UNLOCKED, "inside_a_locked_keyring");
    assert!(all_text(folder.path()).contains(VALUE));
}

#[test]
fn inside_without_a_keyring() {
    let Some(file) = file() else { return };
    let start = Instant::now();
    runtime().block_on(async {
        let place = vault(&file).write(&key("a"), &secret(VALUE)).await.unwrap();
        assert!(matches!(place, VaultPlace::File(_)), "{place:?}");
        assert_eq!(value(&vault(&file), "a").await.as_deref(), Some(VALUE));
    });
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn a_session_without_a_keyring_or_without_a_daemon_uses_the_file() {
    for start in [EMPTY, ":"] {
        let folder = session(start, "inside_without_a_keyring");
        assert!(all_text(folder.path()).contains(VALUE));
    }
}

#[test]
fn inside_a_keyring_that_hangs() {
    let Some(file) = file() else { return };
    runtime().block_on(async {
        assert_eq!(vault(&file).write(&key("a"), &secret("old")).await, Ok(VaultPlace::Keyring));
        let daemon = daemon();
        tool("kill", &["-STOP", &daemon]);
        let start = Instant::now();
        let hanging = vault(&file);
        let place = hanging.write(&key("a"), &secret(VALUE)).await.unwrap();
        assert!(matches!(place, VaultPlace::File(_)), "{place:?}");
        assert_eq!(value(&hanging, "a").await.as_deref(), Some(VALUE));
        let waited = start.elapsed();
        assert!(waited > Duration::from_secs(4) && waited < Duration::from_secs(9), "{waited:?}");
        // What was asked of it in the meantime, it does now; the newest write wins all the same.
        tool("kill", &["-CONT", &daemon]);
        assert_eq!(value(&vault(&file), "a").await.as_deref(), Some(VALUE));
        assert_eq!(vault(&file).write(&key("a"), &secret("new")).await, Ok(VaultPlace::Keyring));
        assert_eq!(value(&vault(&file), "a").await.as_deref(), Some("new"));
    });
    let found = tool("secret-tool", &["search", "--all", "service", "capstan"]);
    let found = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.matches("secret = ").count(), 1, "{found}");
}

#[test]
fn a_keyring_that_hangs_costs_one_wait_and_the_newest_write_wins() {
    session(UNLOCKED, "inside_a_keyring_that_hangs");
}

#[test]
fn inside_numbers_are_stored() {
    let Some(file) = file() else { return };
    runtime().block_on(async {
        let first = number(&file).await + 1;
        let vault = vault(&file);
        for number in first..first + 1000 {
            let place = vault.write(&key("n"), &secret(&number.to_string())).await.unwrap();
            assert_eq!(place, VaultPlace::Keyring);
            // In one piece, because the end may come between two.
            std::io::stderr().write_all(format!("stored {number}.\n").as_bytes()).unwrap();
        }
    });
}

async fn number(file: &Path) -> usize {
    value(&vault(file), "n").await.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Starts a child and kills it after some numbers: the last one that it has acknowledged.
#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn killed(after: usize) -> Option<usize> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "inside_numbers_are_stored", "--nocapture"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut said: Vec<String> = lines.by_ref().take(after).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    said.extend(lines);
    let number = |line: &String| line.strip_prefix("stored ")?.strip_suffix('.')?.parse().ok();
    said.iter().filter_map(number).next_back()
}

#[test]
fn inside_processes_are_killed() {
    let Some(file) = file() else { return };
    let mut acknowledged = 0;
    for round in 0..KILLS {
        let last = killed(round % 3).unwrap_or(acknowledged);
        let found = runtime().block_on(number(&file));
        assert!((last..=last + 1).contains(&found), "round {round}: {found} instead of {last}");
        acknowledged = found;
    }
    assert!(acknowledged >= KILLS / 2, "{acknowledged}");
    runtime().block_on(async {
        vault(&file).write(&key("n"), &secret("0")).await.unwrap();
    });
    let found = tool("secret-tool", &["search", "--all", "service", "capstan"]);
    let found = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.matches("secret = ").count(), 1, "items of killed processes stay:\n{found}");
}

#[test]
fn kills_lose_no_acknowledged_value_of_a_real_keyring() {
    session(UNLOCKED, "inside_processes_are_killed");
}

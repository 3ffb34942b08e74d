//! Processes that are killed while they store, and processes that store at the same time.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use capstan_hub::ports::{Vault as _, VaultKey, VaultKind};
use capstan_model::Secret;
use capstan_vault::{KeyringMode, SystemVault};
use tempfile::TempDir;

/// The variable by which a child learns where the file is.
const FILE: &str = "CAPSTAN_TEST_VAULT";

/// So many are killed.
const KILLS: usize = 200;

/// So many processes count at the same time, each this far.
const COUNTERS: usize = 4;
const COUNTS: usize = 25;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn vault(path: impl AsRef<Path>) -> SystemVault {
    SystemVault::new(path.as_ref().to_owned(), KeyringMode::Off)
}

fn key() -> VaultKey {
    VaultKey { kind: VaultKind::Tokens, name: "https://example.com/mcp".to_owned() }
}

/// The number that is stored, in a value long enough to be written in more than one piece.
async fn stored(vault: &SystemVault) -> usize {
    let value = vault.read(&key()).await.unwrap();
    let value = value.map(|value| value.reveal().clone()).unwrap_or_default();
    value.trim_start_matches('.').parse().unwrap_or_default()
}

async fn store(vault: &SystemVault, number: usize) {
    let value = format!("{}{number}", ".".repeat(20_000));
    vault.write(&key(), &Secret::new(value)).await.unwrap();
}

/// The child's part; in an ordinary run there is nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_stores_one_number_after_the_other() {
    let Ok(path) = std::env::var(FILE) else { return };
    runtime().block_on(async {
        let vault = vault(path);
        let first = stored(&vault).await + 1;
        for number in first..first + 1000 {
            store(&vault, number).await;
            // In one piece, because the end may come between two.
            std::io::stderr().write_all(format!("stored {number}.\n").as_bytes()).unwrap();
        }
    });
}

/// The child's part; in an ordinary run there is nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_counts() {
    let Ok(path) = std::env::var(FILE) else { return };
    runtime().block_on(async {
        let vault = vault(path);
        for _ in 0..COUNTS {
            let lock = vault.lock(&key()).await.unwrap();
            let number = stored(&vault).await;
            store(&vault, number + 1).await;
            drop(lock);
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn child(part: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", part, "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts a child and kills it after some numbers: the last one that it has acknowledged.
fn killed(path: &Path, after: usize) -> Option<usize> {
    let mut child = child("child_stores_one_number_after_the_other", path);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut said: Vec<String> = lines.by_ref().take(after).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // Its output before it was killed counts too.
    said.extend(lines);
    let number = |line: &String| line.strip_prefix("stored ")?.strip_suffix('.')?.parse().ok();
    said.iter().filter_map(number).next_back()
}

#[test]
fn the_last_acknowledged_value_is_there_after_any_of_200_kills() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("data/mcp-tokens.json");
    let mut acknowledged = 0;
    for round in 0..KILLS {
        let last = killed(&path, round % 3).unwrap_or(acknowledged);
        let found = runtime().block_on(stored(&vault(&path)));
        // A value that was stored but not acknowledged is fine; an older one is not.
        assert!((last..=last + 1).contains(&found), "round {round}: {found} instead of {last}");
        acknowledged = found;
    }
    assert!(acknowledged >= KILLS / 2, "{acknowledged}");
    runtime().block_on(store(&vault(&path), 1));
    let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["mcp-tokens.json", "mcp-tokens.lock"], "leftovers stay");
}

#[test]
fn processes_that_take_the_lock_of_an_entry_lose_no_write() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mcp-tokens.json");
    let children: Vec<Child> = (0..COUNTERS).map(|_| child("child_counts", &path)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    assert_eq!(runtime().block_on(stored(&vault(&path))), COUNTERS * COUNTS);
}

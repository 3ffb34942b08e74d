//! A process that is killed while it keeps approvals loses none that it has acknowledged.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use capstan_hub::ports::{PinStore, Store};
use capstan_store::Database;
use tempfile::TempDir;

use crate::pins::{newcomer, owner};
use crate::{grant, now};

/// The variable by which a child learns where the store is.
const STORE: &str = "CAPSTAN_TEST_STORE";

/// So many are killed, by so many at the same time.
const KILLS: usize = 200;
const AT_ONCE: usize = 4;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The child's part; in an ordinary run there is nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_keeps_approvals() {
    let Ok(path) = std::env::var(STORE) else { return };
    runtime().block_on(async {
        let store = Database::at(path);
        let whose = owner("s", &std::process::id().to_string());
        store.begin(&[newcomer(&whose, "x", &["a"])]).await.unwrap();
        for number in 0..1000 {
            let id = format!("{}.{number}", std::process::id());
            store.grant(&grant(&id)).await.unwrap();
            // In one piece, because the end may come between two.
            std::io::stderr().write_all(format!("kept {id}.\n").as_bytes()).unwrap();
        }
    });
}

/// Starts a child and kills it after some approvals: those that it has acknowledged.
#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn killed(path: &Path, after: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_keeps_approvals", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut kept: Vec<String> = lines.by_ref().take(after).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // Its output before it was killed counts too.
    kept.extend(lines);
    let whole = |line: &String| Some(line.strip_prefix("kept ")?.strip_suffix('.')?.to_owned());
    kept.iter().filter_map(whole).collect()
}

#[test]
fn no_acknowledged_approval_is_lost_when_its_process_is_killed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let path = &path;
        let killers = (0..AT_ONCE).map(|_| {
            scope.spawn(move || (0..KILLS / AT_ONCE).flat_map(|n| killed(path, n % 3)).collect())
        });
        let killers: Vec<thread::ScopedJoinHandle<'_, Vec<String>>> = killers.collect();
        killers.into_iter().flat_map(|killer| killer.join().unwrap()).collect()
    });
    assert!(acknowledged.len() >= KILLS / 2, "{}", acknowledged.len());
    no_alarm(&path);
    let kept = runtime().block_on(Database::at(&path).list(now(), u32::MAX)).unwrap();
    let kept: BTreeSet<String> = kept.into_iter().map(|grant| grant.id).collect();
    let lost: Vec<&String> = acknowledged.iter().filter(|id| !kept.contains(*id)).collect();
    assert_eq!(lost, Vec::<&String>::new());
}

/// Holes 5: a kill is no damage. Nothing is lost, and nothing was kept aside.
fn no_alarm(path: &Path) {
    let store = Database::at(path);
    runtime().block_on(async {
        let seen = store.approved_digests().await.unwrap();
        assert!(!seen.is_empty());
        for whose in seen.keys() {
            let approved = store.pins(whose).await.unwrap().unwrap();
            assert_eq!((approved.pins.len(), approved.is_lost), (1, false), "{whose:?}");
        }
        assert_eq!(store.check().await.unwrap(), Vec::<PathBuf>::new());
    });
}

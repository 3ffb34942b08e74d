//! A gateway that is killed loses no client and no refresh token that it has acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use capstan_hub::ports::{ClientStore, GrantStore};
use capstan_store::Database;
use tempfile::TempDir;

use crate::authorization::{client, code, grant, token};
use crate::now;

/// The variable by which a child learns where the store is.
const STORE: &str = "CAPSTAN_TEST_AUTHORIZATION_STORE";

/// So many are killed, by so many at the same time.
const KILLS: usize = 200;
const AT_ONCE: usize = 4;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The child's part: registers clients, and replaces a refresh token again and again.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_registers_and_refreshes() {
    let Ok(path) = std::env::var(STORE) else { return };
    // In one piece, because the end may come between two.
    let say = |text: String| std::io::stderr().write_all(text.as_bytes()).unwrap();
    runtime().block_on(async {
        let store = Database::at(path);
        for number in 0..1000 {
            let id = format!("{}.{number}", std::process::id());
            assert!(store.add_client(&client(&id), u32::MAX).await.unwrap());
            say(format!("client {id}.\n"));
            store.add_code(&code(&id, &id), &grant(&id, &id)).await.unwrap();
            let taken = store.take_code(&id, now()).await.unwrap().unwrap();
            assert_eq!(taken.taken_before, None);
            assert!(store.add_token(&token(&id, &id)).await.unwrap());
            say(format!("token {id}.\n"));
            let next = format!("{id}.next");
            assert!(store.rotate(&id, &token(&next, &id), now()).await.unwrap());
            say(format!("rotated {id}.\n"));
        }
    });
}

/// Starts a child and kills it after some steps: those that it has acknowledged.
#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn killed(path: &Path, after: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "authorization_kill::child_registers_and_refreshes", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut said: Vec<String> = lines.by_ref().take(after).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // Its output before it was killed counts too.
    said.extend(lines);
    said.iter().filter_map(|line| Some(line.strip_suffix('.')?.to_owned())).collect()
}

#[test]
fn no_acknowledged_client_or_token_is_lost_when_its_gateway_is_killed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let path = &path;
        let killers = (0..AT_ONCE).map(|_| {
            scope.spawn(move || (0..KILLS / AT_ONCE).flat_map(|n| killed(path, n % 7)).collect())
        });
        let killers: Vec<thread::ScopedJoinHandle<'_, Vec<String>>> = killers.collect();
        killers.into_iter().flat_map(|killer| killer.join().unwrap()).collect()
    });
    assert!(acknowledged.len() >= KILLS, "{}", acknowledged.len());
    runtime().block_on(async {
        let store = Database::at(&path);
        for line in &acknowledged {
            let Some((what, id)) = line.split_once(' ') else { continue };
            match what {
                "client" => assert!(store.client(id, now()).await.unwrap().is_some(), "{line}"),
                "token" => assert!(store.token(id).await.unwrap().is_some(), "{line}"),
                "rotated" => {
                    let (old, _) = store.token(id).await.unwrap().unwrap();
                    assert!(old.used_at.is_some(), "{line}: the old token is used");
                    let next = store.token(&format!("{id}.next")).await.unwrap();
                    assert!(next.is_some(), "{line}: the next token is there");
                }
                _ => {}
            }
        }
    });
}

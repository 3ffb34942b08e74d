//! The control socket: who reaches it, what is refused, what is cleared away.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use capstan_control::{Control, ControlError, find};
use capstan_hub::approvals::{Answer, Extent};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// A gateway without questions, in a folder that is to be made.
fn gateway(folder: &Path) -> JoinSet<()> {
    let control = Control::open(folder).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(control.serve(Arc::default()));
    tasks
}

/// What comes back over a plain connection, until it is closed.
async fn raw(path: &Path, text: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    // It may be closed before all is written.
    drop(stream.write_all(text).await);
    drop(stream.shutdown().await);
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn folder_and_socket_are_closed_to_others_and_the_socket_goes_with_its_gateway() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("run/capstan");
    let mut tasks = gateway(&folder);
    let found = find(std::slice::from_ref(&folder));
    assert_eq!(found.len(), 1);
    assert_eq!((mode(&folder), mode(found[0].path())), (0o700, 0o600));
    assert_eq!(found[0].questions().await.unwrap(), (0, Vec::new()));
    tasks.shutdown().await;
    assert!(find(&[folder]).is_empty());
}

#[tokio::test]
async fn a_folder_that_was_open_to_others_is_closed() {
    let home = TempDir::new().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(find(&[home.path().to_owned()]).is_empty());
    let _tasks = gateway(home.path());
    assert_eq!(mode(home.path()), 0o700);
    assert_eq!(find(&[home.path().to_owned()]).len(), 1);
}

#[tokio::test]
async fn a_folder_that_is_none_is_refused() {
    let home = TempDir::new().unwrap();
    let [file, link] = ["file", "link"].map(|name| home.path().join(name));
    fs::write(&file, "").unwrap();
    symlink(home.path(), &link).unwrap();
    for folder in [file, link] {
        let opened = Control::open(&folder);
        assert!(opened.is_err(), "{opened:?}");
        assert!(find(&[folder]).is_empty());
    }
}

#[tokio::test]
async fn what_a_dead_gateway_left_is_cleared_away() {
    let home = TempDir::new().unwrap();
    let stale = home.path().join("gateway-1.sock");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(&stale).unwrap());
    let found = find(&[home.path().to_owned()]);
    assert!(matches!(found[0].questions().await, Err(ControlError::Io { .. })));
    assert!(!stale.exists(), "who finds it dead removes it");
    drop(UnixListener::bind(&stale).unwrap());
    let _tasks = gateway(home.path());
    assert!(!stale.exists(), "and so does the next gateway");
}

#[tokio::test]
async fn an_answer_to_no_question_is_refused() {
    let home = TempDir::new().unwrap();
    let _tasks = gateway(home.path());
    let found = find(&[home.path().to_owned()]);
    for answer in [Answer::No, Answer::Yes(Extent::Once)] {
        let answered = found[0].answer("k7f2", answer).await;
        assert!(matches!(answered, Err(ControlError::Unknown)), "{answered:?}");
    }
}

#[tokio::test]
async fn nothing_to_see_is_an_answer_too() {
    let home = TempDir::new().unwrap();
    let _tasks = gateway(home.path());
    let found = find(&[home.path().to_owned()]);
    let seen = found[0].questions_after(0, Duration::from_millis(1)).await.unwrap();
    assert_eq!(seen, (0, Vec::new()));
}

#[tokio::test]
async fn what_is_no_request_gets_no_answer_and_harms_nobody() {
    let home = TempDir::new().unwrap();
    let _tasks = gateway(home.path());
    let path = find(&[home.path().to_owned()])[0].path().to_owned();
    let long = [b"[".repeat(2 << 20), b"\n".to_vec()].concat();
    for text in [&b"\n"[..], b"hello\n", b"{}\n", b"[1,2]\n", b"", b"{\"a\":1", long.as_slice()] {
        assert_eq!(raw(&path, text).await, "");
    }
    for (request, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"approvals/everything"}"#, "-32601"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"approvals/answer"}"#, "-32602"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"approvals/answer","params":{"id":"a","answer":"maybe"}}"#,
            "-32602",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"approvals/watch","params":{}}"#, "-32602"),
    ] {
        let answer = raw(&path, format!("{request}\n").as_bytes()).await;
        assert!(answer.contains(code), "{request}: {answer}");
    }
    let listed =
        raw(&path, b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"approvals/list\"}\n").await;
    assert_eq!(
        listed,
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"revision\":0,\"questions\":[]}}\n"
    );
}

#[tokio::test]
async fn more_shells_than_there_is_room_for_are_sent_away() {
    let home = TempDir::new().unwrap();
    let _tasks = gateway(home.path());
    let found = find(&[home.path().to_owned()]);
    let mut held = Vec::new();
    for _ in 0..16 {
        held.push(UnixStream::connect(found[0].path()).await.unwrap());
    }
    // Connections are taken in order, so by now every place is held.
    assert!(found[0].questions().await.is_err());
    drop(held);
    while found[0].questions().await.is_err() {
        tokio::task::yield_now().await;
    }
}

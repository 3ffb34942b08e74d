//! The control socket: who reaches it, what is refused, what is cleared away.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use capstan_control::{
    Control, ControlEndpoint, ControlError, Declined, Gateway, OperationMessage, ToShell, find,
};
use capstan_hub::ports::BoxFuture;
use capstan_wire::{Json, compose};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// A gateway without questions, in a folder that is to be made.
fn gateway(folder: &Path) -> JoinSet<()> {
    let control = Control::open(folder).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(control.serve(Arc::new(Parrot::default())));
    tasks
}

/// A gateway whose only command says what it is told to, asks a question if the word is `ask`, and
/// never ends if it is `stay`.
#[derive(Default)]
struct Parrot {
    /// The number of running commands.
    running: Arc<AtomicUsize>,
}

/// Counts a command for as long as it runs.
struct Runs(Arc<AtomicUsize>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ControlEndpoint for Parrot {
    fn digest(&self) -> String {
        "d1g3st".to_owned()
    }

    fn run(&self, order: Json, events: Sender<ToShell>) -> BoxFuture<'_, Result<Json, Declined>> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let runs = Runs(Arc::clone(&self.running));
        Box::pin(async move {
            let _runs = runs;
            let word: String = order.read().map_err(|_| Declined("no word".to_owned()))?;
            events.try_send(ToShell::Event(order)).unwrap();
            match word.as_str() {
                "ask" => {
                    let (answer, answered) = futures::channel::oneshot::channel();
                    let question = compose::string("who?");
                    events.try_send(ToShell::Ask(question, answer)).unwrap();
                    let typed = answered.await.unwrap();
                    events.try_send(ToShell::Event(typed)).unwrap();
                }
                "stay" => std::future::pending::<()>().await,
                _ => {}
            }
            Ok(compose::number(7))
        })
    }
}

/// Runs a word: what came back, and what was said meanwhile. Every question is answered with `me`.
async fn run(gateway: &Gateway, word: &str) -> (Result<String, ControlError>, Vec<String>) {
    let lines = Mutex::new(Vec::new());
    let handler = |line: OperationMessage| -> Option<BoxFuture<'static, Json>> {
        match line {
            OperationMessage::Event(said) => {
                lines.lock().unwrap().push(said.to_string());
                None
            }
            OperationMessage::Ask(question) => {
                lines.lock().unwrap().push(question.to_string());
                Some(Box::pin(async { compose::string("me") }))
            }
        }
    };
    let done = gateway.run(&compose::string(word), &handler).await;
    (done.map(|done| done.to_string()), lines.into_inner().unwrap())
}

#[tokio::test]
async fn what_a_command_says_and_asks_goes_to_its_shell_in_order() {
    let home = TempDir::new().unwrap();
    let _tasks = gateway(home.path());
    let found = find(&[home.path().to_owned()]);
    assert_eq!(found[0].process(), Some(std::process::id()));
    assert_eq!(found[0].digest().await.unwrap(), "d1g3st");
    let (done, messages) = run(&found[0], "hello").await;
    assert_eq!((done.unwrap().as_str(), messages), ("7", vec!["\"hello\"".to_owned()]));
    let (done, messages) = run(&found[0], "ask").await;
    assert_eq!(done.unwrap(), "7");
    assert_eq!(messages, ["\"ask\"", "\"who?\"", "\"me\""]);
    let long = "x".repeat(5 << 20);
    let (done, messages) = run(&found[0], &long).await;
    assert_eq!((done.unwrap().as_str(), messages[0].len()), ("7", long.len() + 2));
}

#[tokio::test]
async fn a_command_that_is_not_run_says_so_and_one_whose_shell_is_gone_ends() {
    let home = TempDir::new().unwrap();
    let control = Control::open(home.path()).unwrap();
    let parrot = Parrot::default();
    let running = Arc::clone(&parrot.running);
    let _tasks = tokio::spawn(control.serve(Arc::new(parrot)));
    let found = find(&[home.path().to_owned()]);
    let handler = |_: OperationMessage| -> Option<BoxFuture<'static, Json>> { None };
    let refused = found[0].run(&compose::number(1), &handler).await;
    assert!(
        matches!(&refused, Err(ControlError::Declined(why)) if why == "no word"),
        "{refused:?}"
    );
    let gone = found[0].clone();
    let shell = tokio::spawn(async move { run(&gone, "stay").await });
    while running.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    shell.abort();
    while running.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
}

/// The bytes that a plain connection returns until it is closed.
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
    assert_eq!(found[0].digest().await.unwrap(), "d1g3st");
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
    assert!(matches!(found[0].digest().await, Err(ControlError::Io { .. })));
    assert!(!stale.exists(), "who finds it dead removes it");
    drop(UnixListener::bind(&stale).unwrap());
    let _tasks = gateway(home.path());
    assert!(!stale.exists(), "and so does the next gateway");
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
    let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"approvals/list"}"#;
    let answer = raw(&path, format!("{unknown}\n").as_bytes()).await;
    assert!(answer.contains("-32601"), "{answer}");
    let about = raw(&path, b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"gateway/about\"}\n").await;
    assert_eq!(about, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"digest\":\"d1g3st\"}}\n");
}

#[tokio::test]
async fn more_shells_than_there_is_room_for_are_sent_away() {
    let home = TempDir::new().unwrap();
    let _tasks = gateway(home.path());
    let found = find(&[home.path().to_owned()]);
    let mut held = Vec::new();
    for _ in 0..64 {
        held.push(UnixStream::connect(found[0].path()).await.unwrap());
    }
    // Connections are taken in order, so by now every place is held.
    assert!(found[0].digest().await.is_err());
    let (refused, _) = run(&found[0], "hello").await;
    assert!(matches!(refused, Err(ControlError::Declined(_))), "nothing was done: {refused:?}");
    drop(held);
    while found[0].digest().await.is_err() {
        tokio::task::yield_now().await;
    }
}

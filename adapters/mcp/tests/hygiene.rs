//! No process is left behind, whoever ends and however.
//!
//! The hub is a process of its own here, so that it can be killed and so that everything below it
//! is the business of one test.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use capstan_testkit::process::command;
use capstan_testkit::{alive, binary, descendants, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Within this time everything must be gone.
const LIMIT: Duration = Duration::from_secs(3);

/// A server that starts a child and a grandchild in a session of its own, in the ways that
/// configurations start servers. `$0` is the fixture.
const SHAPES: [&str; 5] = [
    r#"exec "$0" "$@""#,
    r#"exec "$0" --ignore-term "$@""#,
    r#"exec 3<&0; "$0" "$@" <&3 & wait"#,
    r#"sh -c '"$0" --ignore-term "$@"; exit 1' "$0" "$@"; true"#,
    // Goes on when the server has ended, and does not listen.
    r#"trap '' TERM; "$0" --ignore-term "$@"; sleep 600"#,
];

/// A hub with one connected server.
struct Hub {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Hub {
    #[track_caller]
    fn start(shape: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = command(env!("CARGO_BIN_EXE_capstan-stand-in"))
            .args(["hub", "sh", "-c", shape])
            .arg(binary("capstan-fixture"))
            .arg("--spawn")
            .arg(folder.path().join("pids"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let mut hub = Self { process, stdin, stdout, folder };
        assert_eq!(hub.hear(), "connected", "{shape}");
        hub
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").unwrap();
        self.hear()
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Everything below the hub: the keeper first.
    #[track_caller]
    fn tree(&self) -> Vec<u32> {
        let tree = descendants(self.pid());
        let [detached, plain] = self.children();
        assert!(tree.contains(&detached) && tree.contains(&plain), "{tree:?}");
        tree
    }

    fn keeper(&self) -> u32 {
        *self.tree().first().unwrap()
    }

    /// The children of the server: the one in a session of its own first.
    fn children(&self) -> [u32; 2] {
        let pids: PathBuf = self.folder.path().join("pids");
        let text = fs::read_to_string(pids).unwrap();
        let pids: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        pids.try_into().unwrap()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // It may be dead already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

#[track_caller]
fn assert_gone(pids: &[u32], shape: &str) {
    let left = || pids.iter().copied().filter(|pid| alive(*pid)).collect::<Vec<u32>>();
    let gone = wait_until(|| left().is_empty(), LIMIT);
    assert!(gone, "{:?} of {pids:?} are left of `{shape}`", left());
}

/// Starts every shape, ends it in one way and expects everything to be gone.
#[track_caller]
fn check(end: impl Fn(&mut Hub)) {
    for shape in SHAPES {
        let mut hub = Hub::start(shape);
        let tree = hub.tree();
        end(&mut hub);
        assert_gone(&tree, shape);
    }
}

#[test]
fn a_closed_server_leaves_nothing_behind() {
    for shape in SHAPES {
        let mut hub = Hub::start(shape);
        let tree = hub.tree();
        assert_eq!(hub.ask("close"), "closed");
        // At once: whoever closes may end the process next.
        let left: Vec<_> = tree.into_iter().filter(|pid| alive(*pid)).collect();
        assert_eq!((left, descendants(hub.pid())), (vec![], vec![]), "{shape}");
    }
}

#[test]
fn a_hub_that_is_killed_leaves_nothing_behind() {
    check(|hub| signal(hub.pid(), Signal::KILL));
}

#[test]
fn a_hub_that_ends_without_closing_leaves_nothing_behind() {
    check(|hub| signal(hub.pid(), Signal::TERM));
}

#[test]
fn a_keeper_that_is_told_to_end_takes_everything_with_it() {
    check(|hub| signal(hub.keeper(), Signal::TERM));
    for told in [Signal::INT, Signal::HUP] {
        let mut hub = Hub::start(SHAPES[0]);
        let tree = hub.tree();
        signal(hub.keeper(), told);
        assert_gone(&tree, SHAPES[0]);
        assert!(wait_until(|| hub.ask("state") == "failed", LIMIT));
    }
}

#[test]
fn a_server_that_dies_takes_everything_with_it() {
    // The last shape goes on without its server, and may.
    for shape in SHAPES.into_iter().take(4) {
        let mut hub = Hub::start(shape);
        let tree = hub.tree();
        let has_two = |pid: &&u32| descendants(**pid).len() == 2;
        signal(*tree.iter().find(has_two).unwrap(), Signal::KILL);
        assert_gone(&tree, shape);
        assert!(wait_until(|| hub.ask("state") == "failed", LIMIT));
    }
}

#[test]
fn a_killed_keeper_is_noticed_and_its_process_group_is_killed() {
    for shape in SHAPES {
        let mut hub = Hub::start(shape);
        let (mut tree, [detached, _]) = (hub.tree(), hub.children());
        signal(hub.keeper(), Signal::KILL);
        let noticed = wait_until(|| hub.ask("state") == "failed", Duration::from_secs(1));
        assert!(noticed, "{shape}");
        // Nobody is left who could know of the one that went its own way.
        tree.retain(|pid| *pid != detached);
        assert_gone(&tree, shape);
        signal(detached, Signal::KILL);
    }
}

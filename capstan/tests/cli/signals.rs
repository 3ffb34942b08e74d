//! Commands that are told to end while they wait for somebody.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use capstan_testkit::{World, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::stage::{fixture, read, with_fixture};

/// How long anything may take on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(50);

/// More than a pipe holds, so that writing it ends only when somebody reads.
const MORE_THAN_A_PIPE: usize = 1024 * 1024;

#[track_caller]
fn start(world: &World, words: &str) -> Child {
    let mut command = world.capstan(words.split_whitespace()).into_command();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Sends a signal and waits for the end: the exit code.
#[track_caller]
fn end_by(child: &mut Child, signal: Signal) -> Option<i32> {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    let mut status = None;
    let ended = || {
        status = child.try_wait().unwrap();
        status.is_some()
    };
    if !wait_until(ended, LIMIT) {
        child.kill().unwrap();
    }
    status.and_then(|status| status.code())
}

/// All entries of the audit log.
#[track_caller]
fn entries(world: &World) -> Vec<Value> {
    let log = read(world.state().join("capstan/audit.jsonl"));
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_command_whose_stdin_stays_open_ends_when_it_is_told_to() {
    for words in ["call f__echo -", "why f__echo -"] {
        let world = with_fixture();
        let mut child = start(&world, words);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&vec![b' '; MORE_THAN_A_PIPE]).unwrap();
        assert_eq!(end_by(&mut child, Signal::TERM), Some(130), "{words}");
    }
}

#[test]
fn what_is_abandoned_while_its_server_starts_leaves_one_entry() {
    for (words, kind) in [
        ("call f__echo text=x", "tool"),
        ("prompt f:greet", "prompt"),
        ("read @f:greeting", "resource"),
    ] {
        let world = World::new();
        let trace = world.home().join("trace");
        let options = ["--silent", "--trace", trace.to_str().unwrap()];
        world.write_user_config(&fixture("f", &options));
        let mut child = start(&world, words);
        let asked = || trace.metadata().is_ok_and(|file| file.len() > 0);
        assert!(wait_until(asked, LIMIT), "`{words}` starts nothing");
        assert_eq!(end_by(&mut child, Signal::INT), Some(130), "{words}");
        let entries = entries(&world);
        let [entry] = entries.as_slice() else { panic!("`{words}`: {entries:#?}") };
        let told = json!([entry["outcome"], entry["kind"], entry["server"]]);
        assert_eq!(told, json!(["abandoned", kind, "f"]));
    }
}

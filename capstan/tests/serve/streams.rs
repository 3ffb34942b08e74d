//! Standard streams of every kind: pipes, sockets, files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use capstan_testkit::wait_until;
use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::{Value, json};

use crate::stage::{ALL, LIMIT, echoed, fixture, modern, with};

fn call(id: u64) -> String {
    let params = modern(json!({ "name": "f__echo", "arguments": { "text": "hi" } }));
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

#[test]
fn a_socket_serves_and_blocks_again_afterwards() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let (ours, theirs) = UnixStream::pair().unwrap();
    let kept = theirs.try_clone().unwrap();
    let mut command = world.capstan(["serve"]).into_command();
    let (input, output): (OwnedFd, OwnedFd) = (theirs.try_clone().unwrap().into(), theirs.into());
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    ours.set_read_timeout(Some(LIMIT)).unwrap();
    let mut lines = BufReader::new(ours.try_clone().unwrap()).lines();
    for id in 1..=3 {
        writeln!(&ours, "{}", call(id)).unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&answer["id"], echoed(&answer).as_str()), (&json!(id), "hi"));
    }
    assert!(fcntl_getfl(&kept).unwrap().contains(OFlags::NONBLOCK));
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let ended = wait_until(|| child.try_wait().unwrap().is_some(), LIMIT);
    drop(child.kill());
    assert!(ended);
    assert!(!fcntl_getfl(&kept).unwrap().contains(OFlags::NONBLOCK));
}

#[test]
fn files_serve_too() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let input = world.write("in", format!("{}\n{}", call(1), call(2)));
    let output = world.home().join("out");
    let mut command = world.capstan(["serve"]).into_command();
    command.stdin(File::open(input).unwrap()).stdout(File::create(&output).unwrap());
    assert!(command.stderr(Stdio::null()).status().unwrap().success());
    let text = fs::read_to_string(output).unwrap();
    let mut ids: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2], "{text}");
}

#[test]
fn a_pipe_stays_as_it_is_for_everybody_else() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (answers, output) = std::io::pipe().unwrap();
    let (kept_in, kept_out) = (reader.try_clone().unwrap(), output.try_clone().unwrap());
    let mut command = world.capstan(["serve"]).into_command();
    command.stdin(reader).stdout(output).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    writeln!(writer, "{}", call(1)).unwrap();
    let mut line = String::new();
    BufReader::new(answers).read_line(&mut line).unwrap();
    assert!(line.contains("\"id\":1"), "{line}");
    for kept in [fcntl_getfl(&kept_in).unwrap(), fcntl_getfl(&kept_out).unwrap()] {
        assert!(!kept.contains(OFlags::NONBLOCK));
    }
    drop(writer);
    drop(kept_in);
    let ended = wait_until(|| child.try_wait().unwrap().is_some(), LIMIT);
    drop(child.kill());
    assert!(ended);
}

//! A server that floods costs little memory, and only itself.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use capstan_testkit::{World, binary, wait_until};
use serde_json::Value;

/// How much more memory a flood may cost than silence, in KiB.
const ROOM: u64 = 64 * 1024;

/// How long a run may take on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(100);

/// What a run has cost and said.
struct Run {
    /// The most memory that `capstan` itself had at once, in KiB.
    peak: u64,
    said: Value,
}

/// Runs `capstan list` with one server, whose command is `words`.
#[track_caller]
fn list(words: &[&str]) -> Run {
    let world = World::new();
    let (command, args) = words.split_first().unwrap();
    world.write_user_config(&format!(
        "[servers.it]\ncommand = {command:?}\nargs = {args:?}\nstartup_timeout = \"80s\"\n"
    ));
    run(&world, &["list", "--json", "--wait", "90s"])
}

#[track_caller]
fn run(world: &World, arguments: &[&str]) -> Run {
    let mut command = world.capstan(arguments).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut capstan = command.spawn().unwrap();
    let mut stdout = capstan.stdout.take().unwrap();
    let said = thread::spawn(move || {
        let mut said = String::new();
        stdout.read_to_string(&mut said).map(|_| said)
    });
    let status = format!("/proc/{}/status", capstan.id());
    let mut peak = 0;
    // The kernel keeps the peak, so nothing is missed between two looks but what comes after the
    // last one, when the servers have been ended.
    let ended = || {
        peak = fs::read_to_string(&status).ok().and_then(|status| peak_in(&status)).unwrap_or(peak);
        capstan.try_wait().unwrap().is_some()
    };
    if !wait_until(ended, LIMIT) {
        capstan.kill().unwrap();
    }
    assert!(capstan.wait().unwrap().success(), "it has failed, or not ended within {LIMIT:?}");
    assert!(peak > 0, "it was over before anybody could look");
    let said = said.join().unwrap().unwrap();
    Run { peak, said: serde_json::from_str(&said).unwrap() }
}

/// The peak in `/proc/PID/status`, in KiB; a process that has ended has none.
fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[track_caller]
fn assert_cheap(flood: &Run, quiet: &Run) {
    let cost = flood.peak.saturating_sub(quiet.peak);
    assert!(cost < ROOM, "{} KiB instead of {} KiB", flood.peak, quiet.peak);
}

fn fixture() -> String {
    binary("capstan-fixture").display().to_string()
}

#[test]
fn a_gibibyte_without_a_newline_fails_the_server_and_fills_no_memory() {
    let fixture = fixture();
    let quiet = list(&[&fixture]);
    assert_eq!(quiet.said[0]["state"], "connected");
    let flood = list(&[&fixture, "--flood", "1073741824"]);
    assert_cheap(&flood, &quiet);
    assert_eq!(flood.said[0]["state"], "failed");
    let error = flood.said[0]["error"].as_str().unwrap();
    assert!(error.contains("without a newline"), "{error}");
}

#[test]
fn a_flood_of_stderr_fills_no_memory_and_fails_nobody() {
    let fixture = fixture();
    let quiet = list(&[&fixture]);
    let lines = "yes 'a line that nobody reads' | head -c 16777216 >&2";
    let endless = "head -c 67108864 /dev/zero >&2";
    for noise in [lines, endless] {
        let flood = list(&["sh", "-c", &format!("{noise}; exec \"$0\""), &fixture]);
        assert_cheap(&flood, &quiet);
        assert_eq!(flood.said[0]["state"], "connected", "{noise}: {}", flood.said);
    }
}

#[test]
fn a_flood_of_lines_that_are_no_messages_fills_no_memory_and_fails_nobody() {
    let fixture = fixture();
    let quiet = list(&[&fixture]);
    let line = "yes 'not a message' | head -c 8388608; exec \"$0\"";
    let flood = list(&["sh", "-c", line, &fixture]);
    assert_cheap(&flood, &quiet);
    assert_eq!(flood.said[0]["state"], "connected", "{}", flood.said);
}

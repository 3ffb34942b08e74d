//! A call that a running gateway makes, seen from the terminal it was typed at.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use capstan_testkit::World;

use crate::{Terminal, world};

/// A gateway that ends with the test.
struct Gateway(Child);

impl Gateway {
    #[track_caller]
    fn start(world: &World) -> Self {
        let mut command = world.capstan(["serve", "--http", ":0"]).into_command();
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.starts_with("listening on")));
        Self(child)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_question_of_a_server_that_the_gateway_calls_is_answered_by_keys() {
    let world = world();
    let gateway = Gateway::start(&world);
    let mut terminal = Terminal::start(&world, "call f__elicit");
    terminal.wait_for("`f` asks:");
    terminal.wait_for("Who are you?");
    terminal.wait_for("Answer `f`?");
    terminal.press("\r");
    terminal.wait_for("f › Name:");
    terminal.press("Ada\r");
    assert_eq!(terminal.end(), 0);
    let answer = "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}";
    assert!(terminal.screen().contains(answer), "{}", terminal.screen());
    // The only server that was ever started is the gateway's.
    let trace = fs::read_to_string(world.home().join("trace")).unwrap();
    let starts = trace.lines().filter(|line| line.contains("\"server/discover\"")).count();
    assert_eq!(starts, 1, "{trace}");
    drop(gateway);
}

/// Issue 15, number 6.
#[test]
fn progress_of_a_call_that_the_gateway_makes_is_shown() {
    for words in ["call", "--attach call"] {
        let world = world();
        let _gateway = Gateway::start(&world);
        let words = format!("{words} f__progress steps=2 ms=600000");
        let mut terminal = Terminal::start(&world, &words);
        terminal.wait_for("50 %  step 1");
        terminal.press("\u{3}");
        assert_eq!(terminal.end(), 130);
    }
}

#[test]
fn a_slow_call_of_the_gateway_shows_a_spinner_and_ends_with_its_shell() {
    let world = world();
    let _gateway = Gateway::start(&world);
    let mut terminal = Terminal::start(&world, "call f__slow ms=600000");
    terminal.wait_for("calling `f__slow`");
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), 130);
    let cancelled = || {
        let trace = fs::read_to_string(world.home().join("trace")).unwrap_or_default();
        trace.contains("notifications/cancelled")
    };
    assert!(capstan_testkit::wait_until(cancelled, crate::LIMIT), "the call goes on");
}

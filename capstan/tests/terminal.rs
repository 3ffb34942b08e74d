//! The command line in a real terminal of 80 by 24: tables, spinner, questions, Ctrl-C, colours.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

#[path = "terminal/adopt.rs"]
mod adopt;
#[path = "terminal/approve.rs"]
mod approve;
#[path = "terminal/attach.rs"]
mod attach;
#[path = "terminal/chat.rs"]
mod chat;
#[path = "terminal/edit.rs"]
mod edit;
#[path = "terminal/full_screen/mod.rs"]
mod full_screen;
#[path = "terminal/import.rs"]
mod import;
#[path = "terminal/login.rs"]
mod login;
#[path = "web/peer.rs"]
#[expect(dead_code, reason = "not every test needs all of it")]
mod peer;
#[path = "terminal/picture.rs"]
mod picture;

use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use capstan_testkit::{World, binary, wait_until};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(50);

/// A program in a terminal.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    seen: Arc<Mutex<Seen>>,
    master: Box<dyn MasterPty + Send>,
}

/// What has come out of the program.
#[derive(Default)]
struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    closed: bool,
}

// === impl Seen ===

impl Seen {
    fn resize(&mut self, rows: u16, cols: u16) {
        let (rows, cols) = (NonZeroU16::new(rows).unwrap(), NonZeroU16::new(cols).unwrap());
        self.screen.set_size(rows, cols);
    }
}

// === impl Terminal ===

impl Terminal {
    fn start(world: &World, words: &str) -> Self {
        Self::start_with(world, words, &[("TERM", "xterm-256color")])
    }

    fn start_with(world: &World, words: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_sized(world, words, variables, (24, 80))
    }

    fn start_sized(
        world: &World,
        words: &str,
        variables: &[(&str, &str)],
        (rows, cols): (u16, u16),
    ) -> Self {
        let size = PtySize { rows, cols, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        // Found in PATH, as a user types it.
        let mut command = CommandBuilder::new("capstan");
        command.args(words.split_whitespace());
        command.cwd(world.project());
        command.env_clear();
        for (name, value) in world.environment() {
            command.env(name, value);
        }
        let folder = binary("capstan").parent().unwrap().to_owned();
        let path = command.get_env("PATH").unwrap_or_default().to_owned();
        command.env("PATH", format!("{}:{}", folder.display(), path.display()));
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let keyboard = pair.master.take_writer().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        seen.lock().unwrap().resize(rows, cols);
        let filled = Arc::clone(&seen);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // The terminal reports an error once the program is gone.
            while let Ok(length @ 1..) = output.read(&mut piece) {
                let piece = piece.get(..length).unwrap_or_default();
                let mut seen = filled.lock().unwrap();
                seen.screen.process(piece);
                seen.bytes.extend_from_slice(piece);
            }
            filled.lock().unwrap().closed = true;
        });
        Self { child, keyboard, seen, master: pair.master }
    }

    /// Gives the terminal another size.
    fn resize(&self, rows: u16, cols: u16) {
        self.seen.lock().unwrap().resize(rows, cols);
        self.master.resize(PtySize { rows, cols, ..PtySize::default() }).unwrap();
    }

    /// What stands on the screen.
    fn screen(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// Everything that was written, with its escapes.
    fn written(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    #[track_caller]
    fn wait_for(&self, piece: &str) {
        let seen = wait_until(|| self.screen().contains(piece), LIMIT);
        assert!(seen, "{piece:?} is not on the screen:\n{}", self.screen());
    }

    #[track_caller]
    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits for the end: the exit code.
    #[track_caller]
    fn end(&mut self) -> u32 {
        let mut status = None;
        let ended = wait_until(
            || {
                status = self.child.try_wait().unwrap();
                status.is_some()
            },
            LIMIT,
        );
        assert!(ended, "it goes on:\n{}", self.screen());
        assert!(
            wait_until(|| self.seen.lock().unwrap().closed, LIMIT),
            "the terminal is held open"
        );
        status.unwrap().exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A world with the server `f`, which leaves a trace.
fn world() -> World {
    let world = World::new();
    let quoted = |text: &str| Value::from(text).to_string();
    let command = quoted(binary("capstan-fixture").to_str().unwrap());
    let trace = quoted(world.home().join("trace").to_str().unwrap());
    world.write_user_config(&format!(
        "[servers.f]\ncommand = {command}\nargs = [\"--trace\", {trace}, \"--tools\", \"40\"]\n"
    ));
    world
}

/// The lines that were written, without escapes.
fn lines(terminal: &Terminal) -> Vec<String> {
    let written = terminal.written();
    let mut plain = String::new();
    let mut rest = written.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = after.get(end..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain.split('\n').map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

#[test]
fn tables_fit_the_screen() {
    let world = world();
    world.capstan(["call", "f__echo"]).run().ok();
    for words in ["tools", "list", "config show", "why f__echo", "audit", "--help"] {
        let mut terminal = Terminal::start(&world, words);
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
        let lines = lines(&terminal);
        assert!(lines.len() > 2, "{lines:?}");
        // The spinner redraws its line; what counts is what stays.
        for line in lines.iter().map(|line| line.rsplit('\r').next().unwrap_or_default()) {
            assert!(line.chars().count() <= 80, "`{words}`: {line:?}");
        }
    }
}

#[test]
fn a_slow_call_shows_a_spinner_that_vanishes() {
    let world = world();
    let mut terminal = Terminal::start(&world, "call f__slow ms=3000");
    terminal.wait_for("calling `f__slow`");
    assert_eq!(terminal.end(), 0);
    assert_eq!(terminal.screen().trim(), "done");
}

#[test]
fn an_answer_stands_alone_on_the_screen() {
    let world = world();
    let mut terminal = Terminal::start(&world, "call f__add a=1 b=2");
    assert_eq!(terminal.end(), 0);
    assert_eq!(terminal.screen().trim(), "3");
}

#[test]
fn a_question_is_answered_by_keys() {
    let world = world();
    let mut terminal = Terminal::start(&world, "call f__elicit");
    terminal.wait_for("`f` asks:");
    terminal.wait_for("Who are you?");
    terminal.wait_for("Answer `f`?");
    terminal.press("\r");
    terminal.wait_for("f › Name:");
    // Too long for the form, so it is asked for again.
    terminal.press(&format!("{}\r", "x".repeat(41)));
    terminal.wait_for("at most 40");
    terminal.press("Ada\r");
    assert_eq!(terminal.end(), 0);
    let answer = "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}";
    assert!(terminal.screen().contains(answer), "{}", terminal.screen());
}

#[test]
fn a_question_can_be_declined_and_closed() {
    let world = world();
    for (keys, action) in [("\u{1b}[B\r", "decline"), ("\u{1b}[B\u{1b}[B\r", "cancel")] {
        let mut terminal = Terminal::start(&world, "call f__elicit");
        terminal.wait_for("Answer `f`?");
        terminal.press(keys);
        assert_eq!(terminal.end(), 0);
        let answer = format!("{{\"action\":\"{action}\"}}");
        assert!(terminal.screen().contains(&answer), "{}", terminal.screen());
    }
}

#[test]
fn a_project_is_approved_by_a_person() {
    let world = World::new();
    world.write_project_config("[servers.x]\ncommand = \"x\"\n");
    for (keys, code) in [("n\r", 6), ("\r", 6), ("y\r", 0)] {
        let mut terminal = Terminal::start(&world, "trust");
        terminal.wait_for("[servers.x]");
        terminal.wait_for("Trust this file");
        terminal.press(keys);
        assert_eq!(terminal.end(), code, "{}", terminal.screen());
    }
}

#[test]
fn a_file_that_is_not_trusted_does_not_keep_the_next_one_from_being_offered() {
    let world = World::new();
    world.write_project_config("[servers.x]\ncommand = \"x\"\n");
    world.write("project/.mcp.json", r#"{"mcpServers":{"other":{"command":"y"}}}"#);
    let mut terminal = Terminal::start(&world, "trust");
    terminal.wait_for("Trust this file");
    terminal.press("n\r");
    terminal.wait_for("[servers.x]");
    terminal.wait_for("Trust this file");
    terminal.press("y\r");
    assert_eq!(terminal.end(), 6, "{}", terminal.screen());
    assert!(terminal.screen().contains("not trusted: "), "{}", terminal.screen());
    assert!(terminal.screen().contains("trusted "), "{}", terminal.screen());
    assert!(terminal.screen().contains("asks again"), "{}", terminal.screen());
}

#[test]
fn ctrl_c_cancels_a_call_that_hangs() {
    let world = world();
    let trace = world.home().join("trace");
    let heard = || fs::read_to_string(&trace).unwrap_or_default();
    let mut terminal = Terminal::start(&world, "call f__hang");
    terminal.wait_for("calling `f__hang`");
    assert!(wait_until(|| heard().contains("tools/call"), LIMIT), "{}", heard());
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), 130);
    assert_eq!(terminal.screen(), "", "neither the spinner nor the key is left");
    assert_eq!(terminal.seen.lock().unwrap().screen.screen().cursor_position().1, 0);
    assert!(wait_until(|| heard().contains("notifications/cancelled"), LIMIT), "{}", heard());
    let log = fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
    let entry: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(entry.get("outcome").unwrap(), "abandoned");
    assert_eq!(entry.get("item").unwrap(), "hang");
}

/// Issue 15, number 10 (DEC-16).
#[test]
fn a_terminal_shows_a_long_answer_in_pages() {
    let world = world();
    let mut terminal = Terminal::start(&world, "call f__big bytes=100001");
    terminal.wait_for("page 1 of 2 of an answer with about 25000 tokens");
    assert_eq!(terminal.end(), 0);
    let mut terminal = Terminal::start(&world, "call f__big bytes=99000");
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.screen().contains("page 1"), "{}", terminal.screen());
}

#[test]
fn a_question_that_is_never_answered_leaves_the_keyboard_as_it_was() {
    let world = world();
    let mut terminal = Terminal::start(&world, "call f__elicit");
    let modes = |terminal: &Terminal| {
        let settings = terminal.master.get_termios().unwrap();
        (settings.local_flags, settings.input_flags)
    };
    let before = modes(&terminal);
    terminal.wait_for("Answer `f`?");
    assert!(wait_until(|| modes(&terminal) != before, LIMIT), "no key is waited for");
    let pid = i32::try_from(terminal.child.process_id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert_eq!(terminal.end(), 130);
    assert_eq!(modes(&terminal), before);
}

#[test]
fn colours_are_used_unless_they_are_not_wanted() {
    let world = world();
    let coloured = |variables: &[(&str, &str)]| {
        let mut terminal = Terminal::start_with(&world, "call f__nobody", variables);
        assert_eq!(terminal.end(), 4);
        terminal.written().contains("\u{1b}[1m") || terminal.written().contains("\u{1b}[31m")
    };
    assert!(coloured(&[("TERM", "xterm-256color")]));
    assert!(!coloured(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")]));
    assert!(!coloured(&[("TERM", "dumb")]));
}

#[test]
fn without_colours_not_one_escape_is_written() {
    let world = world();
    for words in ["call f__nobody", "lst", "config check", "tools --help", "list --debug"] {
        let variables = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
        let mut terminal = Terminal::start_with(&world, words, &variables);
        terminal.end();
        let written = terminal.written();
        assert!(!written.contains("\u{1b}["), "`{words}`: {written:?}");
    }
}

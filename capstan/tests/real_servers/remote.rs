//! Servers that are already running, on the loopback and a port of their own choice.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use capstan_testkit::process::command;
use capstan_testkit::{World, wait_until};

use crate::{ALLOW, LIMIT, installed};

/// A server that somebody else has started. It ends when it is dropped.
pub(crate) struct Remote {
    child: Child,
    /// Where it is, without what the transport adds.
    pub(crate) url: String,
    notes: PathBuf,
}

// === impl Remote ===

impl Remote {
    /// The reference server; `transport` is its own word for one.
    #[track_caller]
    pub(crate) fn everything(world: &World, transport: &str) -> Self {
        let mut command = command("node");
        command.arg("-r").arg(beside("loopback.cjs"));
        Self::start(world, command.arg(installed("mcp-server-everything")).arg(transport))
    }

    /// A server made with a Python package.
    #[track_caller]
    pub(crate) fn python(world: &World, package: &str) -> Self {
        let mut command = command(installed("python"));
        Self::start(world, command.arg(beside(&format!("python_{package}.py"))))
    }

    /// Anything that says where it listens.
    #[track_caller]
    pub(crate) fn start(world: &World, command: &mut Command) -> Self {
        let notes = world.write("notes", "");
        command.env("NOTES", &notes).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = listen(child.stderr.take().unwrap());
        let mut remote = Self { child, url: String::new(), notes };
        remote.url = said.recv_timeout(LIMIT).unwrap();
        remote
    }

    /// What the server has noted, a line each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(&self.notes).unwrap();
        notes.lines().map(ToOwned::to_owned).collect()
    }

    #[track_caller]
    pub(crate) fn wait_for_note(&self, note: &str) {
        let noted = wait_until(|| self.notes().iter().any(|line| line == note), LIMIT);
        assert!(noted, "no `{note}` in {:?}", self.notes());
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // It may have ended by itself, which its test will tell.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Makes this the only server of a world, called `it`.
#[track_caller]
pub(crate) fn use_it(world: &World, url: &str, more: &str) {
    let entry = format!("[servers.it]\nurl = {url:?}\nstartup_timeout = \"80s\"\n{more}\n");
    world.write_user_config(&format!("{ALLOW}{entry}"));
}

pub(crate) fn beside(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_servers").join(file)
}

/// The address that a server says it listens at. Reads on after it, so that no pipe fills up.
fn listen(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if let Some(url) = line.strip_prefix("listening on ") {
                // Whoever wanted to know may have given up.
                drop(sender.send(url.to_owned()));
            }
        }
    });
    receiver
}

//! A person in front of a terminal, who sees progress and presses Ctrl-C.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;

use capstan_testkit::{World, binary, wait_until};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::LIMIT;

/// `capstan` in a terminal.
pub(crate) struct Screen {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    seen: Arc<Mutex<vt100::Parser>>,
    _master: Box<dyn MasterPty + Send>,
}

// === impl Screen ===

impl Screen {
    #[track_caller]
    pub(crate) fn start(world: &World, words: &[&str]) -> Self {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let mut command = CommandBuilder::new(binary("capstan"));
        command.args(words);
        command.cwd(world.project());
        command.env_clear();
        command.env("TERM", "xterm-256color");
        for (name, value) in world.environment() {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let keyboard = pair.master.take_writer().unwrap();
        let seen = Arc::new(Mutex::new(vt100::Parser::default()));
        let filled = Arc::clone(&seen);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // The terminal reports an error once the program is gone.
            while let Ok(length @ 1..) = output.read(&mut piece) {
                filled.lock().unwrap().process(&piece[..length]);
            }
        });
        Self { child, keyboard, seen, _master: pair.master }
    }

    fn text(&self) -> String {
        self.seen.lock().unwrap().screen().contents()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, piece: &str) {
        let seen = wait_until(|| self.text().contains(piece), LIMIT);
        assert!(seen, "{piece:?} is not on the screen:\n{}", self.text());
    }

    /// Presses Ctrl-C and waits for the end: the exit code.
    #[track_caller]
    pub(crate) fn interrupt(&mut self) -> u32 {
        self.keyboard.write_all(b"\x03").unwrap();
        self.keyboard.flush().unwrap();
        let mut status = None;
        let ended = || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        };
        assert!(wait_until(ended, LIMIT), "it goes on:\n{}", self.text());
        status.unwrap().exit_code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

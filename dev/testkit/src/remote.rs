//! The conformance server behind HTTP, for as long as a test needs it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::binary;
use crate::fail::{OrFail, fail};
use crate::process::command;

/// A running server. It ends when it is dropped.
pub struct Remote {
    child: Child,
    /// Where it is reached.
    pub url: String,
}

// === impl Remote ===

impl Remote {
    /// Starts a server of one era.
    #[track_caller]
    pub fn start(era: &str) -> Self {
        let mut command = command(binary("capstan-conformance-server"));
        command.args(["--http", "127.0.0.1:0", "--era", era]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().or_fail("cannot start the conformance server");
        let mut line = String::new();
        if let Some(stderr) = child.stderr.take() {
            BufReader::new(stderr).read_line(&mut line).or_fail("the conformance server is mute");
        }
        match line.trim().strip_prefix("listening on ") {
            Some(url) => Self { child, url: url.to_owned() },
            None => fail(&format!("the conformance server says `{}`", line.trim())),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

//! Counts the instructions of a run of this program, by valgrind.

use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use capstan_testkit::process;

/// The options of valgrind that count instructions.
pub(crate) const COUNTING: [&str; 2] = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];

/// Instructions of a whole run with these words.
pub(crate) fn instructions(program: &Path, words: &[String]) -> anyhow::Result<u64> {
    counted(process::command("valgrind").args(COUNTING).arg(program).args(words))
}

/// Instructions of a run of valgrind with [`COUNTING`].
pub(crate) fn counted(command: &mut Command) -> anyhow::Result<u64> {
    let output = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("`valgrind` is not installed, so instructions cannot be counted")
        }
        other => other.context("cannot run valgrind")?,
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind ended with {}: {said}", output.status);
    }
    collected(&said).with_context(|| format!("valgrind does not say what it counted: {said}"))
}

/// The total that callgrind prints at its end.
pub(crate) fn collected(said: &str) -> Option<u64> {
    let (_, total) = said.lines().find_map(|line| line.split_once("Collected : "))?;
    total.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_in_what_callgrind_says() {
        let said = "==9== Events    : Ir\n==9== Collected : 1234567\n==9== \n";
        assert_eq!(collected(said), Some(1_234_567));
        for silent in ["", "==9== Events    : Ir\n", "==9== Collected : \n"] {
            assert_eq!(collected(silent), None);
        }
    }
}

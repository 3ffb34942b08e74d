//! Processes seen from outside.

use std::ffi::OsStr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// A command whose environment the test decides.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start programs with surroundings of their own"
)]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Waits until a condition holds; `false` when it did not within the limit.
pub fn wait_until(mut condition: impl FnMut() -> bool, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(INTERVAL);
    }
}

/// Whether a process runs; one that ended and was not collected yet does not.
pub fn alive(pid: u32) -> bool {
    table::entries().iter().any(|entry| entry.pid == pid && !entry.dead)
}

/// The children of a process and theirs, as long as their parents live; not the process itself.
pub fn descendants(pid: u32) -> Vec<u32> {
    let entries = table::entries();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let children = entries.iter().filter(|entry| entry.parent == parent && !entry.dead);
        for child in children {
            if !found.contains(&child.pid) {
                found.push(child.pid);
            }
        }
    }
    found.remove(0);
    found
}

/// A line of the process table.
struct Entry {
    pid: u32,
    parent: u32,
    dead: bool,
}

#[cfg(target_os = "linux")]
mod table {
    use std::fs;

    use super::Entry;

    pub(super) fn entries() -> Vec<Entry> {
        let Ok(folders) = fs::read_dir("/proc") else { return Vec::new() };
        folders.flatten().filter_map(|folder| entry(folder.file_name().to_str()?)).collect()
    }

    fn entry(pid: &str) -> Option<Entry> {
        let pid = pid.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may itself contain parentheses and spaces.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let dead = matches!(fields.next()?, "Z" | "X");
        Some(Entry { pid, parent: fields.next()?.parse().ok()?, dead })
    }
}

#[cfg(not(target_os = "linux"))]
mod table {
    use super::{Entry, command};

    pub(super) fn entries() -> Vec<Entry> {
        let listed = command("ps").args(["-A", "-o", "pid=,ppid=,stat="]).output();
        let listed = listed.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&listed).lines().filter_map(entry).collect()
    }

    fn entry(line: &str) -> Option<Entry> {
        let mut fields = line.split_whitespace();
        let pid = fields.next()?.parse().ok()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Entry { pid, parent, dead: fields.next()?.starts_with('Z') })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_an_impossible_one_does_not() {
        assert!(alive(std::process::id()));
        assert!(!alive(u32::MAX));
        assert_eq!(descendants(u32::MAX), [0_u32; 0]);
    }

    #[test]
    fn waiting_ends_with_the_condition_or_with_the_limit() {
        let mut looked = 0;
        let third = || {
            looked += 1;
            looked == 3
        };
        assert!(wait_until(third, Duration::from_mins(1)));
        assert!(!wait_until(|| false, Duration::ZERO));
    }
}

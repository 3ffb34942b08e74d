//! The processes below us.

use std::collections::HashMap;
use std::io;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, WaitIdOptions};

/// Makes us the parent of every orphan below us.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Elsewhere orphans go to the first process; the process group is all there is.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Something that becomes readable when the process ends, where the system has it.
#[cfg(target_os = "linux")]
pub(super) fn process_handle(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK).ok()
}

/// Something that becomes readable when the process ends, where the system has it.
#[cfg(not(target_os = "linux"))]
pub(super) fn process_handle(_: Pid) -> Option<OwnedFd> {
    None
}

/// Whether there is a child, running or ended, that nobody has collected.
pub(super) fn has_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::All, look).is_ok()
}

/// Sends a signal to every process below us, whatever group or session it has moved to.
pub(super) fn signal_all(signal: Signal) {
    let own = rustix::process::getpid();
    for pid in descendants(own) {
        // It may have ended in the meantime, which is what we want.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Every process below `root`, nearest first.
fn descendants(root: Pid) -> Vec<Pid> {
    let children = children_by_parent();
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for child in children.get(&parent.as_raw_nonzero().get()).into_iter().flatten() {
            found.push(*child);
            open.push(*child);
        }
    }
    found
}

/// Who is whose child, from `/proc`; empty where there is none.
fn children_by_parent() -> HashMap<i32, Vec<Pid>> {
    let mut children: HashMap<i32, Vec<Pid>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return children };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent_in(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The parent in a line of `/proc/PID/stat`. The command's name may contain anything, so the
/// fields are counted from its last closing parenthesis.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_cannot_hide_its_parent_behind_its_name() {
        assert_eq!(parent_in("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a) S 1 (b) R 7 12"), Some(7));
        assert_eq!(parent_in(""), None);
    }
}

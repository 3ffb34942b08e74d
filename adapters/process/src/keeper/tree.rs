//! The process tree below the keeper.

use std::collections::HashMap;
use std::io;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, WaitIdOptions};

/// Makes the keeper the parent of every orphan below it.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Does nothing on other systems. Orphans go to the first process, and only the process group is
/// left.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// A file descriptor that becomes readable when the process ends, if the system supports that.
#[cfg(target_os = "linux")]
pub(super) fn process_handle(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK).ok()
}

/// A file descriptor that becomes readable when the process ends, if the system supports that.
#[cfg(not(target_os = "linux"))]
pub(super) fn process_handle(_: Pid) -> Option<OwnedFd> {
    None
}

/// True if there is a child, running or ended, that has not been reaped.
pub(super) fn has_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::All, look).is_ok()
}

/// Sends a signal to every process below the keeper, whatever group or session it has moved to.
pub(super) fn signal_all(signal: Signal) {
    let own = rustix::process::getpid();
    for pid in descendants(own) {
        // It may have ended in the meantime, which is fine.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Every process below `root`, parents before children.
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

/// The children of each process, from `/proc`; empty on systems without it.
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

/// The parent in a line of `/proc/PID/stat`. The command's name may contain any character, so the
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

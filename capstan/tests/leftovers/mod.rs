//! Finds what runs in a world, however far it has moved from the program that started it.

use std::fs;
use std::time::Duration;

use capstan_testkit::{World, wait_until};

/// How long the last process may take to go once its hub is gone.
const LIMIT: Duration = Duration::from_secs(30);

/// The processes that have the world's home in their environment, each with its command.
///
/// No process can leave this list by changing its parent, group, session or folder.
pub(crate) fn running_in(world: &World) -> Vec<String> {
    let home = format!("HOME={}", world.home().display());
    let Ok(folders) = fs::read_dir("/proc") else { return Vec::new() };
    let lives_here = |folder: &fs::DirEntry| {
        // Of a process that has ended, or is not ours, nothing can be read.
        let variables = fs::read(folder.path().join("environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let describe = |folder: fs::DirEntry| {
        let words = fs::read(folder.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        format!("{} {words}", folder.file_name().display())
    };
    folders.flatten().filter(lives_here).map(describe).collect()
}

/// Waits until nothing runs in the world any more; fails the test with what still does.
#[track_caller]
pub(crate) fn wait_until_empty(world: &World) {
    let empty = wait_until(|| running_in(world).is_empty(), LIMIT);
    assert!(empty, "left behind: {:#?}", running_in(world));
}

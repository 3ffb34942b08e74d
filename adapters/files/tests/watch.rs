//! Files that are watched, as editors and people change them.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use capstan_files::Watch;
use tempfile::TempDir;

/// Time limit for a change to be noticed on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Watches this file, does something, and waits until it is told.
#[track_caller]
fn check(name: &str, prepare: impl Fn(&Path), act: impl Fn(&Path)) {
    let folder = TempDir::new().unwrap();
    prepare(folder.path());
    let (watch, told) = watching(&folder.path().join(name));
    act(folder.path());
    assert!(told.recv_timeout(LIMIT).is_ok());
    drop(watch);
}

#[track_caller]
fn watching(file: &Path) -> (Watch, Receiver<()>) {
    let (tell, told) = channel();
    let mut watch = Watch::new(move || {
        let _ = tell.send(());
    })
    .unwrap();
    watch.set([file]).unwrap();
    (watch, told)
}

#[test]
fn a_file_that_is_written_removed_replaced_or_made_is_told_of() {
    let there = |folder: &Path| fs::write(folder.join("f"), "old").unwrap();
    check("f", there, |folder| fs::write(folder.join("f"), "new").unwrap());
    check("f", there, |folder| fs::remove_file(folder.join("f")).unwrap());
    check("f", there, |folder| {
        fs::write(folder.join("f.tmp"), "new").unwrap();
        fs::rename(folder.join("f.tmp"), folder.join("f")).unwrap();
    });
    check("f", |_| (), |folder| fs::write(folder.join("f"), "new").unwrap());
}

#[test]
fn a_file_is_told_of_whose_folders_are_not_there_yet() {
    check("a/b/f", |_| (), |folder| fs::create_dir(folder.join("a")).unwrap());
}

#[test]
fn what_a_link_points_to_is_watched_too() {
    let link = |folder: &Path| {
        fs::create_dir(folder.join("elsewhere")).unwrap();
        fs::write(folder.join("elsewhere/f"), "old").unwrap();
        std::os::unix::fs::symlink(folder.join("elsewhere/f"), folder.join("f")).unwrap();
    };
    check("f", link, |folder| fs::write(folder.join("elsewhere/f"), "new").unwrap());
}

#[test]
fn other_files_and_reading_are_not_told_of() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("f"), "old").unwrap();
    let (watch, told) = watching(&folder.path().join("f"));
    fs::write(folder.path().join("other"), "new").unwrap();
    fs::read(folder.path().join("f")).unwrap();
    // Only the last change is reported.
    fs::remove_file(folder.path().join("f")).unwrap();
    told.recv_timeout(LIMIT).unwrap();
    drop(watch);
    assert_eq!(told.iter().count(), 0);
}

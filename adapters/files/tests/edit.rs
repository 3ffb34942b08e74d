//! Edits are atomic and exclusive, and leave no temporary files.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::convert::Infallible;
use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;

use capstan_files::{
    Change, EditFileError, FileError, MAX_SIZE, edit, remove_unchanged, with_lock,
};

/// Replaces the content of the file by `text`.
fn put(path: &Path, text: &str) -> Result<Change, EditFileError<Infallible>> {
    edit(path, |_| Ok(text.to_owned())).map(|edited| edited.change)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_new_file_is_for_its_owner_only_and_so_are_its_folders() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a/b/config.toml");
    assert_eq!(put(&path, "x = 1\n").unwrap(), Change::Created);
    assert_eq!(fs::read_to_string(&path).unwrap(), "x = 1\n");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&root.path().join("a")), 0o700);
    assert_eq!(mode(&root.path().join("a/b")), 0o700);
}

#[test]
fn a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert_eq!(put(&path, "new").unwrap(), Change::Replaced);
    assert_eq!(mode(&path), 0o640);
    assert_eq!(names(root.path()), ["config.toml"]);
}

#[test]
fn the_change_sees_the_text_that_is_there() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    let add = |text: &str| Ok::<_, Infallible>(format!("{text}+"));
    edit(&path, add).unwrap();
    edit(&path, add).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "++");
}

#[test]
fn the_same_text_is_not_written_again() {
    use std::os::unix::fs::MetadataExt;

    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    put(&path, "same").unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    assert_eq!(put(&path, "same").unwrap(), Change::Unchanged);
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    assert_eq!(put(&root.path().join("absent"), "").unwrap(), Change::Unchanged);
    assert!(!root.path().join("absent").exists());
}

#[test]
fn a_refused_change_leaves_the_file_alone_and_says_why() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    fs::write(&path, "old").unwrap();
    let refusal = || std::io::Error::other("no such server");
    let error = edit(&path, |_| Err(refusal())).unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "no such server");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[test]
fn a_link_stays_and_its_target_is_edited() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("dotfiles")).unwrap();
    let target = root.path().join("dotfiles/config.toml");
    let link = root.path().join("config.toml");
    let second = root.path().join("second.toml");
    symlink("dotfiles/config.toml", &link).unwrap();
    symlink(&link, &second).unwrap();
    for (path, text) in [(&link, "through a dangling link"), (&second, "through two links")] {
        let edited = edit(path, |_| Ok::<_, Infallible>(text.to_owned())).unwrap();
        assert_eq!(edited.path, target);
        assert_eq!(fs::read_to_string(&target).unwrap(), text);
        assert!(fs::symlink_metadata(path).unwrap().is_symlink());
    }
}

#[test]
fn a_ring_of_links_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    symlink("b", &path).unwrap();
    symlink("a", root.path().join("b")).unwrap();
    let error = put(&path, "x").unwrap_err();
    assert!(matches!(error, EditFileError::File(FileError::TooManyLinks { .. })), "{error:?}");
}

#[test]
fn what_cannot_be_edited_is_refused_and_named() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("binary"), b"\xff").unwrap();
    fs::write(at("large"), "x".repeat(usize::try_from(MAX_SIZE).unwrap() + 1)).unwrap();
    fs::write(at("frozen"), "old").unwrap();
    fs::set_permissions(at("frozen"), Permissions::from_mode(0o444)).unwrap();
    fs::write(at("file"), "").unwrap();
    for name in ["folder", "binary", "large", "frozen", "file/below"] {
        let error = put(&at(name), "new").unwrap_err();
        let EditFileError::File(cause) = &error else { panic!("{name}: {error:?}") };
        assert!(cause.hint().is_some(), "{name}: {cause:?}");
        let first = name.split('/').next().unwrap();
        assert!(error.to_string().contains(first), "{name}: {error}");
    }
    assert_eq!(fs::read_to_string(at("frozen")).unwrap(), "old");
}

#[test]
fn a_text_that_could_not_be_read_back_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    let error = put(&path, &"x".repeat(usize::try_from(MAX_SIZE).unwrap() + 1)).unwrap_err();
    assert!(matches!(error, EditFileError::File(FileError::TooLarge { .. })), "{error:?}");
    assert!(!path.exists());
}

#[test]
fn a_folder_that_may_not_be_written_to_is_named_with_a_remedy() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o500)).unwrap();
    let edited = put(&path, "new");
    fs::set_permissions(root.path(), Permissions::from_mode(0o700)).unwrap();
    // Nothing is forbidden to root.
    let Err(error) = edited else { return };
    let EditFileError::File(cause) = &error else { panic!("{error:?}") };
    assert!(matches!(cause, FileError::Write { .. }), "{cause:?}");
    assert!(cause.hint().unwrap().contains("permissions"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[test]
fn what_a_killed_edit_left_is_removed_by_the_next_one_and_nothing_else_is() {
    let root = tempfile::tempdir().unwrap();
    for name in [".capstan-dead01.tmp", ".capstan-notes", "capstan-x.tmp", ".other.tmp"] {
        fs::write(root.path().join(name), "").unwrap();
    }
    put(&root.path().join("config.toml"), "x").unwrap();
    let left = [".capstan-notes", ".other.tmp", "capstan-x.tmp", "config.toml"];
    assert_eq!(names(root.path()), left);
}

#[test]
fn edits_at_the_same_time_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("config.toml");
    thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for n in 0..10 {
                    let add = |text: &str| Ok::<_, Infallible>(format!("{text}{writer}.{n}\n"));
                    edit(path, add).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    for writer in 0..4 {
        let of_writer = text.lines().filter(|line| line.starts_with(&format!("{writer}.")));
        let expected: Vec<String> = (0..10).map(|n| format!("{writer}.{n}")).collect();
        assert_eq!(of_writer.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_file_is_removed_behind_its_link_and_only_with_the_expected_text() {
    let root = tempfile::tempdir().unwrap();
    let (file, link) = (root.path().join("file"), root.path().join("link"));
    fs::write(&file, "new").unwrap();
    symlink(&file, &link).unwrap();
    assert!(!remove_unchanged(&link, "old").unwrap());
    assert!(file.exists());
    assert!(remove_unchanged(&link, "new").unwrap());
    assert!(!file.exists() && link.is_symlink());
    assert!(!remove_unchanged(&link, "new").unwrap(), "there is none any more");
}

#[test]
fn work_under_a_lock_is_done_by_one_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("new/folder");
    let file = root.path().join("count");
    fs::write(&file, "0").unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                with_lock(&folder, || {
                    let count: u32 = fs::read_to_string(&file).unwrap().parse().unwrap();
                    fs::write(&file, (count + 1).to_string()).unwrap();
                })
                .unwrap();
            });
        }
    });
    assert_eq!(fs::read_to_string(&file).unwrap(), "4");
}

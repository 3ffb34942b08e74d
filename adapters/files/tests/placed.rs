//! Changes in other programs' files: taken back byte for byte, whatever happens in between.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use capstan_files::{Placed, PlacedError, Put, Taken};
use tempfile::TempDir;

const BEFORE: &str = "old\n";
const AFTER: &str = "old\nours\n";

struct Desk {
    folder: TempDir,
    placed: Placed,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let placed = Placed::open(&folder.path().join("state"));
        Self { folder, placed }
    }

    fn with(text: &str) -> Self {
        let desk = Self::new();
        fs::write(desk.file(), text).unwrap();
        desk
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn backup(&self) -> PathBuf {
        self.folder.path().join("file.capstan-backup")
    }

    fn put(&self) -> Put {
        self.placed.put::<Infallible>(&self.file(), Some(BEFORE), AFTER).unwrap()
    }

    fn take_back(&self) -> Taken {
        self.placed.take_back(&self.file(), take).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }
}

/// Takes our line out of a text.
#[expect(clippy::unnecessary_wraps, reason = "callers can fail")]
fn take(text: &str) -> Result<Option<String>, Infallible> {
    Ok(text.contains("ours\n").then(|| text.replace("ours\n", "")))
}

#[test]
fn what_was_put_is_taken_back_and_nothing_is_left_over() {
    let desk = Desk::with(BEFORE);
    assert_eq!(desk.put(), Put::Done { backup: Some(desk.backup()) });
    assert_eq!(desk.text(), AFTER);
    assert_eq!(fs::read_to_string(desk.backup()).unwrap(), BEFORE);
    assert_eq!(desk.put(), Put::Already);
    assert_eq!(desk.placed.would_take_back(&desk.file(), take).unwrap(), Taken::Restored);
    assert_eq!(desk.take_back(), Taken::Restored);
    assert_eq!(desk.text(), BEFORE);
    assert!(!desk.backup().exists());
    assert_eq!(desk.take_back(), Taken::Nothing);
}

#[test]
fn a_file_that_others_have_changed_loses_our_part_alone() {
    let desk = Desk::with(BEFORE);
    desk.put();
    fs::write(desk.file(), "new\nours\n").unwrap();
    assert_eq!(desk.take_back(), Taken::TakenOut { backup: Some(desk.backup()) });
    assert_eq!(desk.text(), "new\n");
    assert_eq!(desk.take_back(), Taken::Nothing);
}

#[test]
fn a_kept_text_that_is_gone_or_changed_is_not_put_back() {
    for damage in [None, Some("something else")] {
        let desk = Desk::with(BEFORE);
        desk.put();
        match damage {
            Some(text) => fs::write(desk.backup(), text).unwrap(),
            None => fs::remove_file(desk.backup()).unwrap(),
        }
        assert!(matches!(desk.take_back(), Taken::TakenOut { .. }));
        assert_eq!(desk.text(), BEFORE);
    }
}

#[test]
fn a_change_that_was_noted_and_never_made_takes_nothing_away() {
    // What a program leaves that is killed before it writes the file.
    let desk = Desk::with(BEFORE);
    desk.put();
    fs::write(desk.file(), BEFORE).unwrap();
    assert_eq!(desk.take_back(), Taken::Nothing);
    assert_eq!(desk.text(), BEFORE);
    desk.put();
    assert_eq!(desk.take_back(), Taken::Restored);
}

#[test]
fn a_file_that_was_made_goes_with_the_folders_that_were_made_for_it() {
    let desk = Desk::new();
    let file = desk.folder.path().join("a/b/file");
    desk.placed.put::<Infallible>(&file, None, AFTER).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(desk.placed.take_back(&file, take).unwrap(), Taken::Removed);
    assert!(!desk.folder.path().join("a").exists());

    desk.placed.put::<Infallible>(&file, None, AFTER).unwrap();
    fs::write(desk.folder.path().join("a/theirs"), "").unwrap();
    assert_eq!(desk.placed.take_back(&file, take).unwrap(), Taken::Removed);
    assert!(desk.folder.path().join("a/theirs").exists() && !file.exists());
}

#[test]
fn a_file_that_cannot_be_written_leaves_neither_note_nor_copy() {
    let desk = Desk::with(BEFORE);
    fs::set_permissions(desk.file(), fs::Permissions::from_mode(0o444)).unwrap();
    let error = desk.placed.put::<Infallible>(&desk.file(), Some(BEFORE), AFTER).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert!(error.hint().is_some());
    assert!(!desk.backup().exists() && desk.text() == BEFORE);
    assert!(!desk.placed.knows::<Infallible>(&desk.file()).unwrap());
}

#[test]
fn damaged_notes_are_an_error_and_not_an_empty_store() {
    let desk = Desk::with(BEFORE);
    desk.put();
    let store = desk.folder.path().join("state/placed.json");
    fs::write(&store, "{").unwrap();
    let error = desk.placed.take_back(&desk.file(), take).unwrap_err();
    assert!(matches!(error, PlacedError::Corrupt { .. }), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains(Path::new(&store).to_str().unwrap())));
    assert_eq!(desk.text(), AFTER);
}

#[test]
fn the_text_without_a_former_change_is_what_a_new_one_starts_from() {
    let desk = Desk::with(BEFORE);
    let base = || desk.placed.base(&desk.file(), take).unwrap();
    assert_eq!(base().as_deref(), Some(BEFORE));
    desk.put();
    assert_eq!(base().as_deref(), Some(BEFORE));
    fs::write(desk.file(), "new\nours\n").unwrap();
    assert_eq!(base().as_deref(), Some("new\n"));
}

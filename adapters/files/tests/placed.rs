//! Changes in other programs' files are reverted byte for byte.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use capstan_files::{Placed, PlacedError, Put, Start, Taken};
use tempfile::TempDir;

const BEFORE: &str = "old\n";
const AFTER: &str = "old\nours\n";
const NO_FILE: Start = Start { now: None, base: None };

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
        let start = self.placed.start(&self.file(), take).unwrap();
        self.placed.put::<Infallible>(&self.file(), &start, AFTER).unwrap()
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
    // The state after a program was killed before it wrote the file.
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
    desk.placed.put::<Infallible>(&file, &NO_FILE, AFTER).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(desk.placed.take_back(&file, take).unwrap(), Taken::Removed);
    assert!(!desk.folder.path().join("a").exists());

    desk.placed.put::<Infallible>(&file, &NO_FILE, AFTER).unwrap();
    fs::write(desk.folder.path().join("a/theirs"), "").unwrap();
    assert_eq!(desk.placed.take_back(&file, take).unwrap(), Taken::Removed);
    assert!(desk.folder.path().join("a/theirs").exists() && !file.exists());
}

#[test]
fn a_file_that_cannot_be_written_leaves_neither_note_nor_copy() {
    let desk = Desk::with(BEFORE);
    fs::set_permissions(desk.file(), fs::Permissions::from_mode(0o444)).unwrap();
    let start = desk.placed.start(&desk.file(), take).unwrap();
    let error = desk.placed.put::<Infallible>(&desk.file(), &start, AFTER).unwrap_err();
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
    let base = || desk.placed.start(&desk.file(), take).unwrap().base;
    assert_eq!(base().as_deref(), Some(BEFORE));
    desk.put();
    assert_eq!(base().as_deref(), Some(BEFORE));
    fs::write(desk.file(), "new\nours\n").unwrap();
    assert_eq!(base().as_deref(), Some("new\n"));
}

#[test]
fn what_others_write_after_the_start_is_not_overwritten() {
    for (before, theirs) in [
        (Some(BEFORE), Some("old\ntheirs\n")),
        (Some(BEFORE), None),
        (None, Some("theirs\n")),
        // Not even what we would have written ourselves is then noted as ours.
        (Some(BEFORE), Some(AFTER)),
    ] {
        let desk = before.map_or_else(Desk::new, Desk::with);
        let start = desk.placed.start(&desk.file(), take).unwrap();
        match theirs {
            Some(text) => fs::write(desk.file(), text).unwrap(),
            None => fs::remove_file(desk.file()).unwrap(),
        }
        let error = desk.placed.put::<Infallible>(&desk.file(), &start, AFTER).unwrap_err();
        assert!(matches!(error, PlacedError::Raced { .. }), "{error:?}");
        assert_eq!(fs::read_to_string(desk.file()).ok().as_deref(), theirs);
        assert!(!desk.backup().exists());
        assert!(!desk.placed.knows::<Infallible>(&desk.file()).unwrap());
    }
}

#[test]
fn a_second_change_is_not_made_over_what_others_wrote_meanwhile() {
    let desk = Desk::with(BEFORE);
    desk.put();
    let start = desk.placed.start(&desk.file(), take).unwrap();
    fs::write(desk.file(), "theirs\nours\n").unwrap();
    let error = desk.placed.put::<Infallible>(&desk.file(), &start, "old\nnew\n").unwrap_err();
    assert!(matches!(error, PlacedError::Raced { .. }), "{error:?}");
    assert_eq!(desk.text(), "theirs\nours\n");
    assert_eq!(desk.take_back(), Taken::TakenOut { backup: Some(desk.backup()) });
    assert_eq!(desk.text(), "theirs\n");
}

#[test]
fn the_kept_text_is_written_while_nobody_else_writes_in_its_folder() {
    // The file itself is in another folder, whose lock says nothing about this one.
    let desk = Desk::new();
    let real = desk.folder.path().join("real/file");
    fs::create_dir(real.parent().unwrap()).unwrap();
    fs::write(&real, BEFORE).unwrap();
    std::os::unix::fs::symlink(&real, desk.file()).unwrap();
    let start = desk.placed.start(&desk.file(), take).unwrap();
    let held = fs::File::open(desk.folder.path()).unwrap();
    held.lock().unwrap();
    let error = desk.placed.put::<Infallible>(&desk.file(), &start, AFTER).unwrap_err();
    assert!(matches!(error, PlacedError::File(_)), "{error:?}");
    assert!(!desk.backup().exists() && fs::read_to_string(&real).unwrap() == BEFORE);
    drop(held);
    assert_eq!(desk.put(), Put::Done { backup: Some(desk.backup()) });
}

#[test]
fn a_part_that_is_needed_comes_back_into_a_missing_file() {
    let desk = Desk::with(BEFORE);
    desk.put();
    fs::remove_file(desk.file()).unwrap();
    let restore = |text: &str| Ok::<_, Infallible>(text.is_empty().then(|| BEFORE.to_owned()));
    let start = desk.placed.start(&desk.file(), restore).unwrap();
    assert_eq!(start, Start { now: None, base: Some(BEFORE.to_owned()) });
    let out = Taken::TakenOut { backup: None };
    assert_eq!(desk.placed.would_take_back(&desk.file(), restore).unwrap(), out);
    let out = Taken::TakenOut { backup: Some(desk.backup()) };
    assert_eq!(desk.placed.take_back(&desk.file(), restore).unwrap(), out);
    assert_eq!(desk.text(), BEFORE);
}

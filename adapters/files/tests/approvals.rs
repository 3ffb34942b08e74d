//! Nothing is approved but the very text the operator agreed to.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use capstan_files::{Approval, Approvals, ApprovalsError};
use jiff::Timestamp;

const FILE: &str = "/project/.mcp.json";

struct World {
    state: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { state: tempfile::tempdir().unwrap() }
    }

    fn approvals(&self) -> Approvals {
        Approvals::open(self.state.path()).unwrap()
    }

    fn store(&self) -> PathBuf {
        self.state.path().join("approvals.json")
    }

    fn bad_copies(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|ext| ext == "bad")).collect()
    }
}

fn approve(approvals: &Approvals, path: &str, text: &str) {
    approvals.approve(Path::new(path), text, Timestamp::UNIX_EPOCH).unwrap();
}

fn status(approvals: &Approvals, path: &str, text: &str) -> Approval {
    approvals.status(Path::new(path), text).unwrap()
}

#[test]
fn a_file_nobody_agreed_to_is_unknown() {
    let approvals = World::new().approvals();
    assert_eq!(status(&approvals, FILE, "{}"), Approval::Unknown);
    approve(&approvals, FILE, "{}");
    assert_eq!(status(&approvals, "/elsewhere/.mcp.json", "{}"), Approval::Unknown);
    assert_eq!(status(&approvals, "/project/.MCP.json", "{}"), Approval::Unknown);
}

#[test]
fn an_approved_text_is_approved_also_for_the_next_process() {
    let world = World::new();
    approve(&world.approvals(), FILE, "{}");
    assert_eq!(status(&world.approvals(), FILE, "{}"), Approval::Approved);
    assert_eq!(fs::metadata(world.store()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn any_other_text_is_changed_and_comes_with_the_approved_one() {
    let approvals = World::new().approvals();
    approve(&approvals, FILE, "{ü}");
    for text in ["", "{ü} ", "{Ü}", "{u\u{308}}", "{}"] {
        let changed = Approval::Changed { approved_text: "{ü}".to_owned() };
        assert_eq!(status(&approvals, FILE, text), changed, "{text:?}");
    }
}

#[test]
fn a_second_approval_takes_the_place_of_the_first() {
    let approvals = World::new().approvals();
    approve(&approvals, FILE, "old");
    approve(&approvals, FILE, "new");
    assert_eq!(status(&approvals, FILE, "new"), Approval::Approved);
    assert_ne!(status(&approvals, FILE, "old"), Approval::Approved);
    let listed = approvals.list().unwrap();
    let [only] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((only.path.as_path(), only.text.as_str()), (Path::new(FILE), "new"));
    assert_eq!(only.hash, "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437");
    assert_eq!(only.time, Timestamp::UNIX_EPOCH);
}

#[test]
fn a_revoked_file_is_unknown_again() {
    let approvals = World::new().approvals();
    assert!(!approvals.revoke(Path::new(FILE)).unwrap());
    approve(&approvals, FILE, "{}");
    assert!(approvals.revoke(Path::new(FILE)).unwrap());
    assert_eq!(status(&approvals, FILE, "{}"), Approval::Unknown);
}

#[test]
fn a_path_that_depends_on_where_one_stands_is_refused() {
    let approvals = World::new().approvals();
    for path in ["", ".mcp.json", "./.mcp.json", "../project/.mcp.json"] {
        let error = approvals.approve(Path::new(path), "{}", Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(matches!(error, ApprovalsError::BadPath { .. }), "{path:?}: {error:?}");
        assert!(approvals.status(Path::new(path), "{}").is_err(), "{path:?}");
    }
    assert!(approvals.list().unwrap().is_empty());
}

#[test]
fn a_damaged_store_is_an_error_for_every_use_and_stays_as_it_is() {
    let forged = format!(
        r#"{{"{FILE}": {{"hash": "{}", "text": "evil", "time": "1970-01-01T00:00:00Z"}}}}"#,
        "0".repeat(64)
    );
    let extra = r#"{"/a": {"hash": "", "text": "", "time": "1970-01-01T00:00:00Z", "x": 1}}"#;
    let damaged: [&[u8]; 6] = [b"", b"{", b"[]", b"\xff{}", forged.as_bytes(), extra.as_bytes()];
    for bytes in damaged {
        let world = World::new();
        let approvals = world.approvals();
        fs::write(world.store(), bytes).unwrap();
        let path = Path::new(FILE);
        let failures = [
            Approvals::open(world.state.path()).map(drop),
            approvals.status(path, "evil").map(drop),
            approvals.approve(path, "{}", Timestamp::UNIX_EPOCH),
            approvals.revoke(path).map(drop),
            approvals.list().map(drop),
        ];
        for failure in failures {
            let error = failure.unwrap_err();
            assert!(matches!(error, ApprovalsError::Corrupt { .. }), "{bytes:?}: {error:?}");
        }
        assert_eq!(fs::read(world.store()).unwrap(), bytes);
        let kept = world.bad_copies();
        let [copy] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!(fs::read(copy).unwrap(), bytes);
    }
}

#[test]
fn a_second_damage_does_not_overwrite_what_is_left_of_the_first() {
    let world = World::new();
    for bytes in ["{first", "{second"] {
        fs::write(world.store(), bytes).unwrap();
        assert!(Approvals::open(world.state.path()).is_err());
    }
    assert_eq!(world.bad_copies().len(), 2);
}

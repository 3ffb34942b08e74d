//! Commands that must work where files and folders of ours cannot be used.

use std::fs;

use capstan_testkit::World;

use crate::stage::{ends_with, failure, fixture, json, row, run, says, with, with_fixture};

/// Puts a file in the place of the state folder, which no right can make writable.
#[track_caller]
fn without_state_folder(world: &World) {
    let folder = world.state().join("capstan");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(world.state()).unwrap();
    fs::write(folder, "in the way").unwrap();
}

#[test]
fn list_and_doctor_work_without_a_usable_state_folder() {
    let world = with_fixture();
    without_state_folder(&world);
    let listed = ends_with(run(&world, "list"), 0);
    says(&listed.stdout, "connected");
    says(&listed.stderr, "its tools cannot be compared with their pins");
    let checks = json(&ends_with(run(&world, "doctor --json"), 0));
    for broken in ["state folder", "state database", "audit log"] {
        assert_eq!(row(&checks, "check", broken)["status"], "error", "{checks:#}");
    }
    assert_eq!(row(&checks, "check", "server f")["status"], "ok", "{checks:#}");
    ends_with(run(&world, "doctor --strict"), 1);
}

/// A call that cannot be recorded is refused, and a gateway does not start.
#[test]
fn nothing_is_called_or_served_without_a_usable_state_folder() {
    // The tools of a trusted server need no pins, so only the audit log refuses the call.
    let world = with(&format!("{}trust = \"trusted\"\n", fixture("f", &[])));
    without_state_folder(&world);
    let refused = ends_with(run(&world, "call f__echo text=hi"), 7);
    says(&refused.stderr, "the audit log cannot be written");
    let served = run(&world, "serve");
    assert_ne!(served.status, Some(0), "{}", served.stderr);
    says(&served.stderr, "audit log");
}

#[test]
fn list_and_doctor_report_a_file_that_cannot_be_read_and_show_the_rest() {
    let world = with("");
    let config = world.config().join("capstan/config.toml");
    fs::remove_file(&config).unwrap();
    fs::create_dir(&config).unwrap();
    world.write("project/.mcp.json", r#"{"mcpServers":{"other":{"command":"x"}}}"#);

    let listed = ends_with(run(&world, "list"), 3);
    says(&listed.stdout, "other");
    says(&listed.stderr, "is not a regular file");
    let (code, message, _) = failure(&ends_with(run(&world, "list --json"), 3));
    assert_eq!(code, "invalid_config");
    says(&message, "is not a regular file");

    let checks = json(&ends_with(run(&world, "doctor --json"), 0));
    assert_eq!(row(&checks, "status", "error")["check"], "configuration");
    says(row(&checks, "check", "servers")["detail"].as_str().unwrap(), "not started");
    // Its rules are not known, so nothing is called.
    ends_with(run(&world, "call other__x"), 3);
}

/// Approvals of project files that cannot be read count as an error, not as given.
#[test]
fn a_project_file_is_not_trusted_while_the_approvals_cannot_be_read() {
    let world = with("");
    world.write_project_config(&fixture("p", &[]));
    without_state_folder(&world);
    ends_with(run(&world, "call p__echo text=hi"), 3);
    let listed = ends_with(run(&world, "list"), 3);
    assert!(!listed.stdout.contains("connected"), "{}", listed.stdout);
}

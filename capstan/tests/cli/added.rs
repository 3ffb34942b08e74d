//! What was just added is approved; what lay there unapproved stays so.

use capstan_testkit::binary;

use crate::stage::{ends_with, fixture, ok_json, run, says, surroundings, with_project};

#[test]
fn what_was_just_added_to_a_new_project_file_starts_at_once() {
    let world = with_project();
    let server = binary("capstan-fixture");
    let words = ["add", "-e", "GIVEN=a=b", "f", server.to_str().unwrap(), "--tools", "2"];
    ends_with(world.capstan(words).run(), 0);
    let told = surroundings(run(&world, "call f__env --json"));
    assert_eq!(told["env"]["GIVEN"], "a=b");
    assert_eq!(told["args"], serde_json::json!(["--tools", "2"]));
}

#[test]
fn adding_to_an_approved_file_keeps_it_approved() {
    let world = with_project();
    ends_with(run(&world, "add one /nowhere/one"), 0);
    ends_with(run(&world, "add two /nowhere/two"), 0);
    let listed = ok_json(&world, "list");
    assert_eq!(crate::stage::column(&listed, "state"), ["failed", "failed"]);
}

#[test]
fn an_unapproved_project_file_stays_unapproved_after_an_addition() {
    let world = with_project();
    world.write_project_config(&fixture("planted", &[]));
    let server = binary("capstan-fixture");
    let ended = ends_with(world.capstan(["add", "mine", server.to_str().unwrap()]).run(), 0);
    says(&ended.stderr, "added `mine`");
    let listed = ok_json(&world, "list");
    let states = crate::stage::column(&listed, "state");
    assert_eq!(states, ["awaiting_approval", "awaiting_approval"]);
    ends_with(run(&world, "call planted__echo"), 7);
}

#[test]
fn an_approved_file_that_somebody_changed_is_not_approved_by_an_addition() {
    let world = with_project();
    ends_with(run(&world, "add one /nowhere/one"), 0);
    let path = world.project().join(".capstan/config.toml");
    let text = crate::stage::read(&path);
    world.write_project_config(&format!("{text}\n{}", fixture("planted", &[])));
    ends_with(run(&world, "add two /nowhere/two"), 0);
    let listed = ok_json(&world, "list");
    let states = crate::stage::column(&listed, "state");
    assert_eq!(states, ["awaiting_approval"; 3]);
}

//! Paths from here in a file of the user, which applies in every folder, and secrets in a project's
//! file, which others get.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use capstan_testkit::World;

use crate::stage::{
    column, ends_with, failure, fixture, ok_json, quoted, run, says, user_config, with,
    with_project,
};

/// Writes a program that leaves a trace into a folder of the world's home.
#[track_caller]
fn plant(world: &World, folder: &str) -> std::path::PathBuf {
    let trace = world.home().join(folder).join("trace");
    let text = format!("#!/bin/sh\necho x > {}\n", trace.display());
    let program = world.write(format!("{folder}/kctl.py"), text);
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    trace
}

#[test]
fn a_program_of_this_folder_is_added_by_its_whole_path() {
    let world = World::new();
    plant(&world, "project");
    let ended = ends_with(run(&world, "add -t cli kctl ./kctl.py"), 0);
    let path = world.project().join("kctl.py");
    let command = quoted(path.to_str().unwrap());
    assert_eq!(
        user_config(&world),
        format!("[servers.kctl]\ntype = \"cli\"\ncommand = {command}\n")
    );
    says(&ended.stderr, &format!("`./kctl.py` is written as `{}`", path.display()));
}

#[test]
fn a_relative_program_of_the_user_starts_nothing_in_any_folder() {
    for more in ["", "cwd = \"sub\"\n"] {
        let world = with(&format!("[servers.k]\ntype = \"cli\"\ncommand = \"./kctl.py\"\n{more}"));
        let traces = [plant(&world, "project"), plant(&world, "project/sub")];
        let listed = ok_json(&world, "list");
        assert_eq!(column(&listed, "state"), ["failed"]);
        says(&column(&listed, "error")[0], "`servers.k.command` is a relative path");
        assert!(traces.iter().all(|trace| !trace.exists()), "it was started");
    }
}

#[test]
fn a_relative_program_in_a_definite_folder_is_that_program() {
    let world = World::new();
    let trace = plant(&world, "tools");
    let folder = quoted(world.home().join("tools").to_str().unwrap());
    world.write_user_config(&format!("[servers.k]\ncommand = \"./kctl.py\"\ncwd = {folder}\n"));
    run(&world, "list");
    assert!(trace.exists());
}

#[test]
fn a_program_of_a_project_stays_relative() {
    let world = with_project();
    plant(&world, "project");
    ends_with(run(&world, "add -t cli kctl ./kctl.py ."), 0);
    let text = crate::stage::read(world.project().join(".capstan/config.toml"));
    says(&text, "command = \"./kctl.py\"\nargs = [\".\"]");
}

#[test]
fn arguments_that_are_paths_from_here_become_whole_paths_in_the_users_file() {
    let world = World::new();
    world.write("project/server.py", "");
    world.write("project/sub/file", "");
    let ended = ends_with(run(&world, "add s npx -y pkg . server.py sub ./no --x"), 0);
    let project = world.project();
    let whole = |path: &str| quoted(project.join(path).to_str().unwrap());
    says(
        &user_config(&world),
        &format!(
            "args = [\"-y\", \"pkg\", {}, {}, \"sub\", \"./no\", \"--x\"]",
            quoted(project.to_str().unwrap()),
            whole("server.py")
        ),
    );
    says(&ended.stderr, &format!("`.` is written as `{}`", project.display()));
    says(&ended.stderr, "`./no` does not exist here");
}

#[test]
fn a_projects_file_gets_no_secret() {
    let secret = "sk-ant-0123456789abcdefghij";
    for words in [
        format!("--json add s -e API_TOKEN={secret} npx"),
        format!("--json add s https://user:{secret}@example.com/mcp"),
        format!("--json add s npx --api-key {secret}"),
    ] {
        let world = with_project();
        let ended = ends_with(run(&world, &words), 2);
        let (_, message, hint) = failure(&ended);
        says(&message, "a project's file is shared");
        says(&hint, "`--scope user`");
        assert!(!ended.stderr.contains(secret) && !ended.stdout.contains(secret));
        assert!(!world.project().join(".capstan/config.toml").exists());
    }
    let world = with_project();
    ends_with(run(&world, "add s -e API_TOKEN=${API_TOKEN} npx"), 0);
    let world = with_project();
    ends_with(run(&world, &format!("add -s user s -e API_TOKEN={secret} npx")), 0);
}

#[test]
fn a_server_that_is_added_to_a_file_that_is_not_trusted_says_what_comes_next() {
    let world = with_project();
    world.write_project_config(&fixture("f", &[]));
    let ended = ends_with(run(&world, "add s npx"), 0);
    says(&ended.stderr, "next: `capstan trust`");
}

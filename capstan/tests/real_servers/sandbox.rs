//! Real servers in a sandbox.

use capstan_testkit::World;
use serde_json::json;

use crate::stdio::entry;
use crate::{ALLOW, assert_offers, call, installed};

/// A world with a server, called `it`, in a sandbox, and a key of the user.
fn world_with(words: &[&str], sandbox: &str) -> World {
    let world = World::new();
    world.write(".ssh/id_ed25519", "PRIVATE KEY");
    world.write("notes/a.txt", "a note");
    let words: Vec<String> =
        words.iter().map(|word| word.replace("HOME", world.home().to_str().unwrap())).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let server = entry("it", &words, &format!("sandbox = {sandbox}"));
    world.write_user_config(&format!("{ALLOW}{server}"));
    world
}

#[test]
fn the_filesystem_server_works_and_reads_only_what_the_sandbox_opens() {
    // It may itself read everything; the sandbox decides.
    let program = installed("mcp-server-filesystem");
    let world = world_with(&[&program, "HOME"], "{ write = [\"~/notes\"], read = [] }");
    let path = |name: &str| world.home().join(name).display().to_string();
    assert_offers(&world, &["read_text_file", "write_file", "list_directory"]);
    let read = call(&world, "read_text_file", &json!({ "path": path("notes/a.txt") })).ok();
    assert!(read.contains("a note"), "{read}");
    let key = call(&world, "read_text_file", &json!({ "path": path(".ssh/id_ed25519") }));
    assert!(format!("{key:?}").contains("EACCES"), "{key:?}");
    let arguments = json!({ "path": path("outside.txt"), "content": "new" });
    let written = call(&world, "write_file", &arguments);
    assert!(format!("{written:?}").contains("EACCES"), "{written:?}");
    assert!(!world.home().join("outside.txt").exists());
}

#[test]
fn the_filesystem_server_writes_where_the_sandbox_lets_it() {
    let program = installed("mcp-server-filesystem");
    let world = world_with(&[&program, "HOME/notes"], "{ write = [\"~/notes\"] }");
    let path = world.home().join("notes/b.txt");
    call(&world, "write_file", &json!({ "path": path, "content": "new" })).ok();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "new");
}

#[test]
fn the_git_server_works_in_a_sandbox() {
    let program = installed("mcp-server-git");
    let world = world_with(&[&program, "--repository", "HOME/repo"], "{ write = [\"~/repo\"] }");
    let repository = world.home().join("repo");
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let words = [&["-C", repository.to_str().unwrap()][..], &who, words].concat();
        world.program("git", words).run().ok();
    };
    std::fs::create_dir(&repository).unwrap();
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "the first commit"]);
    let arguments = json!({ "repo_path": repository });
    let log = call(&world, "git_log", &arguments).ok();
    assert!(log.contains("the first commit"), "{log}");
}

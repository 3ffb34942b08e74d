//! The demo servers, as somebody meets them who has just built Capstan.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::os::unix::fs::symlink;

use capstan_testkit::{Capstan, Ended, World, binary};
use serde_json::{Value, json};

/// What must never come out of a folder that is not served.
const SECRET: &str = "xyzzy-7261";

/// Every tool of the demo with its effect, in the order in which they are shown.
const TOOLS: [(&str, &str); 12] = [
    ("files__list_folder", "read"),
    ("files__read_file", "read"),
    ("files__find_files", "read"),
    ("files__search_text", "read"),
    ("time__now", "read"),
    ("time__convert", "read"),
    ("time__zones", "read"),
    ("notes__add_note", "write"),
    ("notes__list_notes", "read"),
    ("notes__read_note", "read"),
    ("notes__search_notes", "read"),
    ("notes__delete_note", "write"),
];

fn call(world: &World, tool: &str, arguments: &[&str]) -> Capstan {
    let words = ["call", "--demo", tool];
    world.capstan(words.iter().chain(arguments))
}

/// An answer that consists of JSON.
#[track_caller]
fn told(run: Capstan) -> Value {
    serde_json::from_str(&run.run().ok()).unwrap()
}

/// A line typed into a shell that finds `capstan` in its PATH.
fn typed(world: &World, line: &str) -> Ended {
    let program = binary("capstan");
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    world.program("sh", ["-c", line]).env("PATH", path).run()
}

/// The last line of everything that a command prints.
fn last_line(printed: &str) -> &str {
    printed.lines().last().unwrap().trim()
}

#[test]
fn the_demo_offers_twelve_tools_and_says_what_they_do() {
    let world = World::new();
    let listed = world.capstan(["tools", "--demo", "--json", "--wait", "50s"]).run().ok();
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let seen: Vec<(&str, &str)> = listed
        .iter()
        .map(|tool| (tool["id"].as_str().unwrap(), tool["effect"].as_str().unwrap()))
        .collect();
    assert_eq!(seen, TOOLS);
    assert!(listed.iter().all(|tool| tool["inputSchema"]["type"] == "object"));
}

#[test]
fn every_tool_that_reads_answers() {
    let world = World::new();
    world.write("project/src/main.rs", "fn main() {}\nfn other() {}\n");
    world.write("project/data.bin", [0, 159, 146, 150]);
    let table: [(&str, &[&str], &str); 9] = [
        ("files__list_folder", &[], r#"{"name":"src","kind":"folder"}"#),
        ("files:list_folder", &["path=src"], r#"{"name":"main.rs","kind":"file","size":27}"#),
        ("files__read_file", &["path=src/main.rs", "offset=2"], "fn other() {}"),
        ("files__read_file", &["path=data.bin"], "[resource: application/octet-stream, 4 B"),
        ("files__find_files", &["pattern=*.rs"], r#""src/main.rs""#),
        ("files__search_text", &["query=OTHER"], r#"{"matches":[],"truncated":false}"#),
        ("time__now", &["zone=Asia/Tokyo"], r#"+09:00","zone":"Asia/Tokyo""#),
        ("time__zones", &["filter=kolkata"], r#""Asia/Kolkata""#),
        ("notes__list_notes", &[], r#"{"notes":[]}"#),
    ];
    for (tool, arguments, expected) in table {
        let said = call(&world, tool, arguments).run().ok();
        assert!(said.contains(expected), "{tool} {arguments:?}: {said}");
    }
}

#[test]
fn a_time_is_converted_over_the_change_of_the_clocks() {
    let world = World::new();
    let arguments = ["time=2026-03-29T02:30", "from=Europe/Berlin", "to=UTC"];
    let both = told(call(&world, "time__convert", &arguments));
    assert_eq!(both["from"]["time"], "2026-03-29T03:30:00+02:00");
    assert_eq!(both["to"]["time"], "2026-03-29T01:30:00+00:00");
    assert!(both["note"].as_str().unwrap().contains("skip"), "{both}");
}

#[test]
fn notes_outlive_the_process_that_kept_them() {
    let world = World::new();
    let first = json!({ "title": "first", "text": "buy ü & \"quotes\"" }).to_string();
    let added = told(call(&world, "notes__add_note", &["-"]).stdin(first));
    assert_eq!((&added["id"], &added["title"]), (&json!(1), &json!("first")));
    let second = told(call(&world, "notes__add_note", &["title=second", "text=hello"]));
    assert_eq!(second["id"], 2);

    // From another folder too: notes belong to the user, not to the project.
    let read = call(&world, "notes__read_note", &["id=1"]).within(world.home()).run().ok();
    assert_eq!(read, "# first\n\nbuy ü & \"quotes\"\n");
    let found = told(call(&world, "notes__search_notes", &["query=HELLO"]));
    assert_eq!(found["notes"].as_array().unwrap().len(), 1);

    told(call(&world, "notes__delete_note", &["id=1"]));
    let left = told(call(&world, "notes__list_notes", &[]));
    assert_eq!((left["notes"].as_array().unwrap().len(), &left["notes"][0]["id"]), (1, &json!(2)));
    let gone = call(&world, "notes__read_note", &["id=1"]).run();
    assert_eq!((gone.status, gone.stdout.trim()), (Some(1), "there is no `note 1`"));
}

#[test]
fn a_note_that_is_refused_is_not_kept() {
    let world = World::new();
    let long = format!("text={}", "x".repeat(40_000));
    let refused: [&[&str]; 3] =
        [&["title=", "text=x"], &["title=a\nb", "text=x"], &["title=t", &long]];
    for arguments in refused {
        let ended = call(&world, "notes__add_note", arguments).run();
        assert_eq!(ended.status, Some(1), "{}{}", ended.stdout, ended.stderr);
    }
    let left = told(call(&world, "notes__list_notes", &[]));
    assert_eq!(left, json!({ "notes": [] }));
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let world = World::new();
    let outside = world.write("outside/secret.txt", SECRET);
    let folder = outside.parent().unwrap();
    symlink(&outside, world.project().join("file-link")).unwrap();
    symlink(folder, world.project().join("folder-link")).unwrap();
    let absolute = format!("path={}", outside.display());
    let absolute_folder = format!("path={}", folder.display());
    let table: [(&str, &[&str]); 9] = [
        ("files__read_file", &["path=../outside/secret.txt"]),
        ("files__read_file", &["path=x/../../outside/secret.txt"]),
        ("files__read_file", &[&absolute]),
        ("files__read_file", &["path=file-link"]),
        ("files__read_file", &["path=folder-link/secret.txt"]),
        ("files__list_folder", &["path=.."]),
        ("files__list_folder", &[&absolute_folder]),
        ("files__list_folder", &["path=folder-link"]),
        ("files__search_text", &["query=xyzzy", "path=folder-link"]),
    ];
    for (tool, arguments) in table {
        let ended = call(&world, tool, arguments).run();
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.status, Some(1), "{tool} {arguments:?}: {printed}");
        assert!(!printed.contains(SECRET), "{tool} {arguments:?}: {printed}");
    }
    for (tool, argument) in [("search_text", "query=xyzzy"), ("find_files", "pattern=**/*.txt")] {
        let said = call(&world, &format!("files__{tool}"), &[argument]).run().ok();
        assert!(!said.contains("secret.txt"), "{tool} followed a link: {said}");
    }
}

#[test]
fn arguments_that_do_not_fit_never_reach_a_tool() {
    let world = World::new();
    let table: [(&str, &[&str], i32); 4] = [
        ("notes__read_note", &["id=many"], 2),
        ("notes__read_note", &["{"], 2),
        ("notes__no_such_tool", &[], 4),
        ("nobody__read_note", &[], 4),
    ];
    for (tool, arguments, status) in table {
        let ended = call(&world, tool, arguments).run();
        assert_eq!(ended.status, Some(status), "{tool}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{tool}");
    }
}

#[test]
fn the_demo_stands_beside_a_broken_configuration() {
    let world = World::new();
    world.write_user_config("[servers\n");
    assert_eq!(world.capstan(["tools"]).run().status, Some(3));
    let said = call(&world, "time__now", &["zone=UTC"]).run().ok();
    assert!(said.contains(r#""zone":"UTC""#), "{said}");
}

#[test]
fn the_first_command_ends_with_a_call_that_can_be_copied() {
    let world = World::new();
    // Not in the PATH, as after `cargo run`: the line must say where the program is.
    let program = env!("CARGO_BIN_EXE_capstan");
    let first = world.program("sh", ["-c", "exec \"$0\" tools --demo 2>&1", program]).run().ok();
    assert!(first.starts_with("TOOL "), "{first}");
    let copied = world.program("sh", ["-c", last_line(&first)]).run();
    assert!(copied.stderr.is_empty(), "{}: {}", last_line(&first), copied.stderr);
    assert!(copied.ok().contains(r#""zone":"Europe/Berlin""#));
}

#[test]
fn the_call_to_copy_can_be_copied_whatever_the_folder_is_called() {
    let world = World::new();
    let folder = world.project().join("it's a folder; $HOME");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("capstan");
    fs::copy(binary("capstan"), &program).unwrap();
    for here in [world.project(), world.home().to_owned()] {
        let first = world.program(&program, ["tools", "--demo"]).within(&here).run();
        let copied = world.program("sh", ["-c", last_line(&first.stderr)]).within(&here).run();
        assert!(copied.ok().contains(r#""zone":"Europe/Berlin""#), "{}", first.stderr);
    }
}

#[test]
fn the_call_to_copy_is_short_where_the_program_is_in_the_path() {
    let world = World::new();
    let first = typed(&world, "capstan tools --demo 2>&1").ok();
    assert!(last_line(&first).starts_with("capstan call --demo "), "{first}");
    let copied = typed(&world, last_line(&first)).ok();
    assert!(copied.contains(r#""zone":"Europe/Berlin""#), "{copied}");
}

//! Commands that read: they show what was last seen of servers, and start only those that were never
//! seen.

use std::fs;

use capstan_testkit::{World, binary};
use serde_json::{Value, json};

use crate::stage::{column, ends_with, fixture, json, ok_json, quoted, read, row, run, says, with};

/// The entry of a fixture that notes each start in the file `starts`, and takes its options from the
/// file `options`.
#[track_caller]
fn noting(world: &World, name: &str) -> String {
    let file = |name: &str| world.home().join(name).display().to_string();
    let (starts, options) = (file("starts"), file("options"));
    let program = binary("capstan-fixture").display().to_string();
    let script = format!("echo {name} >> {starts}; exec {program} $(cat {options})");
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {}]\n", quoted(&script))
}

/// A world with servers that note their starts.
#[track_caller]
fn with_noting(names: &[&str]) -> World {
    let world = World::new();
    fs::write(world.home().join("options"), "").unwrap();
    let entries: Vec<String> = names.iter().map(|name| noting(&world, name)).collect();
    world.write_user_config(&entries.concat());
    world
}

/// The names of the servers that were started so far, in order.
#[track_caller]
fn starts(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.home().join("starts")).unwrap_or_default();
    let mut names: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    names.sort();
    names
}

#[test]
fn twenty_servers_that_were_seen_are_listed_without_starting_a_process() {
    let names: Vec<String> = (0..20).map(|number| format!("s{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = with_noting(&names);
    let first = ok_json(&world, "list --wait 60s");
    assert_eq!(column(&first, "state"), ["connected"; 20]);
    assert_eq!(starts(&world), names);
    assert!(first[0].get("stale").is_none() && first[0].get("incomplete").is_none(), "{first}");

    for words in [
        "list",
        "list --json",
        "tools",
        "tools --json",
        "tools s03",
        "tools s03__echo",
        "tools --for openai",
        "tools --tokens",
        "search echo the arguments",
        "get s03",
        "resources",
        "resources s03 --templates",
        "prompts",
        "prompts s03__greet",
        "acl classify",
        "acl check --subject a --server s03 --tool echo",
        "acl check --subject a --server s03 --all-tools",
    ] {
        let ended = run(&world, words);
        assert!(matches!(ended.status, Some(0 | 6)), "{words}: {}", ended.stderr);
    }
    assert_eq!(starts(&world), names, "nothing was started");
    let listed = ok_json(&world, "list");
    assert_eq!(column(&listed, "state"), ["cached"; 20]);
    for (was, is) in first.as_array().unwrap().iter().zip(listed.as_array().unwrap()) {
        for count in ["tools", "resources", "prompts", "tokens"] {
            assert_eq!(was[count], is[count], "{count}: {is}");
        }
    }
}

#[test]
fn what_comes_from_the_cache_says_so_with_its_age() {
    let world = with_noting(&["a"]);
    ends_with(run(&world, "list"), 0);
    for words in ["list", "tools", "resources", "prompts"] {
        let rows = ok_json(&world, words);
        let [row] = &rows.as_array().unwrap()[..1] else { panic!("{rows}") };
        assert_eq!(row["stale"], true, "{words}: {row}");
        let seen: jiff::Timestamp = row["seen"].as_str().unwrap().parse().unwrap();
        assert!(seen.duration_since(jiff::Timestamp::UNIX_EPOCH).as_hours() > 0, "{seen}");
        says(&run(&world, words).stderr, "`--refresh` asks the server");
    }
    let shown = ok_json(&world, "get a");
    assert_eq!(json!([shown["stale"], shown["state"]]), json!([true, "cached"]));
    assert_eq!(shown["discovery"], "completed");
    says(&run(&world, "list").stdout, "cached, ");
    // In plain text the age is told, in JSON it is in the rows.
    assert_eq!(run(&world, "tools --json").stderr, "");
}

#[test]
fn refresh_asks_the_servers_and_keeps_what_they_say() {
    let world = with_noting(&["a"]);
    let tools = |words: &str| ok_json(&world, words).as_array().unwrap().len();
    let before = tools("tools");
    fs::write(world.home().join("options"), "--tools 2").unwrap();
    assert_eq!(tools("tools"), before, "the server is not asked");
    assert_eq!(tools("tools --refresh"), before + 2);
    assert_eq!(starts(&world).len(), 2);
    let now = ok_json(&world, "tools");
    assert_eq!((now.as_array().unwrap().len(), &now[0]["stale"]), (before + 2, &json!(true)));

    fs::write(world.home().join("options"), "--tools 3").unwrap();
    for words in ["list --refresh", "get a --refresh", "tools a --refresh", "doctor"] {
        ends_with(run(&world, words), 0);
    }
    assert_eq!(starts(&world).len(), 6);
    assert_eq!(row(&ok_json(&world, "list"), "name", "a")["tools"], before + 3);
    assert_eq!(starts(&world).len(), 6);
}

#[test]
fn a_call_keeps_the_list_of_the_server_that_it_has_connected() {
    let world = with_noting(&["a", "b"]);
    let tools = || ok_json(&world, "tools a").as_array().unwrap().len();
    let before = tools();
    fs::write(world.home().join("options"), "--tools 2").unwrap();
    ends_with(run(&world, "call a__echo text=hi"), 0);
    assert_eq!(tools(), before + 2);
    assert_eq!(starts(&world), ["a", "a"], "nothing else was started");
    // It says nothing about the lists that the call did not need.
    ends_with(run(&world, "call b__echo text=hi"), 0);
    let listed = ok_json(&world, "list");
    let b = row(&listed, "name", "b");
    assert_eq!(
        json!([b["state"], b["tools"], b["incomplete"]]),
        json!(["cached", before + 2, true])
    );
    assert_eq!(starts(&world), ["a", "a", "b"]);
}

#[test]
fn only_a_server_that_was_never_seen_is_started() {
    let world = with_noting(&["a"]);
    ends_with(run(&world, "tools"), 0);
    world.write_user_config(&format!("{}{}", noting(&world, "a"), noting(&world, "b")));
    let listed = ok_json(&world, "list");
    assert_eq!(column(&listed, "state"), ["cached", "connected"]);
    assert_eq!(starts(&world), ["a", "b"]);
    // Another environment makes another server of it.
    let changed = format!("{}env = {{ A = \"1\" }}\n", noting(&world, "a"));
    world.write_user_config(&format!("{changed}{}", noting(&world, "b")));
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["connected", "cached"]);
    assert_eq!(starts(&world), ["a", "a", "b"]);
}

#[test]
fn all_lists_of_a_server_are_kept_when_it_was_started_for_one() {
    let world = with_noting(&["a"]);
    ends_with(run(&world, "prompts"), 0);
    assert_eq!(starts(&world), ["a"]);
    let listed = row(&ok_json(&world, "list"), "name", "a");
    assert_eq!(json!([listed["tools"], listed["resources"]]), json!([18, 1]));
    ends_with(run(&world, "resources --templates"), 0);
    assert_eq!(starts(&world), ["a"]);
}

#[test]
fn a_list_that_lacks_servers_says_so_in_its_rows() {
    let bad = "[servers.bad]\ncommand = \"/nowhere/bad\"\n";
    let world = with(&format!("{}{bad}", fixture("f", &[])));
    for words in ["tools", "resources", "prompts"] {
        let rows = ok_json(&world, words);
        let all = rows.as_array().unwrap();
        assert!(!all.is_empty() && all.iter().all(|row| row["incomplete"] == true), "{rows}");
    }
    let world = with(&fixture("f", &[]));
    let whole = ok_json(&world, "tools");
    assert!(whole[0].get("incomplete").is_none(), "{whole}");
    let silent = with(&fixture("f", &["--silent"]));
    let rows = ok_json(&silent, "list --wait 0s");
    assert_eq!(json!([rows[0]["state"], rows[0]["incomplete"]]), json!(["connecting", true]));
}

/// Number 7: two of eighteen tools are exposed, and a sandboxed server exposes none.
#[test]
fn only_tools_that_may_be_used_are_counted() {
    let world = with(&format!(
        "{}expose = [\"echo\", \"add\"]\n\n{}trust = \"sandboxed\"\n\n{}",
        fixture("two", &[]),
        fixture("none", &[]),
        fixture("all", &[]),
    ));
    let rows = ok_json(&world, "list");
    let counts = |name: &str| {
        let row = row(&rows, "name", name);
        json!([row["tools"], row["hidden"]])
    };
    assert_eq!(counts("two"), json!([2, 16]));
    assert_eq!(counts("none"), json!([0, 18]));
    assert_eq!(counts("all"), json!([18, null]));
    let two = ok_json(&world, "get two");
    assert_eq!(json!([two["tools"], two["hidden"]]), json!([2, 16]));
    let checks = json(&run(&world, "doctor --json"));
    let told = |name: &str| row(&checks, "check", name)["detail"].as_str().unwrap().to_owned();
    assert_eq!(told("server two"), "connected, 2 tools, 16 more are hidden");
    assert_eq!(told("server none"), "connected, 0 tools, 18 more are hidden");
    assert_eq!(told("server all"), "connected, 18 tools");
    assert_eq!(ok_json(&world, "tools two").as_array().unwrap().len(), 2);
}

/// Number 12: names with capitals.
#[test]
fn a_list_shows_names_as_they_are_written() {
    let world = with(&fixture("pythonTools", &[]));
    says(&ends_with(run(&world, "list"), 0).stdout, "● pythonTools");
    let row = ok_json(&world, "list")[0].clone();
    assert_eq!(json!([row["name"], row["display"]]), json!(["pythontools", "pythonTools"]));
    for words in ["get pythonTools", "tools pythonTools", "tools pythonTools__echo"] {
        ends_with(run(&world, words), 0);
    }
}

/// Number 6, with saved lists.
#[test]
fn lists_are_shown_without_a_usable_state_folder() {
    let world = with_noting(&["a"]);
    let before = ok_json(&world, "list");
    let folder = world.state().join("capstan");
    drop(fs::remove_dir_all(&folder));
    fs::write(&folder, "in the way").unwrap();
    let listed = ends_with(run(&world, "list --json"), 0);
    let row = row(&json(&listed), "name", "a");
    assert_eq!(json!([row["state"], row["stale"]]), json!(["cached", true]), "{before}");
    assert_eq!(starts(&world), ["a"]);
}

/// A server that fails is tried again each time, because it may have been mended meanwhile.
#[test]
fn a_server_that_was_never_seen_is_tried_again() {
    let world = with_noting(&["a"]);
    fs::write(world.home().join("options"), "--exit 3").unwrap();
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["failed"]);
    fs::write(world.home().join("options"), "").unwrap();
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["connected"]);
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["cached"]);
}

#[test]
fn every_list_is_an_array_of_objects() {
    let world = with(&format!("{}[servers.odd]\ncomand = \"x\"\n", fixture("f", &[])));
    for words in [
        "list",
        "tools",
        "resources",
        "resources --templates",
        "prompts",
        "approvals",
        "pins --all",
        "audit",
        "config path",
        "config check",
        "config show",
        "acl classify",
        "doctor",
    ] {
        let ended = run(&world, &format!("{words} --json"));
        let printed: Value = json(&ended);
        let rows = printed.as_array().unwrap_or_else(|| panic!("{words}: {printed}"));
        assert!(rows.iter().all(Value::is_object), "{words}: {printed}");
    }
    let version = read(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/json.md"));
    says(&version, "Version of these shapes: ");
}

//! Resources on the command line: listed, read, filled in from templates.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use capstan_testkit::{Ended, World, binary};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::{Value, json};

/// The first bytes of a PNG.
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The entry of a fixture with these options, which writes down every line that it receives.
fn entry(world: &World, name: &str, options: &[&str]) -> String {
    let trace = trace(world, name).display().to_string();
    let args: Vec<&str> = options.iter().copied().chain(["--trace", &trace]).collect();
    let program = binary("capstan-fixture");
    let program = program.to_str().unwrap();
    format!("[servers.{name}]\ncommand = {program:?}\nargs = {args:?}\n")
}

fn trace(world: &World, name: &str) -> PathBuf {
    world.home().join(format!("{name}.trace"))
}

/// A world with the servers `github` and `docs`, both with a library, and these rules before them.
fn library(rules: &str) -> World {
    let world = World::new();
    let servers = ["github", "docs"].map(|name| entry(&world, name, &["--library"])).concat();
    world.write_user_config(&format!("{rules}\n{servers}"));
    world
}

/// The methods that a server was asked for since it exists, without the handshake.
fn asked(world: &World, name: &str) -> Vec<String> {
    let lines = fs::read_to_string(trace(world, name)).unwrap_or_default();
    let method = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap();
        message["method"].as_str().map(ToOwned::to_owned)
    };
    let methods = lines.lines().filter_map(method);
    methods.filter(|method| method.contains('/') && !method.starts_with("server/")).collect()
}

fn run(world: &World, words: &[&str]) -> Ended {
    world.capstan(words).run()
}

#[track_caller]
fn ends(ended: Ended, code: i32) -> Ended {
    assert_eq!(ended.status, Some(code), "{}\n{}", ended.stdout, ended.stderr);
    ended
}

#[track_caller]
fn says(text: &str, piece: &str) {
    assert!(text.contains(piece), "{piece:?} is not in:\n{text}");
}

/// What a person at a terminal sees.
fn at_a_terminal(world: &World, words: &[&str]) -> String {
    let size = PtySize { rows: 24, cols: 100, ..PtySize::default() };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(binary("capstan"));
    command.args(words);
    command.cwd(world.project());
    command.env_clear();
    world.environment().into_iter().for_each(|(name, value)| command.env(name, value));
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut seen = Vec::new();
    // The end of the last program at a terminal is an error to whoever reads it.
    drop(pair.master.try_clone_reader().unwrap().read_to_end(&mut seen));
    child.wait().unwrap();
    String::from_utf8(seen).unwrap()
}

#[test]
fn c19_a_template_is_filled_in_by_order_or_by_name() {
    let world = library("");
    for words in [
        &["acme", "widgets", "42"][..],
        &["owner=acme", "repo=widgets", "id=42"],
        &["id=42", "acme", "widgets"],
    ] {
        let typed: Vec<&str> = ["read", "@github:issue"].iter().chain(words).copied().collect();
        let read = ends(run(&world, &typed), 0);
        assert_eq!(read.stdout, "github://repos/acme/widgets/issues/42", "{words:?}");
    }
    let lines = fs::read_to_string(trace(&world, "github")).unwrap();
    assert_eq!(lines.matches(r#""uri":"github://repos/acme/widgets/issues/42""#).count(), 3);
}

#[test]
fn c19_too_few_or_too_many_values_are_refused_with_the_names_and_nothing_is_read() {
    let world = library("");
    let takes = "it takes `owner`, `repo`, `id`";
    for (words, problem) in [
        (&["acme"][..], "missing `repo`, `id`"),
        (&[], "missing `owner`, `repo`, `id`"),
        (&["a", "b", "c", "d"], "unexpected argument `d`"),
        (&["onwer=a", "b", "c"], "there is no argument `onwer`"),
    ] {
        let typed: Vec<&str> = ["read", "@github:issue"].iter().chain(words).copied().collect();
        let refused = ends(run(&world, &typed), 2);
        says(&refused.stderr, problem);
        says(&refused.stderr, takes);
        assert_eq!(refused.stdout, "");
    }
    assert!(!asked(&world, "github").contains(&"resources/read".to_owned()));
}

#[test]
fn a_read_that_could_not_be_put_together_is_written_down_too() {
    let world = library("");
    ends(run(&world, &["read", "@github:issue", "acme"]), 2);
    ends(run(&world, &["read", "@github:isue", "acme"]), 4);
    ends(run(&world, &["read", "@nobody:x://y"]), 4);
    run(&world, &["read", "@github:issue", "a", "b", "1"]).ok();
    let audit: Value = serde_json::from_str(&run(&world, &["audit", "--json"]).ok()).unwrap();
    let entry = |row: &Value| (row["item"].clone(), row["kind"].clone(), row["code"].clone());
    let entries: Vec<_> = audit.as_array().unwrap().iter().map(entry).collect();
    let of = |item: &str, code: Value| (json!(item), json!("resource"), code);
    let expected = [
        of("issue", json!("invalid_input")),
        of("isue", json!("not_found")),
        of("nobody:x://y", json!("not_found")),
        of("github://repos/a/b/issues/1", Value::Null),
    ];
    assert_eq!(entries, expected);
}

#[test]
fn a_value_cannot_break_out_of_its_placeholder() {
    let world = library("");
    let read = run(&world, &["read", "@github:issue", "a/../b", "x?y#z", "é %2F"]).ok();
    assert_eq!(read, "github://repos/a%2F..%2Fb/x%3Fy%23z/issues/%C3%A9%20%252F");
    let read = run(&world, &["read", "@github:search", "q=a&b=c"]).ok();
    assert_eq!(read, "fixture://search?q=a%26b%3Dc");
}

#[test]
fn c63_an_address_is_read_in_every_spelling_as_it_is() {
    let world = library("");
    for resource in [
        "@docs:file:///workspace/README.md",
        "docs:file:///workspace/README.md",
        "docs__file:///workspace/README.md",
        "@docs:README.md",
    ] {
        assert_eq!(run(&world, &["read", resource]).ok(), "# Read\r\n me", "{resource}");
    }
    assert_eq!(asked(&world, "github"), [""; 0], "only the server that was named is started");
}

#[test]
fn c63_what_nobody_has_is_not_found_with_the_nearest() {
    let world = library("");
    for (resource, hint) in [
        ("@docs:fixture://greting", "did you mean `@docs:fixture://greeting`?"),
        ("@docs:isue", "did you mean `@docs:issue`?"),
        ("@dcos:fixture://greeting", "did you mean `docs__fixture://greeting`?"),
        ("@docs:zzz", "`capstan resources docs` lists its resources"),
        ("docs", "`capstan resources` lists all"),
    ] {
        let ended = ends(run(&world, &["read", resource, "--json"]), 4);
        let error: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(error["error"]["code"], "not_found", "{resource}");
        assert_eq!(error["error"]["hint"], hint, "{resource}");
    }
}

#[test]
fn c64_a_binary_resource_is_bytes_for_programs_and_a_line_for_people() {
    let world = library("");
    let logo = ["read", "@docs:fixture://logo"];
    let output = world.capstan(logo).into_command().output().unwrap();
    assert_eq!(output.stdout, SIGNATURE);
    let file = world.home().join("logo.png");
    let to_file = [&logo[..], &["--output", file.to_str().unwrap()]].concat();
    assert_eq!(ends(run(&world, &to_file), 0).stdout, "");
    assert_eq!(fs::read(file).unwrap(), SIGNATURE);
    let seen = at_a_terminal(&world, &logo);
    assert_eq!(seen, "[resource: image/png, 8 B, fixture://logo]\r\n");
}

#[test]
fn c64_several_contents_are_shown_cleaned_one_under_the_other() {
    let world = library("");
    let read = run(&world, &["read", "@docs:album"]).ok();
    let shown =
        "[resource: fixture://album/1]\none\n\n[resource: image/png, 8 B, fixture://album]\n";
    assert_eq!(read, shown);
    let refused = ends(run(&world, &["read", "@docs:album", "-o", "x"]), 2);
    says(&refused.stderr, "has several contents");
    assert!(!world.project().join("x").exists());
}

#[test]
fn the_result_of_a_read_is_printed_as_the_server_wrote_it() {
    let world = World::new();
    world.write_user_config(&entry(&world, "old", &["--library", "--era", "legacy"]));
    let read = run(&world, &["read", "@old:fixture://logo", "--json"]).ok();
    let blob = r#"{"uri":"fixture://logo","mimeType":"image/png","blob":"iVBORw0KGgo="}"#;
    assert_eq!(read, format!("{{\"contents\":[{blob}]}}\n"));
}

#[test]
fn resources_are_listed_for_people_and_byte_for_byte_for_programs() {
    let world = library("");
    insta::assert_snapshot!(run(&world, &["resources", "docs"]).ok(), @"
    URI                          NAME       MIME        SIZE     SERVER
    fixture://greeting           greeting   text/plain  -        docs
    fixture://logo               logo       image/png   8 B      docs
    fixture://album              album      -           -        docs
    file:///workspace/README.md  README.md  -           2.0 KiB  docs
    ");
    insta::assert_snapshot!(run(&world, &["resources", "docs", "--templates"]).ok(), @"
    TEMPLATE                                   NAME    MIME           SIZE  SERVER
    fixture://echo/{text}                      echo    -              -     docs
    github://repos/{owner}/{repo}/issues/{id}  issue   text/markdown  -     docs
    fixture://search{?q,limit}                 search  -              -     docs
    fixture://broken/{                         broken  -              -     docs
    ");
    let json = run(&world, &["resources", "--json"]).ok();
    let logo = |server| {
        format!(
            r#"{{"uri":"fixture://logo","name":"logo","mimeType":"image/png","size":8,"x-fixture":{{"z":1.5,"a":2}},"server":"{server}"}}"#
        )
    };
    says(&json, &logo("github"));
    says(&json, &logo("docs"));
    let items: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(items.as_array().unwrap().len(), 8);
}

#[test]
fn nothing_is_listed_before_somebody_asks_for_it() {
    let world = library("");
    run(&world, &["call", "docs__add", "a=1", "b=2"]).ok();
    run(&world, &["read", "@docs:fixture://greeting"]).ok();
    let before = asked(&world, "docs");
    assert!(
        !before.iter().any(|method| method.starts_with("resources/") && method.ends_with("list"))
    );
    run(&world, &["resources", "docs"]).ok();
    let listed = asked(&world, "docs").iter().filter(|method| *method == "resources/list").count();
    assert_eq!(listed, 1);
    assert_eq!(asked(&world, "github"), [""; 0]);
}

#[test]
fn a_denied_resource_is_neither_listed_nor_read() {
    let world =
        library("[permissions]\ndeny = [\"docs:file:*\", \"github:github://repos/evil/*\"]\n");
    assert!(!run(&world, &["resources", "docs"]).ok().contains("README"));
    says(&run(&world, &["resources", "github"]).ok(), "README");
    for words in [
        &["read", "@docs:file:///workspace/README.md"][..],
        &["read", "@docs:README.md"],
        &["read", "@github:issue", "evil", "x", "1"],
    ] {
        says(&ends(run(&world, words), 6).stderr, "is denied by rule");
    }
    for server in ["docs", "github"] {
        assert!(!asked(&world, server).contains(&"resources/read".to_owned()));
    }
    assert_eq!(run(&world, &["read", "@docs:fixture://greeting"]).ok(), "hello");
    let why = ends(run(&world, &["why", "@docs:file:///workspace/README.md"]), 6);
    says(&why.stdout, "deny by `permissions.deny: docs:file:*`");
}

#[test]
fn a_server_helps_with_the_values_of_a_template() {
    let world = library("");
    let typed = ["read", "@github:issue", "owner=acme", "--complete", "repo=acme-w"];
    assert_eq!(run(&world, &typed).ok(), "acme-widgets\n");
    let json = run(&world, &["read", "@github:issue", "acme", "--complete", "repo", "--json"]).ok();
    let values: Value = serde_json::from_str(&json).unwrap();
    let expected = json!([{ "value": "acme-widgets" }, { "value": "acme-gears" }]);
    assert_eq!(values, expected);
    says(&ends(run(&world, &["read", "@github:issue", "--complete", "rep=x"]), 2).stderr, "`repo`");
    says(
        &ends(run(&world, &["read", "@github:isue", "--complete", "x"]), 4).stderr,
        "`@github:issue`",
    );
    assert!(!asked(&world, "github").contains(&"resources/read".to_owned()));
}

#[test]
fn a_template_that_cannot_be_read_breaks_nothing_but_itself() {
    let world = library("");
    says(&ends(run(&world, &["read", "@docs:broken", "x"]), 1).stderr, "its braces do not match");
    assert_eq!(run(&world, &["read", "@docs:echo", "x"]).ok(), "x");
}

#[test]
fn c47_a_server_that_asks_for_roots_gets_the_workspace_and_what_is_configured() {
    let world = World::new();
    world.write("project/.git/HEAD", "");
    let entry = entry(&world, "f", &[]);
    world.write_user_config(&format!("{entry}roots = [\"docs\"]\n"));
    let answer = run(&world, &["call", "f__roots", "--json"]).ok();
    let project = world.project().display().to_string();
    says(&answer, &format!("file://{project}\\\""));
    says(&answer, &format!("file://{project}/docs\\\""));
}

#[test]
fn c60_a_server_that_offers_nothing_is_closed_and_one_without_tools_is_kept() {
    let world = World::new();
    let nothing = entry(&world, "nothing", &["--nothing"]);
    let prompts = entry(&world, "prompts", &["--no-tools"]);
    world.write_user_config(&format!("{nothing}{prompts}"));
    let listed: Value = serde_json::from_str(&run(&world, &["list", "--json"]).ok()).unwrap();
    let states: Vec<&Value> = listed.as_array().unwrap().iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["idle", "connected"]);
    assert_eq!(run(&world, &["read", "@prompts:fixture://greeting"]).ok(), "hello");
    says(&run(&world, &["prompt", "prompts:greet", "Ada"]).ok(), "user: Greet Ada.");
}

#[test]
fn the_cost_of_a_server_is_that_of_the_tools_it_may_offer() {
    let world = World::new();
    let hidden = "hide = [\"echo\"]\n";
    world.write_user_config(&format!("{}{hidden}", entry(&world, "f", &[])));
    let of = |words: &[&str]| -> Value { serde_json::from_str(&run(&world, words).ok()).unwrap() };
    let tools = of(&["tools", "--json"]);
    let sum: u64 =
        tools.as_array().unwrap().iter().map(|tool| tool["tokens"].as_u64().unwrap()).sum();
    assert!(sum > 0);
    assert_eq!(of(&["list", "--json"])[0]["tokens"], sum);
    says(&run(&world, &["list"]).ok(), &sum.to_string());
}

//! Servers as children, over their standard streams.

use std::fs;
use std::process::{Child, Stdio};

use capstan_testkit::{World, descendants, wait_until};
use serde_json::json;

use crate::leftovers::wait_until_empty;
use crate::{ALLOW, LIMIT, assert_offers, call, installed, run, told};

/// A server in the configuration, with more lines of its own.
pub(crate) fn entry(name: &str, words: &[&str], more: &str) -> String {
    let (command, args) = words.split_first().unwrap();
    format!(
        "[servers.{name}]\ncommand = {command:?}\nargs = {args:?}\nstartup_timeout = \"80s\"\n{more}\n"
    )
}

/// A world with one server, called `it`.
#[track_caller]
fn world_with(words: &[&str], more: &str) -> World {
    let world = World::new();
    world.write_user_config(&format!("{ALLOW}{}", entry("it", words, more)));
    world
}

#[track_caller]
fn everything(more: &str) -> World {
    world_with(&[&installed("mcp-server-everything")], more)
}

// --- The reference server that has everything ---

#[test]
fn everything_offers_what_we_are_able_to_serve() {
    let world = everything("");
    assert_offers(&world, &["echo", "get-sum", "get-roots-list", "trigger-elicitation-request"]);
    // It offers this by what its client can do, and has the same for everybody; here there is no
    // model that could be asked.
    assert_offers(&world, &["trigger-sampling-request"]);
    let asked = call(&world, "trigger-sampling-request", &json!({ "prompt": "x" }));
    assert_eq!(asked.status, Some(1));
    assert!(format!("{asked:?}").contains("is not offered here"), "{asked:?}");
    let about = told(&world, &["get", "it", "--refresh"]);
    assert_eq!((&about["protocol"], &about["state"]), (&json!("2025-11-25"), &json!("connected")));
    assert!(about["instructions"].as_str().unwrap().contains("Everything Server"));
    assert!(about["prompts"].as_u64() > Some(0) && about["resources"].as_u64() > Some(0));
}

#[test]
fn everything_answers_in_every_kind_of_content() {
    let world = everything("");
    let table = [
        ("echo", json!({ "message": "ü \"quoted\"" }), "Echo: ü \"quoted\""),
        ("get-sum", json!({ "a": 2, "b": 40 }), "The sum of 2 and 40 is 42."),
        ("get-tiny-image", json!({}), "[image: image/png, "),
        ("get-resource-links", json!({ "count": 2 }), "[link: "),
        (
            "get-resource-reference",
            json!({ "resourceType": "Text", "resourceId": 1 }),
            "Resource 1",
        ),
        ("get-structured-content", json!({ "location": "Chicago" }), "\"temperature\""),
    ];
    for (tool, arguments, expected) in table {
        let said = call(&world, tool, &arguments).ok();
        assert!(said.contains(expected), "{tool}: {said}");
    }
    let raw = told(&world, &["call", "it__get-structured-content", "location=Chicago"]);
    assert!(raw["structuredContent"]["humidity"].is_number(), "{raw}");
}

#[test]
fn what_everything_refuses_is_told_with_a_code() {
    let world = everything("");
    // It wants this one run as a task, which nobody here does.
    let task = call(&world, "simulate-research-query", &json!({ "topic": "x" }));
    assert_eq!(task.status, Some(1));
    assert!(task.stdout.contains("requires task augmentation"), "{}", task.stdout);
    let invalid = call(&world, "get-sum", &json!({ "a": "two" }));
    assert_eq!(invalid.status, Some(2), "{}{}", invalid.stdout, invalid.stderr);
    assert_eq!(call(&world, "get-sun", &json!({})).status, Some(4));
}

#[test]
fn everything_sees_the_project_and_none_of_our_secrets() {
    let world = everything("env = { DECLARED = \"yes\" }");
    world.write("project/.git/HEAD", "");
    let roots = call(&world, "get-roots-list", &json!({})).ok();
    assert!(roots.contains(&format!("URI: file://{}", world.project().display())), "{roots}");

    let run = world.capstan(["call", "it__get-env"]).env("GITHUB_TOKEN", "xyzzy-7261");
    let environment = run.limit(LIMIT).run().ok();
    assert!(environment.contains("\"DECLARED\": \"yes\""), "{environment}");
    assert!(!environment.contains("xyzzy-7261") && !environment.contains("GITHUB_TOKEN"));
}

#[test]
fn the_questions_of_everything_are_answered_from_a_file_or_declined() {
    let world = everything("");
    let values = json!({ "name": "Ada", "check": true, "integer": 7, "email": "ada@example.com" });
    let file = world.write("answers.json", values.to_string()).display().to_string();
    let ask = ["call", "it__trigger-elicitation-request"];

    let said = run(&world, &[&ask[..], &["--elicit", &file]].concat()).ok();
    for line in ["- Name: Ada", "- Agreed to terms: true", "- Favorite Integer: 7"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // What the file leaves out has its default.
    assert!(said.contains("hero-1"), "{said}");

    let bad = world.write("bad.json", r#"{"name":"Ada","integer":700}"#).display().to_string();
    let refusals: [&[&str]; 4] =
        [&[], &["--elicit", "decline"], &["--elicit", "defaults"], &["--elicit", &bad]];
    for elicit in refusals {
        let ended = run(&world, &[&ask[..], elicit].concat());
        assert!(ended.stdout.contains("User declined"), "{elicit:?}: {}", ended.stdout);
        assert!(ended.stderr.contains("`it` asked: "), "{elicit:?}: {}", ended.stderr);
    }
}

#[test]
fn progress_puts_the_time_limit_off_and_silence_does_not() {
    let world = everything("timeout = \"3s\"");
    let lively = json!({ "duration": 6, "steps": 12 });
    let said = call(&world, "trigger-long-running-operation", &lively).ok();
    assert!(said.contains("Duration: 6 seconds, Steps: 12."), "{said}");

    let silent = json!({ "duration": 60, "steps": 1 });
    let ended = call(&world, "trigger-long-running-operation", &silent);
    assert_eq!(ended.status, Some(8), "{}", ended.stderr);
}

// --- Files, memory ---

#[test]
fn filesystem_reads_and_writes_below_the_project_and_nowhere_else() {
    let world = World::new();
    let (server, project) = (installed("mcp-server-filesystem"), world.project());
    let words = [server.as_str(), project.to_str().unwrap()];
    world.write_user_config(&format!("{ALLOW}{}", entry("it", &words, "")));
    assert_offers(&world, &["read_text_file", "write_file", "list_allowed_directories"]);

    let path = |name: &str| project.join(name).display().to_string();
    let text = "one\ntwo ü";
    call(&world, "write_file", &json!({ "path": path("a.txt"), "content": text })).ok();
    assert_eq!(fs::read_to_string(project.join("a.txt")).unwrap(), text);
    let read = call(&world, "read_text_file", &json!({ "path": path("a.txt"), "tail": 1 })).ok();
    assert_eq!(read.trim(), "two ü");

    let outside = world.write("outside.txt", "xyzzy-7261").display().to_string();
    for asked in [outside, path("../outside.txt"), "/etc/passwd".to_owned()] {
        let ended = call(&world, "read_text_file", &json!({ "path": asked }));
        assert_eq!(ended.status, Some(1), "{asked}");
        assert!(ended.stdout.contains("Access denied"), "{asked}: {}", ended.stdout);
    }
}

#[test]
fn memory_remembers_over_runs_in_the_file_that_its_variable_names() {
    let world = World::new();
    let file = world.home().join("memory.jsonl");
    let variable = format!("env = {{ MEMORY_FILE_PATH = {:?} }}", file.display().to_string());
    let server = installed("mcp-server-memory");
    world.write_user_config(&format!("{ALLOW}{}", entry("it", &[&server], &variable)));
    assert_offers(&world, &["create_entities", "search_nodes", "read_graph"]);

    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["counts"] });
    let ada = json!({ "entities": [ada] }).to_string();
    let run = world.capstan(["call", "it__create_entities", "-"]).stdin(ada);
    run.limit(LIMIT).run().ok();
    assert!(fs::read_to_string(file).unwrap().contains("Ada"));
    let found = told(&world, &["call", "it__search_nodes", "query=count"]);
    assert_eq!(found["structuredContent"]["entities"][0]["name"], "Ada", "{found}");
    let nobody = told(&world, &["call", "it__search_nodes", "query=nobody"]);
    assert_eq!(nobody["structuredContent"]["entities"], json!([]), "{nobody}");
}

// --- Both eras of the protocol ---

/// A world in which the protocol was asked for with one word and `revision` is spoken.
#[track_caller]
fn world_speaking(program: &str, asked: &str, revision: &str) -> World {
    let world = world_with(&[&installed(program)], &format!("protocol = {asked:?}"));
    assert_eq!(told(&world, &["get", "it", "--refresh"])["protocol"], revision);
    world
}

#[track_caller]
fn check_time(asked: &str, revision: &str) {
    let world = world_speaking("mcp-server-time", asked, revision);
    assert_offers(&world, &["get_current_time", "convert_time"]);
    let zones = ["source_timezone=Asia/Tokyo", "time=12:00", "target_timezone=Asia/Kolkata"];
    let answer = told(&world, &[&["call", "it__convert_time"], &zones[..]].concat());
    assert_eq!(answer["structuredContent"]["time_difference"], "-3.5h", "{answer}");
    let nowhere = call(&world, "get_current_time", &json!({ "timezone": "Nowhere/At_All" }));
    assert_eq!(nowhere.status, Some(1), "{}", nowhere.stderr);
}

#[test]
fn time_is_told_in_the_legacy_era() {
    check_time("legacy", "2025-11-25");
}

#[test]
fn time_is_told_in_the_modern_era() {
    check_time("modern", "2026-07-28");
}

#[test]
fn time_is_found_to_be_modern() {
    check_time("auto", "2026-07-28");
}

#[track_caller]
fn check_git(asked: &str, revision: &str) {
    let world = world_speaking("mcp-server-git", asked, revision);
    world.write(".gitconfig", "[user]\nname = Ada\nemail = ada@example.com\n");
    world.program("git", ["init", "--quiet", "."]).run().ok();
    world.write("project/a.txt", "one\n");

    let repo = world.project().display().to_string();
    let status = call(&world, "git_status", &json!({ "repo_path": repo })).ok();
    assert!(status.contains("a.txt"), "{status}");
    call(&world, "git_add", &json!({ "repo_path": repo, "files": ["a.txt"] })).ok();
    call(&world, "git_commit", &json!({ "repo_path": repo, "message": "the first" })).ok();
    let log = world.program("git", ["log", "--format=%an: %s"]).run().ok();
    assert_eq!(log, "Ada: the first\n");
    let missing = json!({ "repo_path": world.home().join("nothing") });
    assert_eq!(call(&world, "git_log", &missing).status, Some(1));
}

#[test]
fn git_commits_in_the_legacy_era() {
    check_git("legacy", "2025-11-25");
}

#[test]
fn git_commits_in_the_modern_era() {
    check_git("modern", "2026-07-28");
}

#[test]
fn git_is_found_to_be_modern() {
    check_git("auto", "2026-07-28");
}

#[test]
fn a_server_without_the_modern_era_is_not_spoken_to_in_it() {
    let world = everything("protocol = \"modern\"");
    let about = told(&world, &["get", "it", "--refresh"]);
    assert_eq!(about["state"], "failed", "{about}");
    assert!(about["error"].as_str().unwrap().contains("2026-07-28"), "{about}");
    assert_eq!(call(&world, "echo", &json!({ "message": "x" })).status, Some(7));
}

// --- Wrappers, and all at once ---

/// Ways to start a server that put other processes in between.
#[track_caller]
fn wrapped() -> [Vec<String>; 3] {
    let server = installed("mcp-server-everything");
    let prefix = server.strip_suffix("/node_modules/.bin/mcp-server-everything").unwrap();
    let npx = ["npx", "--no-install", "--prefix", prefix, "mcp-server-everything", "stdio"];
    let shell = ["sh", "-c", "\"$0\"; exit $?", &server];
    let line = "exec 3<&0; \"$0\" <&3 3<&- & exec 3<&-; wait";
    let background = ["sh", "-c", line, &server];
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    [owned(&npx), owned(&shell), owned(&background)]
}

#[test]
fn a_server_behind_other_programs_answers_and_leaves_nobody_behind() {
    for words in wrapped() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let world = world_with(&words, "");
        let said = call(&world, "get-sum", &json!({ "a": 1, "b": 2 })).ok();
        assert_eq!(said, "The sum of 1 and 2 is 3.\n", "{words:?}");
    }
}

#[test]
fn a_server_behind_other_programs_does_not_outlive_a_hub_that_was_killed() {
    for words in wrapped() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let world = world_with(&words, "");
        let mut capstan = start(&world, &["call", "it__trigger-long-running-operation"]);
        let calls = || read(&world, "log").contains("\"tools/call\"");
        assert!(wait_until(calls, LIMIT), "{words:?}: {}", read(&world, "log"));
        // The keeper, what is in between, the server.
        let below = descendants(capstan.id());
        assert!(below.len() >= 3, "{words:?}: {below:?}");
        capstan.kill().unwrap();
        capstan.wait().unwrap();
        wait_until_empty(&world);
    }
}

/// Starts a command that writes what it sends to the file `log`.
fn start(world: &World, arguments: &[&str]) -> Child {
    let log = fs::File::create(world.home().join("log")).unwrap();
    let run = world.capstan(arguments).env("CAPSTAN_LOG", "capstan::wire=debug");
    let mut command = run.into_command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().unwrap()
}

fn read(world: &World, file: &str) -> String {
    fs::read_to_string(world.home().join(file)).unwrap_or_default()
}

#[test]
fn all_of_them_work_side_by_side() {
    let world = World::new();
    let names = ["everything", "filesystem", "memory", "time", "git"];
    let mut config = ALLOW.to_owned();
    for name in names {
        let server = installed(&format!("mcp-server-{name}"));
        let project = world.project().display().to_string();
        let words = [server.as_str(), &project];
        let words = if name == "filesystem" { &words[..] } else { &words[..1] };
        config += &entry(name, words, "");
    }
    world.write_user_config(&config);
    let listed = told(&world, &["list", "--wait", "80s"]);
    for (row, name) in listed.as_array().unwrap().iter().zip(names) {
        assert_eq!((&row["name"], &row["state"]), (&json!(name), &json!("connected")), "{row}");
        assert!(row["tools"].as_u64() >= Some(2), "{row}");
    }
    assert_eq!(listed.as_array().unwrap().len(), names.len());
}

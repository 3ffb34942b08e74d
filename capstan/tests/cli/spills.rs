//! Answers above the limit in tokens, and answers that are written to a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::World;
use serde_json::Value;

use crate::stage::{ends_with, failure, fixture, run, says, with, with_fixture};

/// A page of this many tokens is a quarter of the answer of `call`.
const VARIABLE: (&str, &str) = ("CAPSTAN_MAX_MCP_OUTPUT_TOKENS", "100");

#[track_caller]
fn call(world: &World) -> String {
    let call = world.capstan(["call", "f__big", "bytes=1600"]);
    ends_with(call.env(VARIABLE.0, VARIABLE.1).run(), 0).stdout
}

/// The address of the second page.
#[track_caller]
fn next(said: &str) -> String {
    let (_, rest) = said.split_once("`capstan read '").unwrap_or_default();
    rest.split('\'').next().unwrap_or_default().to_owned()
}

/// The files of answers, with their modes.
fn files(world: &World) -> Vec<(String, u32)> {
    let folder = fs::read_dir(world.state().join("capstan/answers")).into_iter().flatten();
    let file = |entry: fs::DirEntry| {
        (entry.path().display().to_string(), entry.metadata().unwrap().permissions().mode())
    };
    folder.map(|entry| file(entry.unwrap())).collect()
}

/// Issue 15, number 10 (CALL-9): the answer is neither refused nor cut.
#[test]
fn an_answer_above_the_limit_is_kept_and_read_in_pages() {
    let world = with_fixture();
    let first = call(&world);
    let (text, note) = first.split_once('\n').unwrap();
    assert_eq!(text, "x".repeat(400));
    says(note, "this is page 1 of 4 of an answer with about 400 tokens");
    let files = files(&world);
    let [(file, mode)] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(mode & 0o777, 0o600);
    says(note, file);
    let answer: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(answer["content"][0]["text"], "x".repeat(1600), "all of it");
    let address = next(note);
    assert!(address.ends_with("?page=2"), "{note}");
    for page in 2..=4 {
        let address = address.replace("page=2", &format!("page={page}"));
        let read = ends_with(world.capstan(["read", &address]).run(), 0);
        assert_eq!(read.stdout, "x".repeat(400));
        let goes_on = read.stderr.contains(&format!("page={}'` shows the next page", page + 1));
        assert_eq!(goes_on, page < 4, "{}", read.stderr);
    }
    let json = ends_with(world.capstan(["read", &address, "--json"]).run(), 0);
    let page: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(page["_meta"]["capstan/page"]["pages"], 4, "{page}");
}

#[test]
fn a_page_that_is_not_there_is_not_found() {
    let world = with_fixture();
    let address = next(&call(&world));
    let made_up = format!("capstan://answers/{}?page=2", "0".repeat(32));
    for odd in [address.replace("page=2", "page=5"), address.replace("page=2", "x"), made_up] {
        let ended = ends_with(world.capstan(["read", &odd, "--json"]).run(), 4);
        let (code, message, _) = failure(&ended);
        assert_eq!((code.as_str(), message), ("not_found", format!("no resource named `{odd}`")));
    }
}

/// DEC-16: programs get everything, unless a limit is set.
#[test]
fn without_a_limit_pipes_json_and_files_get_the_whole_answer() {
    let world = with_fixture();
    let all = "x".repeat(200_000);
    let piped = ends_with(run(&world, "call f__big bytes=200000"), 0);
    assert_eq!(piped.stdout.trim_end(), all);
    let json = ends_with(run(&world, "call f__big bytes=200000 --json"), 0);
    says(&json.stdout, &all);
    ends_with(run(&world, "call f__big bytes=200000 -o out.txt"), 0);
    assert_eq!(fs::read_to_string(world.project().join("out.txt")).unwrap(), all);
    assert_eq!(files(&world), []);
}

#[test]
fn a_limit_in_the_configuration_holds_for_programs_too() {
    let world = with_fixture();
    let config = crate::stage::user_config(&world);
    world.write_user_config(&format!("[screen]\nmax_tokens = 100\n\n{config}"));
    let json = ends_with(run(&world, "call f__big bytes=1600 --json"), 0);
    let answer: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(answer["content"][0]["text"], "x".repeat(400));
    assert_eq!(answer["_meta"]["capstan/page"]["pages"], 4);
    assert_eq!(files(&world).len(), 1);
}

/// A world whose tool `answer` answers with its argument `content`.
fn answering() -> World {
    let tool = serde_json::json!({ "name": "answer", "inputSchema": { "type": "object" } });
    with(&fixture("f", &["--tool", &tool.to_string()]))
}

/// Issue 15, number 17.
#[test]
fn images_and_other_bytes_are_written_to_a_file() {
    let image = r#"{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}"#;
    let text = r#"{"type":"text","text":"picture"}"#;
    let world = answering();
    let call = format!("call f__answer content:=[{text},{image}]");
    let ended = ends_with(run(&world, &format!("{call} -o out.png")), 0);
    assert_eq!(ended.stdout, "picture\n[image: image/png, 8 B]\n");
    says(&ended.stderr, "wrote out.png (image/png, 8 B)");
    let read = |name: &str| fs::read(world.project().join(name)).unwrap();
    assert_eq!(read("out.png"), b"\x89PNG\r\n\x1a\n");
    ends_with(run(&world, &format!("{call} --json -o out.json")), 0);
    assert!(read("out.json").starts_with(b"{\"content\":"));

    let two = format!("call f__answer content:=[{image},{image}] --output two.png");
    says(&ends_with(run(&world, &two), 0).stderr, "wrote two-1.png");
    assert_eq!(read("two-2.png"), read("out.png"));
    assert!(!world.project().join("two.png").exists());
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_call() {
    let world = with_fixture();
    fs::create_dir(world.project().join("folder")).unwrap();
    for (file, problem) in [("none/out", "its folder does not exist"), ("folder", "it is a folder")]
    {
        let ended = ends_with(run(&world, &format!("call f__count -o {file}")), 2);
        says(&ended.stderr, &format!("cannot write to {file}: {problem}"));
    }
    assert_eq!(ends_with(run(&world, "call f__fail -o out"), 1).stdout, "it failed\n");
    assert!(!world.project().join("out").exists(), "an error is no content");
}

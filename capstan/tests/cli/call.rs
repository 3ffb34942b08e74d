//! `capstan call` when all goes well: arguments in three forms, answers byte for byte.

use capstan_testkit::World;
use serde_json::json;

use crate::stage::{
    ends_with, failure, fixture, last_entry, legacy, modern, run, says, with, with_fixture,
};

/// What the fixture writes, word for word; a JSON library would tidy both up.
const LONG_NUMBER: &str = r#"{"content":[{"type":"text","text":"see structuredContent"}],"structuredContent":{"z":1,"value":12345678901234567890123456789.1234567890123,"a":1.0,"m":1E+2},"isError":false}"#;
const WEIRD: &str = r#"{"zeta":1,"alpha":2.50,"mu":3,"content":[{"type":"hologram","depth":{"z":1,"a":12345678901234567890123456789.1234567890123}},{"type":"text","text":"after \u00fc \/","x-unknown":null}],"future":{"z":[],"a":{},"m":-0.0},"isError":false}"#;

/// Calls a tool and gives back what it answered as text.
#[track_caller]
fn called(world: &World, words: &[&str]) -> String {
    let words = ["call"].iter().chain(words);
    ends_with(world.capstan(words).run(), 0).stdout
}

#[test]
fn arguments_are_typed_by_the_schema_or_by_their_looks() {
    let world = with_fixture();
    assert_eq!(called(&world, &["f__add", "a=1.5", "b=2"]), "3.5\n");
    let words = ["f__echo", "text=hi there", "n=1", "yes=true", "list:=[1, 2]", "empty="];
    let sent = r#"{"text":"hi there","n":1,"yes":true,"list":[1, 2],"empty":""}"#;
    assert_eq!(called(&world, &words), format!("{sent}\n"));
    let ended = ends_with(run(&world, "call f__slow ms=soon --json"), 2);
    let (code, message, _) = failure(&ended);
    assert_eq!(code, "invalid_input");
    says(&message, "`ms` cannot be `soon`");
}

#[test]
fn arguments_may_be_written_as_options_and_ours_stay_ours() {
    let world = with_fixture();
    assert_eq!(called(&world, &["f__add", "--a", "1.5", "--b=2"]), "3.5\n");
    assert_eq!(called(&world, &["f__add", "--a", "1", "b=2", "--no-attach"]), "3\n");
    assert_eq!(
        called(&world, &["f__echo", "--text", "a b", "--", "n=1"]),
        "{\"text\":\"a b\",\"n\":1}\n"
    );
    let ended = ends_with(run(&world, "call f__add --a 1 --json --b"), 2);
    says(&failure(&ended).1, "`--b` needs a value");
    let ended = ends_with(run(&world, "why f__add --a 1 --json --front cli"), 0);
    assert_eq!(crate::stage::json(&ended)["front"], "cli");
}

#[test]
fn a_value_comes_from_a_file_and_what_is_no_text_is_refused() {
    let world = with_fixture();
    world.write("project/letter.txt", "Dear @all,\n");
    std::fs::write(world.home().join("project/photo.png"), b"\x89PNG\xff").unwrap();
    let sent = r#"{"text":"Dear @all,\n","to":"@all"}"#;
    assert_eq!(called(&world, &["f__echo", "text=@letter.txt", "to=@@all"]), format!("{sent}\n"));
    for (word, problem, remedy) in [
        ("text=@gone.txt", "cannot read the file `gone.txt` for `text`", "`text=@@gone.txt`"),
        ("text=@.", "cannot read the file `.`", "`text=@@.`"),
        ("text=@photo.png", "`photo.png` for `text` is not UTF-8 text", "base64"),
    ] {
        let ended = ends_with(world.capstan(["call", "f__echo", word, "--json"]).run(), 2);
        let (code, message, hint) = failure(&ended);
        assert_eq!(code, "invalid_input");
        says(&message, problem);
        says(&hint, remedy);
    }
}

#[test]
fn json_arguments_reach_the_server_as_they_were_typed() {
    let world = with_fixture();
    let typed = r#"{"z": 1.0,"a":12345678901234567890123456789.10, "m":{"x":null}}"#;
    assert_eq!(called(&world, &["f__echo", typed]), format!("{typed}\n"));
    let piped = ends_with(world.capstan(["call", "f__echo", "-"]).stdin(typed).run(), 0);
    assert_eq!(piped.stdout, format!("{typed}\n"));
    assert_eq!(called(&world, &["f__echo"]), "{}\n");
}

#[test]
fn arguments_that_make_no_sense_are_refused_before_the_server_hears_of_them() {
    let world = with_fixture();
    for (words, message) in [
        (&["{\"a\":1"][..], "is not valid JSON"),
        (&["[1]"], "is not an argument"),
        (&["-", "a=1"], "cannot be mixed"),
        (&["{}", "{}"], "cannot be mixed"),
        (&["a=1", "a=2"], "given twice"),
        (&["plain"], "is not an argument"),
        (&["a:={"], "the value of `a` is not valid JSON"),
        (&["{\"a\":1,\"a\":2}"], "a"),
    ] {
        let words = ["call", "f__echo", "--json"].iter().chain(words);
        let ended = ends_with(world.capstan(words).run(), 2);
        let (code, said, _) = failure(&ended);
        assert_eq!(code, "invalid_input", "{said}");
        says(&said, "invalid arguments for `f__echo`");
        says(&said, message);
    }
    for (stdin, message) in [("", "stdin is not valid JSON"), ("7", "not a JSON object")] {
        let ended = world.capstan(["call", "f__echo", "-", "--json"]).stdin(stdin).run();
        says(&failure(&ends_with(ended, 2)).1, message);
    }
}

#[test]
fn a_slip_in_the_name_of_an_argument_is_named() {
    let world = with_fixture();
    let ended = ends_with(run(&world, "call f__progress stpes=3 --json"), 2);
    let (_, message, hint) = failure(&ended);
    says(&message, "there is no argument `stpes`");
    assert_eq!(hint, "did you mean `steps`?");
}

#[test]
fn an_answer_is_printed_byte_for_byte() {
    let world = with(&format!("{}\n{}", legacy("old"), modern("new")));
    for (tool, literal) in [("long_number", LONG_NUMBER), ("weird", WEIRD)] {
        let ended = ends_with(run(&world, &format!("call old__{tool} --json")), 0);
        assert_eq!(ended.stdout, format!("{literal}\n"));
        let ended = ends_with(run(&world, &format!("call new__{tool} --json")), 0);
        // The modern era adds a member; it is the server's too.
        let literal = literal.strip_suffix('}').unwrap();
        assert_eq!(ended.stdout, format!("{literal},\"resultType\":\"complete\"}}\n"));
    }
}

#[test]
fn an_answer_for_a_person_shows_what_it_does_not_know() {
    let world = with_fixture();
    let said = called(&world, &["f__weird"]);
    says(&said, "[hologram: {\"type\":\"hologram\"");
    says(&said, "after ü /");
    assert_eq!(called(&world, &["f__long_number"]), "see structuredContent\n");
}

#[test]
fn a_tool_is_found_in_every_spelling() {
    let world = with(&fixture("\"My Server\"", &[]));
    for name in [
        "my-server__echo",
        "my-server:echo",
        "my-server.echo",
        "mcp__my-server__echo",
        "My Server__echo",
        "My Server:echo",
    ] {
        assert_eq!(called(&world, &[name, "a=1"]), "{\"a\":1}\n", "{name}");
    }
    let entry = last_entry(&world);
    assert_eq!(json!([entry["server"], entry["item"]]), json!(["my-server", "echo"]));
}

#[test]
fn a_tool_that_says_it_failed_is_an_answer_and_exit_code_one() {
    let world = with_fixture();
    let ended = ends_with(run(&world, "call f__fail"), 1);
    assert_eq!(ended.stdout, "it failed\n");
    says(&ended.stderr, "`f__fail` reported an error");
    let ended = ends_with(run(&world, "call f__fail --json"), 1);
    assert_eq!(crate::stage::json(&ended)["isError"], true);
    assert_eq!(last_entry(&world)["outcome"], "tool_error");
}

#[test]
fn progress_is_not_printed_where_no_terminal_shows_it() {
    let world = with_fixture();
    for words in ["call f__progress steps=5", "call f__progress steps=5 --json"] {
        let ended = ends_with(run(&world, words), 0);
        assert_eq!(ended.stderr, "");
        assert!(!ended.stdout.contains('\u{1b}'), "{:?}", ended.stdout);
    }
}

#[test]
fn messages_of_the_server_go_to_stderr_with_its_name() {
    let world = with(&legacy("old"));
    let ended = ends_with(run(&world, "call old__log"), 0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("logged\n", "old info: hello\n"));
}

#[test]
fn a_large_answer_arrives_whole() {
    let world = with_fixture();
    let said = called(&world, &["f__big", "bytes=3000000"]);
    assert_eq!(said.len(), 3_000_001);
    assert!(said.trim_end().bytes().all(|byte| byte == b'x'));
}

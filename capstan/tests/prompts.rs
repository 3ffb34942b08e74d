//! Prompts on the command line: listed, and got with arguments in every form.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use capstan_testkit::{Ended, World, binary};
use serde_json::{Value, json};

/// A world with fixture servers of these names, each with a library, and these rules before them.
fn servers(names: &[&str], rules: &str) -> World {
    let world = World::new();
    let entry = |name: &&str| {
        let program = binary("capstan-fixture");
        let program = program.to_str().unwrap();
        format!("[servers.{name}]\ncommand = {program:?}\nargs = [\"--library\"]\n")
    };
    let entries: Vec<String> = names.iter().map(entry).collect();
    world.write_user_config(&format!("{rules}\n{}", entries.concat()));
    world
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

#[test]
fn c67_every_form_of_arguments_gets_the_same_messages() {
    let world = servers(&["poems"], "");
    let expected = "user: poem-writer {\"title\":\"LLxprt Code\",\"mood\":\"reverent\"}\n\
                    assistant: Gladly.\n";
    for words in [
        &["poem-writer", "--title=LLxprt Code", "--mood=reverent"][..],
        &["/poem-writer", "LLxprt Code", "reverent"],
        &["poems:poem-writer", "--mood", "reverent", "--title", "LLxprt Code"],
        &["poems__poem-writer", "mood=reverent", "title=LLxprt Code"],
        &["poems:poem-writer", "mood=reverent", "--", "LLxprt Code"],
    ] {
        let typed = [&["prompt"], words].concat();
        assert_eq!(run(&world, &typed).ok(), expected, "{words:?}");
    }
    let without = run(&world, &["prompt", "poem-writer", "LLxprt Code"]).ok();
    says(&without, "user: poem-writer {\"title\":\"LLxprt Code\"}\n");
}

#[test]
fn c67_what_is_missing_unknown_or_too_much_is_named() {
    let world = servers(&["poems"], "");
    let takes = "it takes `title`, `mood`";
    for (words, problem) in [
        (&[][..], "missing `title` (What it is about)"),
        (&["--mood", "sad"], "missing `title` (What it is about)"),
        (&["--titel=x"], "there is no argument `titel`"),
        (&["x", "author=y"], "there is no argument `author`"),
        (&["a", "b", "c"], "unexpected argument `c`"),
    ] {
        let ended = ends(run(&world, &[&["prompt", "poems:poem-writer"], words].concat()), 2);
        says(&ended.stderr, problem);
        says(&ended.stderr, takes);
        assert_eq!(ended.stdout, "");
    }
    let ended = ends(run(&world, &["prompt", "poems:poem-writer", "--title"]), 2);
    says(&ended.stderr, "`--title` needs a value");
}

#[test]
fn c74_arguments_that_a_server_defines_reach_it_and_its_prompts_are_listed() {
    let world = servers(&["my-server"], "");
    let typed = ["/my-server:analyze-code", "--language", "typescript", "--focus", "performance"];
    let got = run(&world, &[&["prompt"], &typed[..]].concat()).ok();
    says(&got, r#"analyze-code {"language":"typescript","focus":"performance"}"#);
    insta::assert_snapshot!(run(&world, &["prompts"]).ok(), @"
    PROMPT                   ARGUMENTS         DESCRIPTION
    my-server__greet         name
    my-server__poem-writer   title [mood]      Writes a poem
    my-server__analyze-code  language [focus]
    ");
    insta::assert_snapshot!(run(&world, &["prompts", "my-server:poem-writer"]).ok(), @"
    my-server__poem-writer

    Writes a poem
    with a title

    arguments:
      title  What it is about
      [mood]  How it feels
    ");
}

#[test]
fn programs_get_the_items_and_the_result_as_the_server_wrote_them() {
    let world = servers(&["poems"], "");
    let listed = run(&world, &["prompts", "poems", "--json"]).ok();
    let greet =
        r#"{"name":"greet","arguments":[{"name":"name","required":true}],"server":"poems"}"#;
    says(&listed, greet);
    let one = run(&world, &["prompts", "poems:greet", "--json", "--refresh"]).ok();
    assert_eq!(one, format!("{greet}\n"));
    let got = run(&world, &["prompt", "poems:greet", "Ada", "--json"]).ok();
    let content = r#"{"type":"text","text":"Greet Ada."}"#;
    says(&got, &format!(r#"{{"messages":[{{"role":"user","content":{content}}}]"#));
}

#[test]
fn our_own_options_may_stand_among_the_words() {
    let world = servers(&["poems"], "");
    for words in [
        ["prompt", "greet", "Ada", "--json"],
        ["prompt", "greet", "--json", "name=Ada"],
        ["prompt", "--json", "greet", "Ada"],
        ["--json", "prompt", "greet", "Ada"],
    ] {
        says(&run(&world, &words).ok(), r#"{"messages":"#);
    }
    // Behind a double dash nothing is an option.
    says(&run(&world, &["prompt", "greet", "--", "--json"]).ok(), "user: Greet --json.");
    says(&run(&world, &["prompt", "greet", "--help"]).ok(), "Usage: capstan prompt");
}

#[test]
fn a_bare_name_is_enough_where_one_server_has_it_and_refused_where_two_have() {
    let world = servers(&["one", "two"], "");
    let ended = ends(run(&world, &["prompt", "greet", "Ada"]), 2);
    says(&ended.stderr, "several servers have a prompt with that name");
    says(&ended.stderr, "`one__greet`, `two__greet`");
    says(&run(&world, &["prompt", "two:greet", "Ada"]).ok(), "Greet Ada.");
}

#[test]
fn what_nobody_has_is_not_found_with_the_nearest() {
    let world = servers(&["poems"], "");
    for (prompt, hint) in [
        ("poems:poem-writr", "did you mean `poems__poem-writer`?"),
        ("poem-writr", "did you mean `poem-writer`?"),
        ("peoms:greet", "did you mean `poems__greet`?"),
        ("zzz", "`capstan prompts` lists all"),
    ] {
        let ended = ends(run(&world, &["prompt", prompt, "--json"]), 4);
        let error: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(error["error"]["code"], "not_found", "{prompt}");
        assert_eq!(error["error"]["hint"], hint, "{prompt}");
    }
}

#[test]
fn a_denied_prompt_is_neither_listed_nor_got_nor_completed() {
    let world = servers(&["poems"], "[permissions]\ndeny = [\"poems__poem-*\"]\n");
    assert!(!run(&world, &["prompts"]).ok().contains("poem-writer"));
    let ended = ends(run(&world, &["prompt", "poems:poem-writer", "x"]), 6);
    says(&ended.stderr, "`poems__poem-writer` is denied by rule `permissions.deny: poems__poem-*`");
    ends(run(&world, &["prompt", "poem-writer", "x"]), 4);
    let ended = ends(run(&world, &["prompt", "poems:poem-writer", "--complete", "mood"]), 4);
    assert_eq!(ended.stdout, "");
    says(&ends(run(&world, &["why", "poems:poem-writer"]), 6).stdout, "deny by");
    says(&run(&world, &["prompt", "poems:greet", "Ada"]).ok(), "Greet Ada.");
}

#[test]
fn a_server_helps_with_the_values_of_arguments_in_both_eras() {
    for era in ["legacy", "modern"] {
        let world = World::new();
        let program = binary("capstan-fixture");
        let program = program.to_str().unwrap();
        world.write_user_config(&format!(
            "[servers.poems]\ncommand = {program:?}\nargs = [\"--library\", \"--era\", \"{era}\"]\n"
        ));
        let typed = ["prompt", "poem-writer", "--complete", "mood=re"];
        assert_eq!(run(&world, &typed).ok(), "reverent\nrestless\n", "{era}");
        let json = run(&world, &["prompt", "poem-writer", "--complete=mood=s", "--json"]).ok();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), json!([{ "value": "sad" }]));
        let ended = ends(run(&world, &["prompt", "poem-writer", "--complete", "moood=x"]), 2);
        says(&ended.stderr, "did you mean `mood`?");
    }
}

#[test]
fn a_server_that_cannot_complete_is_not_asked_to() {
    let world = World::new();
    let program = binary("capstan-fixture");
    let program = program.to_str().unwrap();
    world.write_user_config(&format!("[servers.plain]\ncommand = {program:?}\n"));
    let ended = ends(run(&world, &["prompt", "greet", "--complete", "name=A"]), 0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[test]
fn a_shell_completes_the_prompts_that_were_seen_and_starts_nobody() {
    let world = servers(&["poems"], "");
    let complete = |words: &[&str]| {
        let typed = [&["--", "capstan"], words].concat();
        world.capstan(typed).env("COMPLETE", "fish").run().ok()
    };
    assert_eq!(complete(&["prompt", "poems__p"]), "");
    run(&world, &["prompts"]).ok();
    says(&complete(&["prompt", "poems__p"]), "poems__poem-writer");
    says(&complete(&["prompts", "poe"]), "poems");
    says(&complete(&["resources", "poe"]), "poems");
    says(&complete(&["read", "@po"]), "@poems:");
    assert!(!complete(&["call", "poems__p"]).contains("poem-writer"));
}

//! A program as a server behind a real hub: what is listed, run, told, kept and ended.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod scene;

use std::fs;

use capstan_hub::ports::{Backend, Listing};
use capstan_model::CallError;
use serde_json::json;

use scene::{Scene, alive, until};

#[tokio::test]
async fn each_subcommand_is_a_tool_and_nothing_else_is_listed() {
    let scene = Scene::new();
    assert_eq!(scene.state(), "idle");
    assert_eq!(
        scene.tools().await.unwrap(),
        [
            "crane_lift",
            "crane_load_add",
            "crane_load_drop",
            "crane_wait",
            "crane_fail",
            "crane_hoist"
        ]
    );
    assert_eq!(scene.state(), "connected");
    for other in [Listing::Prompts, Listing::Resources, Listing::Templates] {
        assert!(scene.listing(other).await.unwrap().is_empty());
    }
    assert_eq!(scene.about().await.unwrap().title.as_deref(), Some("crane"));
}

#[tokio::test]
async fn a_complaint_is_no_help_and_describes_nothing() {
    let scene = Scene::with(|settings| {
        let script = "#!/bin/sh\necho 'There is no project in this folder.' >&2\nexit 1\n";
        fs::write(&settings.program.command, script).unwrap();
    });
    let items = scene.listing(Listing::Tools).await.unwrap();
    let tool: serde_json::Value = items[0].definition.read().unwrap();
    assert_eq!(tool["description"], "Runs `crane`.");
    let text = b"fatal: not a git repository\nusage: git x [-a]\n\n    -a    all\n";
    let help = capstan_command::help::read(text, &["git", "x"]);
    assert_eq!((help.summary.as_str(), help.flags.len()), ("", 1));
}

#[tokio::test]
async fn a_call_runs_the_program_with_words_and_no_shell() {
    let scene = Scene::new();
    let evil = "; touch evil $(touch evil) `touch evil`\n& touch evil";
    let told =
        scene.call("crane_lift", json!({ "height": 3, "what": [evil, "-x"] })).await.unwrap();
    let expected = format!("lift\n--height=3\n--\n{evil}\n-x\n");
    assert_eq!(told["structuredContent"]["stdout"], json!(expected));
    assert_eq!(
        (&told["isError"], &told["structuredContent"]["exitCode"]),
        (&json!(false), &json!(0))
    );
    assert!(!scene.folder().join("evil").exists());
}

#[tokio::test]
async fn a_failure_is_an_answer_with_its_exit_code_and_stderr() {
    let scene = Scene::new();
    let told = scene.call("crane_fail", json!({})).await.unwrap();
    assert_eq!(told["isError"], json!(true));
    assert_eq!(
        told["structuredContent"],
        json!({ "exitCode": 3, "stdout": "half\n", "stderr": "broke, secret hunter22\n" })
    );
    // The shown texts contain no secrets.
    assert_eq!(scene.server.stderr(), ["broke, secret ***"]);
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_start_the_program() {
    let scene = Scene::new();
    scene.tools().await.unwrap();
    let before = scene.runs();
    for arguments in [
        json!({ "args": ["x"] }),
        json!({ "height": "--exec=sh", "what": ["x"] }),
        json!({ "height": 1 }),
        json!({ "what": ["a\0b"] }),
        json!({ "exec": "sh", "what": ["x"] }),
    ] {
        let error = scene.call("crane_lift", arguments.clone()).await.unwrap_err();
        assert!(matches!(error, CallError::InvalidArguments { .. }), "{arguments}: {error}");
    }
    let error = scene.call("crane_secret", json!({})).await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    assert_eq!(scene.runs(), before);
}

#[tokio::test]
async fn the_environment_is_put_together_and_not_inherited() {
    let scene = Scene::new();
    let told = scene.call("crane_load_add", json!({ "args": ["env"] })).await.unwrap();
    let variables = told["structuredContent"]["stdout"].as_str().unwrap();
    assert!(variables.contains("GIVEN=hunter22") && variables.contains("PAGER=cat"), "{variables}");
    assert!(!variables.contains("CARGO"), "{variables}");
}

#[tokio::test]
async fn long_output_is_cut_with_a_note() {
    let scene = Scene::with(|settings| settings.output = 10);
    let told = scene.call("crane_lift", json!({ "what": ["0123456789"] })).await.unwrap();
    let text = told["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "lift\n--\n01\n[9 more bytes were cut]");
}

#[tokio::test]
async fn a_call_that_goes_on_tells_how_it_goes() {
    let scene = Scene::new();
    // The program prints until a line of it has been read.
    let mark = async {
        until(|| !scene.person.seen().is_empty()).await;
        fs::write(scene.folder().join("seen"), "").unwrap();
    };
    let (told, ()) = tokio::join!(scene.call("crane_wait", json!({ "mark": "seen" })), mark);
    assert_eq!(told.unwrap()["isError"], json!(false));
    let seen = scene.person.seen();
    assert!(
        seen.iter().any(|line| line.starts_with("s: ") && line.contains("working")),
        "{seen:?}"
    );
}

#[tokio::test]
async fn whoever_goes_away_ends_the_whole_tree() {
    let scene = Scene::new();
    scene.tools().await.unwrap();
    {
        let call = scene.call("crane_wait", json!({ "mark": "never" }));
        tokio::pin!(call);
        tokio::select! {
            told = &mut call => panic!("{told:?}"),
            () = until(|| scene.pids().len() == 2) => {}
        }
    }
    until(|| scene.pids().iter().all(|pid| !alive(*pid))).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_ended_and_says_so() {
    let scene = Scene::with(|settings| settings.timeout = std::time::Duration::from_millis(300));
    let error = scene.call("crane_wait", json!({ "mark": "never" })).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { may_have_run: true, .. }), "{error}");
    until(|| scene.pids().iter().all(|pid| !alive(*pid))).await;
}

#[tokio::test]
async fn a_program_that_is_listed_without_a_word_about_it_is_somebody_elses_and_is_not_run() {
    let scene = Scene::new();
    let tools = scene.tools().await.unwrap();
    assert!(tools.contains(&"crane_hoist".to_owned()), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool.contains("other")), "{tools:?}");
    assert!(!scene.ran("other"), "it was run");
}

#[tokio::test]
async fn a_closed_server_ends_its_calls() {
    let scene = Scene::new();
    scene.tools().await.unwrap();
    let call = scene.call("crane_wait", json!({ "mark": "never" }));
    let close = async {
        until(|| scene.pids().len() == 2).await;
        scene.server.close().await;
    };
    let (told, ()) = tokio::join!(call, close);
    assert!(matches!(told, Err(CallError::OutcomeUnknown { .. })), "{told:?}");
    until(|| scene.pids().iter().all(|pid| !alive(*pid))).await;
}

#[tokio::test]
async fn what_was_found_is_kept_for_the_next_start_and_only_for_the_same_program() {
    let scene = Scene::new();
    let first = scene.tools().await.unwrap();
    let asked = scene.runs();
    assert!(asked > 0);

    let again = scene.again(|_| {});
    assert_eq!(again.tools().await.unwrap(), first);
    assert_eq!(scene.runs(), asked, "the second start asked again");

    let narrower = scene.again(|settings| settings.only = Some(vec!["lift".to_owned()]));
    assert_eq!(narrower.tools().await.unwrap(), ["crane_lift"]);
    let asked_again = scene.runs();
    assert!(asked_again > asked, "other settings were not asked about");

    let script = fs::read_to_string(scene.program()).unwrap();
    fs::write(scene.program(), script.replace("fail", "crash")).unwrap();
    let changed = scene.again(|_| {});
    assert!(changed.tools().await.unwrap().contains(&"crane_crash".to_owned()));

    for entry in fs::read_dir(scene.folder().join("cache/commands")).unwrap() {
        fs::write(entry.unwrap().path(), "{ broken").unwrap();
    }
    assert!(scene.again(|_| {}).tools().await.unwrap().contains(&"crane_crash".to_owned()));
}

#[tokio::test]
async fn a_list_of_subcommands_is_all_that_is_asked_about_and_offered() {
    let scene = Scene::with(|settings| {
        settings.only = Some(vec!["load add".to_owned(), "lft".to_owned()]);
    });
    assert_eq!(scene.tools().await.unwrap(), ["crane_load_add"]);
    assert_eq!(scene.state(), "degraded: `cli_only` names `lft`, which `crane` does not have");
    let log = scene.log();
    assert!(!log.contains("fail") && !log.contains("wait"), "{log}");
}

#[tokio::test]
async fn a_list_that_names_nothing_the_program_has_fails() {
    let scene = Scene::with(|settings| settings.only = Some(vec!["lft".to_owned()]));
    assert!(matches!(scene.tools().await, Err(CallError::Unreachable { .. })));
    assert_eq!(scene.state(), "failed: `cli_only` names `lft`, which `crane` does not have");
}

#[tokio::test]
async fn one_level_of_help_lists_subcommands_without_their_flags() {
    let scene = Scene::with(|settings| settings.depth = 1);
    assert_eq!(
        scene.tools().await.unwrap(),
        ["crane_lift", "crane_load", "crane_wait", "crane_fail", "crane_hoist"]
    );
    assert_eq!(scene.runs(), 2, "its help and its list of commands");
    let error = scene.call("crane_lift", json!({ "args": ["-x"] })).await.unwrap_err();
    assert!(matches!(error, CallError::InvalidArguments { .. }), "{error}");
    let told = scene.call("crane_lift", json!({ "args": ["x"] })).await.unwrap();
    assert_eq!(told["structuredContent"]["stdout"], json!("lift\nx\n"));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_to_be_missing() {
    let scene = Scene::with(|settings| settings.program.command = "no-such-crane".to_owned());
    assert!(matches!(scene.tools().await, Err(CallError::Unreachable { .. })));
    assert!(
        scene.state().starts_with("failed: command `no-such-crane` was not found in PATH"),
        "{}",
        scene.state()
    );
}

//! `capstan --print` from outside: the real binary, real servers, and a stand-in for the providers.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use capstan_testkit::model_api::{MODEL_KEY, ModelApi, ModelStep, StepEnd};
use capstan_testkit::{Capstan, Ended, World, binary, descendants, wait_until};
use serde_json::{Value, json};

/// A world with two fixture servers and these rules. The model `p/m` is chosen by each test.
fn world(rules: &str) -> World {
    let world = World::new();
    let program = binary("capstan-fixture");
    let program = program.to_str().unwrap();
    let entry = |name: &str, args: &str| {
        format!("[servers.{name}]\ncommand = {program:?}\nargs = [{args}]\n")
    };
    let instructions = "\"--instructions\", \"Echo politely.\", \"--library\"";
    let servers = [entry("b", ""), entry("a", instructions)].concat();
    world.write_user_config(&format!("{rules}\n{servers}"));
    world
}

/// A run with a model at the stand-in.
fn chat(world: &World, api: &ModelApi, provider: &str, words: &[&str]) -> Capstan {
    let model = format!("{provider}/model");
    let words = ["-p"].iter().chain(words).copied().chain(["--model", &model]);
    world
        .capstan(words.collect::<Vec<_>>())
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", MODEL_KEY)
        .env("OPENAI_BASE_URL", format!("{}/v1", api.url()))
        .env("OPENAI_API_KEY", MODEL_KEY)
        .env("GOOGLE_GEMINI_BASE_URL", api.url())
        .env("GEMINI_API_KEY", MODEL_KEY)
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

const ALLOW: &str = "[permissions]\nallow = [\"*\"]";

fn echo(message: &str) -> ModelStep {
    ModelStep::calls([("a__echo", json!({ "message": message }))])
}

#[test]
fn every_provider_calls_tools_and_answers() {
    for provider in ["anthropic", "openai", "gemini"] {
        let world = world(ALLOW);
        let calls = [("a__echo", json!({"message": "ä"})), ("b__echo", json!({"message": "ö"}))];
        let first = ModelStep {
            reasoning: Some("Both, then.".to_owned()),
            text: "One moment.".to_owned(),
            ..ModelStep::calls(calls)
        };
        let api = ModelApi::start([first, ModelStep::text("Both servers answered.")]);
        let ended = ends(chat(&world, &api, provider, &["call both"]).run(), 0);
        assert_eq!(ended.stdout, "Both servers answered.\n", "{provider}");
        let sent = api.requests();
        assert_eq!(sent.len(), 2, "{provider}");
        let body = sent[1].body.to_string();
        says(&body, "ä");
        says(&body, "ö");
    }
}

#[test]
fn instructions_of_a_connected_server_reach_the_model_with_its_name() {
    let world = world(ALLOW);
    // A server tells its instructions once it is connected.
    let api = ModelApi::start([echo("x"), ModelStep::text("ok")]);
    ends(chat(&world, &api, "anthropic", &["hi"]).run(), 0);
    let system = api.requests()[1].body["system"][0]["text"].as_str().unwrap().to_owned();
    says(&system, "Instructions of the server `a`:\nEcho politely.");
}

#[test]
fn a_call_that_needs_an_approval_is_refused_with_the_remedy() {
    let world = world("");
    let api = ModelApi::start([echo("x"), ModelStep::text("I could not.")]);
    let ended = ends(chat(&world, &api, "openai", &["go"]).run(), 6);
    assert_eq!(ended.stdout, "I could not.\n");
    says(&ended.stderr, "`a__echo` needs an approval, and nobody can be asked");
    says(&ended.stderr, "`--allow 'a__echo'`");
    says(&api.requests()[1].body.to_string(), "The call was refused");
    let audit = world.capstan(["audit", "--json"]).run().ok();
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(audit[0]["front"], "terminal", "{audit}");
}

#[test]
fn allow_approves_what_it_matches_and_nothing_that_is_denied() {
    let asks = "[permissions]\nask = [\"a__echo\"]\ndeny = [\"b__*\"]";
    for (pattern, call, code) in [
        ("a__*", "a__echo", 0),
        ("a__echo:message=x", "a__echo", 0),
        ("*", "a__echo", 0),
        ("a__echo:message=y", "a__echo", 6),
        ("b__*", "a__echo", 6),
        ("Elicit(a)", "a__echo", 6),
        ("*", "b__echo", 6),
        ("b__echo", "b__echo", 6),
    ] {
        let world = world(asks);
        let calls = ModelStep::calls([(call, json!({ "message": "x" }))]);
        let api = ModelApi::start([calls, ModelStep::text("done")]);
        ends(chat(&world, &api, "openai", &["go", "--allow", pattern]).run(), code);
    }
    let api = ModelApi::start([]);
    let ended = chat(&world(""), &api, "openai", &["go", "--allow", "a__echo:"]).run();
    says(&ends(ended, 2).stderr, "--allow a__echo:");
}

#[test]
fn c15_questions_of_servers_are_declined_and_the_call_goes_on() {
    let world = world(ALLOW);
    let api =
        ModelApi::start([ModelStep::calls([("a__elicit", json!({}))]), ModelStep::text("ok")]);
    let ended = ends(chat(&world, &api, "anthropic", &["go"]).run(), 0);
    says(&ended.stderr, "declined: nobody can be asked");
    says(&api.requests()[1].body.to_string(), "decline");
}

#[test]
fn json_has_the_text_the_calls_and_the_tokens() {
    let world = world(ALLOW);
    let api = ModelApi::start([echo("x"), ModelStep::text("done \u{1b}[31m")]);
    let ended = chat(&world, &api, "gemini", &["go", "--output-format", "json"]).run().ok();
    let result: Value = serde_json::from_str(&ended).unwrap();
    assert_eq!(result["text"], "done \u{1b}[31m");
    assert_eq!(result["model"], "gemini/model");
    assert_eq!(result["turns"], 2);
    assert_eq!(result["tokens"], json!({"input": 34, "output": 40, "cached": 10}));
    assert_eq!(result["calls"][0]["tool"], "a__echo");
    assert_eq!(result["calls"][0]["is_error"], false);
    assert!(!ended.contains('\u{1b}'), "control characters are escaped");
    let api = ModelApi::start([ModelStep::text("done \u{1b}[31mred")]);
    let text = chat(&world, &api, "gemini", &["go"]).run().ok();
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn stream_json_tells_what_happens_line_by_line() {
    let world = world(ALLOW);
    let limited =
        StepEnd::Status(429, vec![("retry-after-ms", "10".to_owned())], "slow".to_owned());
    let limited = ModelStep { end: limited, ..ModelStep::default() };
    let api = ModelApi::start([limited, echo("x"), ModelStep::text("All done.")]);
    let ended = chat(&world, &api, "openai", &["go", "--output-format", "stream-json"]).run().ok();
    let lines: Vec<Value> = ended.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    kinds.dedup();
    assert_eq!(kinds, ["retry", "call", "call_result", "text", "result"]);
    let text: String = lines
        .iter()
        .filter(|line| line["type"] == "text")
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "All done.");
    assert_eq!(lines.last().unwrap()["text"], "All done.");
}

#[test]
fn a_pipe_is_part_of_the_message_or_all_of_it() {
    let world = world(ALLOW);
    let api = ModelApi::start([ModelStep::text("ok"), ModelStep::text("ok")]);
    ends(chat(&world, &api, "openai", &["review this"]).stdin("the diff").run(), 0);
    ends(chat(&world, &api, "openai", &[]).stdin("only this").run(), 0);
    let sent = api.requests();
    let users = |at: usize| {
        let messages = sent[at].body["messages"].as_array().unwrap().clone();
        let users = messages.into_iter().filter(|message| message["role"] == "user");
        users.map(|message| message["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(users(0), ["review this", "the diff"]);
    assert_eq!(users(1), ["only this"]);
    says(&ends(chat(&world, &api, "openai", &[]).run(), 2).stderr, "there is no message");
}

#[test]
fn continue_resumes_the_conversation_of_the_project_with_its_signatures() {
    let world = world(ALLOW);
    let api = ModelApi::start([echo("x"), ModelStep::text("first"), ModelStep::text("second")]);
    says(
        &ends(chat(&world, &api, "gemini", &["go", "--continue"]).run(), 4).stderr,
        "no conversation",
    );
    ends(chat(&world, &api, "gemini", &["remember this"]).run(), 0);
    let ended = ends(chat(&world, &api, "gemini", &["and now?", "--continue"]).run(), 0);
    assert_eq!(ended.stdout, "second\n");
    // The stand-in refuses calls without their signature, as Gemini does.
    let body = api.requests().last().unwrap().body.to_string();
    says(&body, "remember this");
    says(&body, "signature-of-a-call");
    let folder = world.state().join("capstan/conversations");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!fs::read_to_string(&files[0]).unwrap().contains(MODEL_KEY));
}

#[test]
fn a_killed_run_leaves_a_conversation_that_can_be_continued_and_no_process() {
    let world = world(ALLOW);
    let hang = ModelStep { end: StepEnd::Hang, ..ModelStep::text("thinking…") };
    let api = ModelApi::start([echo("x"), hang, ModelStep::text("back again")]);
    let mut command = chat(&world, &api, "anthropic", &["go"]).into_command();
    let mut child = command.stdin(std::process::Stdio::null()).spawn().unwrap();
    let limit = std::time::Duration::from_secs(30);
    assert!(wait_until(|| api.requests().len() == 2, limit));
    let children = descendants(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !children.is_empty()
            && wait_until(|| !children.iter().any(|pid| capstan_testkit::alive(*pid)), limit)
    );
    // A line that the crash cut in half.
    let folder = world.state().join("capstan/conversations");
    let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str("{\"message\":{\"role\":\"assi");
    fs::write(&file, text).unwrap();
    let ended = ends(chat(&world, &api, "anthropic", &["go on", "--continue"]).run(), 0);
    assert_eq!(ended.stdout, "back again\n");
}

#[test]
fn the_end_of_the_turns_and_errors_of_the_model_have_the_usual_codes() {
    let world = world(ALLOW);
    let question = ["go", "--max-turns", "1"];
    let api = ModelApi::start([echo("x")]);
    says(&ends(chat(&world, &api, "openai", &question).run(), 9).stderr, "--max-turns");
    for (status, code) in [(401, 5), (403, 5), (404, 4), (400, 1)] {
        let api = ModelApi::start([ModelStep::status(status, "no")]);
        let ended = chat(&world, &api, "openai", &["go", "--output-format", "json"]).run();
        let ended = ends(ended, code);
        let error: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(error["error"]["message"].is_string(), "{error}");
    }
    let cut = ModelStep { end: StepEnd::Cut, ..ModelStep::text(&"word ".repeat(50)) };
    ends(chat(&world, &ModelApi::start([cut]), "gemini", &["go"]).run(), 7);
}

#[test]
fn without_a_key_or_a_model_the_run_says_what_is_missing() {
    let world = world(ALLOW);
    let ended = ends(world.capstan(["-p", "hi", "--model", "gemini/pro"]).run(), 5);
    says(&ended.stderr, "GEMINI_API_KEY and GOOGLE_API_KEY");
    says(&ends(world.capstan(["-p", "hi"]).run(), 3).stderr, "no model is chosen");
    ends(world.capstan(["-p", "hi", "--model", "mistral/x"]).run(), 2);
}

#[test]
fn the_configuration_chooses_the_model_its_endpoint_and_its_key() {
    let api = ModelApi::start([ModelStep::text("from the configuration")]);
    let table = format!(
        "{ALLOW}\n[model]\nname = \"openai/local\"\nendpoint = \"{}/v1\"\napi_key = \"${{LOCAL_KEY}}\"\n",
        api.url()
    );
    let world = world(&table);
    let run = world.capstan(["-p", "hi"]).env("LOCAL_KEY", MODEL_KEY).run();
    assert_eq!(ends(run, 0).stdout, "from the configuration\n");
    assert_eq!(api.requests()[0].body["model"], "local");
    // Without the variable, everything but the model works.
    says(&ends(world.capstan(["-p", "hi"]).run(), 5).stderr, "`model.api_key`");
    ends(world.capstan(["list"]).run(), 0);
    // A project cannot send the conversation elsewhere.
    let project = self::world(ALLOW);
    project.write("project/.git/HEAD", "");
    project.write_project_config(&format!(
        "[model]\nname = \"openai/x\"\nendpoint = \"{}\"\n",
        api.url()
    ));
    ends(project.capstan(["-p", "hi", "--trust-project"]).run(), 3);
}

#[test]
fn c63_resources_and_files_after_an_at_sign_are_in_the_message() {
    let world = world(ALLOW);
    world.write("project/notes.txt", "the notes");
    world.write("project/picture.png", b"\x89PNG\r\n\x1a\n");
    let api = ModelApi::start([ModelStep::text("ok"), ModelStep::text("ok")]);
    let text =
        "see @a:file:///workspace/README.md and @notes.txt, @picture.png me@example.com @nothing";
    let ended = ends(chat(&world, &api, "anthropic", &[text]).run(), 0);
    assert_eq!(ended.stderr, "");
    let content = &api.requests()[0].body["messages"][0]["content"];
    assert_eq!(content[0]["text"], text);
    says(content[1]["text"].as_str().unwrap(), "# Read\r\n me");
    says(content[2]["text"].as_str().unwrap(), "the notes");
    assert_eq!(content[3]["type"], "image");
    assert_eq!(content.as_array().unwrap().len(), 4);
    // The URI is unknown: what cannot be read is reported, and the rest of the message stays.
    let ended = ends(chat(&world, &api, "anthropic", &["see @a:fixture://nothing there"]).run(), 0);
    says(&ended.stderr, "`@a:fixture://nothing`");
    assert_eq!(
        api.requests()[1].body["messages"][0]["content"][0]["text"],
        "see @a:fixture://nothing there"
    );
}

#[test]
fn c19_a_template_takes_as_many_words_as_it_has_placeholders() {
    let world = world(ALLOW);
    let api =
        ModelApi::start([ModelStep::text("ok"), ModelStep::text("ok"), ModelStep::text("ok")]);
    let text = "summarize @a:issue acme widgets 42 in one line";
    ends(chat(&world, &api, "anthropic", &[text]).run(), 0);
    let content = api.requests()[0].body["messages"][0]["content"].clone();
    says(content[1]["text"].as_str().unwrap(), "github://repos/acme/widgets/issues/42\n");
    let ended = ends(chat(&world, &api, "anthropic", &["what is @a:issue acme"]).run(), 0);
    says(&ended.stderr, "missing `repo`, `id`");
    // C64: what is binary is an image where models accept it, and described elsewhere.
    ends(chat(&world, &api, "anthropic", &["what is @a:logo"]).run(), 0);
    assert_eq!(api.requests()[2].body["messages"][0]["content"][2]["type"], "image");
}

#[test]
fn c16_without_servers_the_model_still_answers() {
    let world = world(ALLOW);
    let api = ModelApi::start([ModelStep::text("alone")]);
    let ended = ends(chat(&world, &api, "openai", &["hi", "--no-mcp"]).run(), 0);
    assert_eq!(ended.stdout, "alone\n");
    assert!(api.requests()[0].body.get("tools").is_none());
}

#[test]
fn c74_a_prompt_with_named_arguments() {
    let world = world(ALLOW);
    let api = ModelApi::start([ModelStep::text("fine")]);
    let typed = "/a:analyze-code --language typescript --focus performance";
    ends(chat(&world, &api, "gemini", &[typed]).run(), 0);
    let sent = &api.requests()[0].body["contents"][0]["parts"][0]["text"];
    assert_eq!(sent, "analyze-code {\"language\":\"typescript\",\"focus\":\"performance\"}");
}

#[test]
fn c67_a_prompt_is_a_slash_command() {
    let world = world(ALLOW);
    for typed in [
        "/poem-writer \"LLxprt Code\" reverent",
        "/a:poem-writer --mood reverent --title=\"LLxprt Code\"",
        "/poem-writer --title 'LLxprt Code' reverent",
    ] {
        let api = ModelApi::start([ModelStep::text("a poem")]);
        let ended = ends(chat(&world, &api, "openai", &[typed]).run(), 0);
        assert_eq!(ended.stdout, "a poem\n");
        let messages = &api.requests()[0].body["messages"];
        let first = messages[1]["content"].as_str().unwrap();
        assert_eq!(
            first, "poem-writer {\"title\":\"LLxprt Code\",\"mood\":\"reverent\"}",
            "{typed}"
        );
        assert_eq!(
            (&messages[2]["role"], &messages[2]["content"]),
            (&json!("assistant"), &json!("Gladly."))
        );
    }
    let api = ModelApi::start([]);
    ends(chat(&world, &api, "openai", &["/poem-writer"]).run(), 2);
    says(&ends(chat(&world, &api, "openai", &["/no-such"]).run(), 4).stderr, "no-such");
    assert!(api.requests().is_empty());
}

#[test]
fn commands_with_a_slash_need_no_model() {
    let world = world(ALLOW);
    let run = |text: &str| ends(world.capstan(["-p", text]).run(), 0).stdout;
    let listed = run("/mcp");
    says(&listed, " a (");
    says(&listed, "Resources:");
    says(&listed, "Discovery: the tools of 2 of 2 servers are known");
    assert_eq!(run("/mcp list").lines().count(), listed.lines().count());
    says(&run("/mcp desc a"), "echo");
    says(&run("/mcp schema b"), "\"properties\"");
    says(&run("/help"), "/a:poem-writer");
    says(&run("/call a__echo message='two words'"), "two words");
    says(&run("/tools a__echo"), "echo");
    for (text, code) in
        [("/mcp add x y", 2), ("/mcp dance", 2), ("/mcp desc nobody", 4), ("/call", 2)]
    {
        ends(world.capstan(["-p", text]).run(), code);
    }
    ends(world.capstan(["-p", "/mcp add x y --save"]).run(), 0);
    says(&run("/mcp list x"), " x (");
    ends(world.capstan(["-p", "/mcp remove x"]).run(), 0);
}

/// A world where a page that was fetched forbids to send a mail.
fn world_with_flows() -> World {
    let world = World::new();
    let program = binary("capstan-fixture");
    let tool = |name: &str| {
        let schema = json!({ "type": "object", "properties": { "url": { "type": "string" } } });
        json!({ "name": name, "description": "A tool", "inputSchema": schema }).to_string()
    };
    let entry = |name: &str, tool: String| {
        let args = json!(["--tool", tool, "--library"]);
        format!("[servers.{name}]\ncommand = {:?}\nargs = {args}\n", program.to_str().unwrap())
    };
    let servers = [entry("web", tool("fetch_page")), entry("post", tool("send_mail"))].concat();
    let flows = "[flows]\nuntrusted_then_send = \"deny\"\n";
    world.write_user_config(&format!("{ALLOW}\n{flows}\n{servers}"));
    world
}

fn fetch() -> ModelStep {
    ModelStep::calls([("web__fetch_page", json!({}))])
}

fn send() -> ModelStep {
    ModelStep::calls([("post__send_mail", json!({}))])
}

/// True if the model was told that the rule of the flow refused its last call.
fn is_refused(api: &ModelApi) -> bool {
    let body = api.requests().last().unwrap().body.to_string();
    body.contains("flows.untrusted_then_send")
}

#[test]
fn a_model_that_has_read_a_page_sends_no_mail_in_the_same_conversation() {
    let world = world_with_flows();
    let api = ModelApi::start([fetch(), send(), ModelStep::text("I may not.")]);
    ends(chat(&world, &api, "anthropic", &["read, then send"]).run(), 6);
    assert!(is_refused(&api));
    // It is still the same conversation.
    let api = ModelApi::start([send(), ModelStep::text("Still not.")]);
    ends(chat(&world, &api, "anthropic", &["send now", "--continue"]).run(), 6);
    assert!(is_refused(&api));
    // Another one has read nothing.
    let api = ModelApi::start([send(), ModelStep::text("Sent.")]);
    ends(chat(&world, &api, "anthropic", &["send"]).run(), 0);
    assert!(!is_refused(&api));
}

//! No value becomes a flag, a subcommand or a word for a shell.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use capstan_command::help::read;
use capstan_command::{Command, CommandSettings, Found, Preset, Tool, tools};
use capstan_process::once::Program;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Ends the flags by convention.
const CLAP: &str = "\
Usage: vault put [OPTIONS] <KEY> [VALUE]...

Options:
  -l, --label <LABEL>    A label
      --level <N>        A number
      --mode <MODE>      How [possible values: soft, hard]
      --color[=<WHEN>]   Colour
  -t <TAG>               A short one
  -q, --quiet            Say less
      --exec <CMD>       Run it afterwards
      --config <FILE>    Read this
  -h, --help             Print help
";

/// Has a place for `--`, but not at the beginning.
const GIT: &str = "\
usage: vault log [<options>] [<range>] [[--] <path>...]

    -q, --[no-]quiet      say less
    --author <author>     who
    --output <file>       where
";

/// Knows nothing of `--`.
const OLD: &str = "\
usage: vault old [-q] [-f file] name ...
";

fn settings() -> CommandSettings {
    let program = Program {
        command: "/opt/bin/vault".to_owned(),
        environment: [].into(),
        secrets: Vec::new(),
        cwd: None,
        keeper: PathBuf::new(),
        sandbox: None,
    };
    CommandSettings {
        name: "vault".parse().unwrap(),
        program,
        args: vec!["--base".to_owned()],
        help: "--help".to_owned(),
        depth: 2,
        only: None,
        presets: Vec::new(),
        startup_timeout: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        output: 1024,
        cache: None,
    }
}

fn found(paths: &[(&str, Option<&str>)]) -> Found {
    let command = |(path, text): &(&str, Option<&str>)| {
        let path: Vec<String> = path.split_whitespace().map(str::to_owned).collect();
        let words: Vec<&str> =
            std::iter::once("vault").chain(path.iter().map(String::as_str)).collect();
        let help = text.map(|text| read(text.as_bytes(), &words));
        Command { path, summary: String::new(), help }
    };
    Found { commands: paths.iter().map(command).collect(), unknown: Vec::new() }
}

/// All of them, made once.
static ALL: LazyLock<Vec<Tool>> = LazyLock::new(all);

fn all() -> Vec<Tool> {
    let paths = [("put", Some(CLAP)), ("log", Some(GIT)), ("old", Some(OLD)), ("dark", None)];
    tools(&settings(), &found(&paths)).unwrap()
}

fn tool(name: &str) -> Tool {
    ALL.iter().find(|tool| tool.name == name).unwrap().clone()
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[track_caller]
fn takes(name: &str, arguments: &Value, expected: &[&str]) {
    let line = tool(name).command_line(&object(arguments));
    assert_eq!(
        line.as_deref(),
        Ok(expected.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice())
    );
}

#[track_caller]
fn refuses(name: &str, arguments: &Value, because: &str) {
    let problem = tool(name).command_line(&object(arguments)).unwrap_err();
    assert!(problem.contains(because), "{arguments}: {problem}");
}

#[test]
fn flags_and_places_become_words_and_nothing_is_parted_or_replaced() {
    let odd = "a b;c $(d) `e` | f > g\n\"h\" 'i' *";
    takes(
        "vault_put",
        &json!({ "KEY".to_lowercase(): odd, "label": odd }),
        &["--base", "put", &format!("--label={odd}"), "--", odd],
    );
    takes(
        "vault_put",
        &json!({ "key": "k", "value": ["1", "2"], "quiet": true, "t": "x" }),
        &["--base", "put", "--quiet", "-t", "x", "--", "k", "1", "2"],
    );
    takes(
        "vault_log",
        &json!({ "range": "a..b", "path": ["-x", "--y"], "author": "me" }),
        &["--base", "log", "--author", "me", "a..b", "--", "-x", "--y"],
    );
    takes(
        "vault_log",
        &json!({ "path": ["p"], "quiet": false }),
        &["--base", "log", "--no-quiet", "--", "p"],
    );
    takes(
        "vault_old",
        &json!({ "name": ["n", "-"], "q": true, "f": "x" }),
        &["--base", "old", "-q", "-f", "x", "n", "-"],
    );
    takes(
        "vault_put",
        &json!({ "key": "k", "color": true, "level": 3, "mode": "hard" }),
        &["--base", "put", "--color", "--level=3", "--mode=hard", "--", "k"],
    );
    takes("vault_dark", &json!({ "args": ["a", "b"] }), &["--base", "dark", "a", "b"]);
}

#[test]
fn a_value_with_a_dash_is_never_read_as_a_flag() {
    takes(
        "vault_put",
        &json!({ "key": "--exec=sh", "label": "--exec=sh" }),
        &["--base", "put", "--label=--exec=sh", "--", "--exec=sh"],
    );
    for value in ["-x", "--exec=sh", "--", "-", "-\n", "--output=/etc/passwd"] {
        let flag = value != "-";
        for (name, key) in [
            ("vault_log", "range"),
            ("vault_log", "author"),
            ("vault_old", "name"),
            ("vault_old", "f"),
            ("vault_dark", "args"),
        ] {
            let given = if ["name", "args"].contains(&key) { json!([value]) } else { json!(value) };
            let arguments = if name == "vault_old" && key == "f" {
                json!({ "name": ["n"], key: given })
            } else {
                json!({ key: given })
            };
            let line = tool(name).command_line(&object(&arguments));
            assert_eq!(line.is_err(), flag, "{name} {arguments}: {line:?}");
        }
        if flag {
            refuses("vault_put", &json!({ "key": "k", "t": value }), "read as a flag");
        }
    }
}

#[test]
fn a_switch_that_takes_a_value_after_all_cannot_swallow_the_double_dash() {
    refuses("vault_put", &json!({ "key": "-x", "quiet": true }), "that has only switches");
    refuses(
        "vault_put",
        &json!({ "key": "k", "value": ["-x"], "quiet": true }),
        "that has only switches",
    );
    let expected = ["--base", "put", "--quiet", "--label=l", "--", "-x"];
    takes("vault_put", &json!({ "key": "-x", "quiet": true, "label": "l" }), &expected);
    let expected = ["--base", "log", "--quiet", "r", "--", "-x"];
    takes("vault_log", &json!({ "range": "r", "path": ["-x"], "quiet": true }), &expected);
    refuses("vault_log", &json!({ "path": ["-x"], "quiet": true }), "that has only switches");
}

#[test]
fn what_is_not_in_the_schema_is_refused() {
    for key in [
        "args", "exec", "config", "help", "--label", "-l", "l", "label=x", "", "base", "no-quiet",
        "no_quiet",
    ] {
        refuses("vault_put", &json!({ "key": "k", key: "x" }), "is not one of its arguments");
    }
    refuses("vault_put", &json!({}), "`key` is missing");
    refuses("vault_put", &json!({ "key": null }), "`key` is missing");
    refuses("vault_put", &json!({ "key": ["a", "b"] }), "neither a string nor a number");
    refuses("vault_put", &json!({ "key": { "a": 1 } }), "neither a string nor a number");
    refuses("vault_put", &json!({ "key": "k", "mode": "other" }), "is not one of soft, hard");
    refuses("vault_put", &json!({ "key": "k", "level": "3x" }), "is not a whole number");
    refuses("vault_put", &json!({ "key": "k", "quiet": "--exec=sh" }), "must be true or false");
    refuses(
        "vault_put",
        &json!({ "key": "k", "label": ["a", "b"] }),
        "neither a string nor a number",
    );
    refuses("vault_put", &json!({ "key": "a\0b" }), "NUL");
    refuses("vault_put", &json!({ "key": "k", "label": "\0" }), "NUL");
    refuses("vault_put", &json!({ "key": "x".repeat(200_000) }), "bytes");
    refuses("vault_put", &json!({ "key": "k", "value": vec!["y".repeat(90_000); 20] }), "bytes");
    refuses("vault_old", &json!({ "name": [] }), "empty");
}

#[test]
fn a_place_cannot_be_left_out_before_one_that_is_given() {
    let text = "Usage: vault mv [FROM] [TO]\n";
    let tools = tools(&settings(), &found(&[("mv", Some(text))])).unwrap();
    let line = |arguments: Value| tools[0].command_line(&object(&arguments));
    assert!(line(json!({ "to": "x" })).unwrap_err().contains("without `from`"));
    assert_eq!(line(json!({ "from": "a", "to": "b" })).unwrap(), ["--base", "mv", "a", "b"]);
}

#[test]
fn a_file_of_arguments_is_not_read_where_the_program_would() {
    let text = format!("{CLAP}\n  @FILE   more arguments\n");
    let tools = tools(&settings(), &found(&[("put", Some(&text))])).unwrap();
    let line = |arguments: Value| tools[0].command_line(&object(&arguments));
    assert!(line(json!({ "key": "@evil" })).unwrap_err().contains('@'));
    assert!(line(json!({ "key": "a@b" })).is_ok());
    takes("vault_put", &json!({ "key": "@fine" }), &["--base", "put", "--", "@fine"]);
}

#[test]
fn a_list_of_subcommands_holds_whatever_was_found() {
    let only = |list: &[&str]| CommandSettings {
        only: Some(list.iter().map(ToString::to_string).collect()),
        ..settings()
    };
    let found =
        found(&[("put", Some(CLAP)), ("log", Some(GIT)), ("-c evil", None), ("log --exec", None)]);
    let names = |settings: &CommandSettings| -> Vec<String> {
        tools(settings, &found).unwrap().into_iter().map(|tool| tool.name).collect()
    };
    assert_eq!(names(&only(&["log"])), ["vault_log"]);
    assert_eq!(names(&only(&["-c", "lo", "LOG", ""])), [""; 0]);
    assert_eq!(names(&settings()), ["vault_put", "vault_log"]);
}

#[test]
fn no_schema_takes_more_than_it_names_or_offers_what_runs_programs() {
    for tool in ALL.iter() {
        let definition: Value = tool.definition.read().unwrap();
        let schema = &definition["inputSchema"];
        assert_eq!(schema["additionalProperties"], json!(false), "{}", tool.name);
        for key in ["exec", "config", "help"] {
            assert!(schema["properties"].get(key).is_none(), "{} offers {key}", tool.name);
        }
    }
    let definition: Value = tool("vault_put").definition.read().unwrap();
    let properties = &definition["inputSchema"]["properties"];
    assert_eq!(properties["mode"]["enum"], json!(["soft", "hard"]));
    assert_eq!(properties["level"]["type"], "integer");
    assert_eq!(properties["value"]["type"], "array");
    assert_eq!(definition["inputSchema"]["required"], json!(["key"]));
}

#[test]
fn a_preset_takes_what_its_schema_names_and_keeps_to_the_list() {
    let preset = Preset {
        name: "who".to_owned(),
        args: vec!["log".to_owned(), "--fixed".to_owned()],
        description: Some("Who wrote what".to_owned()),
        input_schema: Some(
            json!({ "properties": { "author": { "type": "string" }, "all": { "type": "boolean" }, "n": { "type": "integer" }, "args": { "type": "array" } }, "required": ["author"] }),
        ),
    };
    let with = |only: Option<Vec<String>>| {
        tools(
            &CommandSettings { presets: vec![preset.clone()], only, ..settings() },
            &Found::default(),
        )
    };
    let tool = with(None).unwrap().remove(0);
    let line = |arguments: Value| tool.command_line(&object(&arguments));
    let expected = ["--base", "log", "--fixed", "--all", "-n", "3", "--author=-x", "p"];
    assert_eq!(
        line(json!({ "author": "-x", "all": true, "n": 3, "args": ["p"] })).unwrap(),
        expected
    );
    assert!(line(json!({ "author": "x", "args": ["-p"] })).is_err());
    assert!(line(json!({ "author": "x", "n": -3 })).is_err());
    assert!(line(json!({ "author": "x", "more": "y" })).is_err());
    assert!(line(json!({})).is_err());
    assert!(with(Some(vec!["log".to_owned()])).is_ok());
    assert!(with(Some(vec!["put".to_owned()])).is_err());
}

/// Values that an attacker might try.
fn values() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "\\PC{0,12}",
        "-{1,3}[a-z=]{0,8}",
        "@[a-z]{0,4}",
        Just("--".to_owned()),
        Just("-".to_owned()),
        Just("$(id)".to_owned()),
        Just("a\nb".to_owned()),
        Just("a\0b".to_owned()),
    ];
    let leaf = prop_oneof![
        word.prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let keys = [
        "key", "value", "label", "level", "mode", "color", "t", "quiet", "range", "path", "author",
        "output", "name", "q", "f", "args",
    ];
    prop::collection::vec((prop::sample::select(keys.to_vec()), values()), 0..6)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

proptest! {
    #[test]
    fn whatever_is_given_only_offered_flags_stand_before_the_double_dash(arguments in arguments()) {
        let offered = ["--label", "--level", "--mode", "--color", "-t", "--quiet", "--no-quiet", "--author", "--output", "-q", "-f"];
        for tool in ALL.iter() {
            let Ok(line) = tool.command_line(&arguments) else { continue };
            let sub = tool.name.strip_prefix("vault_").unwrap();
            prop_assert_eq!(&line[..2], &["--base".to_owned(), sub.to_owned()]);
            let words = line[2..].iter().take_while(|word| *word != "--");
            for word in words.filter(|word| word.starts_with('-') && *word != "-") {
                let name = word.split('=').next().unwrap();
                prop_assert!(offered.contains(&name), "{} in {:?}", word, line);
            }
            let at = line.iter().position(|word| word == "--").unwrap_or(line.len());
            let dashed = line.iter().skip(at + 1).any(|word| word.starts_with('-') && word != "-");
            let before = &line[at - 1];
            let switch = before.starts_with('-') && before != "-" && !before.contains('=');
            prop_assert!(at < 3 || !dashed || !switch, "{:?}", line);
            prop_assert!(line.iter().all(|word| !word.contains('\0')));
            if ["old", "dark"].contains(&sub) {
                prop_assert!(!line.contains(&"--".to_owned()));
            }
        }
    }

    #[test]
    fn any_text_is_read_to_an_end(text in prop::collection::vec(any::<u8>(), 0..2000)) {
        read(&text, &["x", "y"]);
    }

    #[test]
    fn any_text_that_looks_like_help_is_read_to_an_end(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "usage: ", "Usage:\n", "   or: ", "x ", "y ", "[", "]", "<", ">", "{", "}", "(", ")", "|", "...", "--", "-a", "--long", "=", ",",
            "  ", "\n", "\n\n", "Commands:\n", "  name  text\n", "OBJECT := { ", ":\n", "FILE", "\t", "\u{1b}[1m", "a\u{8}a", "é", "default: ", "[possible values: ",
        ]), 0..120),
    ) {
        let program = read(pieces.concat().as_bytes(), &["x", "y"]);
        let command = Command { path: vec!["y".to_owned()], summary: String::new(), help: Some(program) };
        let made = tools(&settings(), &Found { commands: vec![command], unknown: Vec::new() }).unwrap();
        for tool in made {
            let definition: Value = tool.definition.read().unwrap();
            prop_assert!(definition["inputSchema"]["properties"].is_object());
        }
    }
}

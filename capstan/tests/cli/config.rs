//! `capstan config`: where it is looked for, what is wrong with it, what it comes to.

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::stage::{column, ends_with, ok_json, read, row, run, says, with, with_project};

#[test]
fn path_names_every_place_and_whether_something_is_there() {
    let world = with_project();
    world.write_user_config("");
    world.write("more.toml", "");
    let run = world.capstan(["config", "path", "--config", "../more.toml"]);
    let ended = ends_with(run.env("CAPSTAN_CONFIG", "/nowhere.toml").run(), 0);
    world.snapshots().bind(|| {
        insta::assert_snapshot!(ended.stdout, @"
    managed  /etc/capstan/config.toml  (does not exist)
    user     [HOME]/.config/mcp/servers.json  (does not exist)
    user     [HOME]/.config/capstan/config.toml
    project  [HOME]/project/.mcp.json  (does not exist)
    project  [HOME]/project/.capstan/config.toml  (does not exist)
    flag     /nowhere.toml  (does not exist)
    flag     [HOME]/project/../more.toml
    ");
    });
    let listed = ok_json(&world, "config path");
    assert_eq!(column(&listed, "scope"), ["managed", "user", "user", "project", "project"]);
    let there: Vec<bool> = listed.as_array().unwrap().iter().map(|f| f["exists"] == true).collect();
    assert_eq!(there, [false, false, true, false, false]);
}

#[test]
fn check_shows_every_problem_in_its_place() {
    let world = with(
        "[servers.linear]\ncomand = \"npx\"\n\n[servers.fine]\ncommand = \"npx\"\ntimeout = 5\n\n\
         [permissions]\nalow = [\"*\"]\n",
    );
    let ended = ends_with(run(&world, "config check"), 3);
    assert_eq!(ended.stdout, "");
    world.snapshots().bind(|| {
        insta::assert_snapshot!(ended.stderr, @r#"
      × `servers.linear` has neither a command nor an address
       ╭─[[HOME]/.config/capstan/config.toml:1:10]
     1 │ [servers.linear]
       ·          ───┬──
       ·             ╰── servers.linear
     2 │ comand = "***"
       ╰────
      help: give it a `command` or a `url`
      × `servers.linear.comand` is not a known key
       ╭─[[HOME]/.config/capstan/config.toml:2:1]
     1 │ [servers.linear]
     2 │ comand = "***"
       · ───┬──
       ·    ╰── servers.linear.comand
     3 │ 
       ╰────
      help: did you mean `command`?
      × `servers.fine.timeout` has no unit
       ╭─[[HOME]/.config/capstan/config.toml:6:11]
     5 │ command = "npx"
     6 │ timeout = 5
       ·           ┬
       ·           ╰── servers.fine.timeout
     7 │ 
       ╰────
      help: write `timeout = "[DURATION]"`
      × `permissions.alow` is not a known key
       ╭─[[HOME]/.config/capstan/config.toml:9:1]
     8 │ [permissions]
     9 │ alow = ["*"]
       · ──┬─
       ·   ╰── permissions.alow
       ╰────
      help: did you mean `allow`?
    2 servers, 4 errors, 0 warnings
    "#);
    });
}

#[test]
fn check_tells_programs_place_key_and_remedy() {
    let world = with("[servers.linear]\ncomand = \"npx\"\n");
    let ended = ends_with(run(&world, "config check --json"), 3);
    let problems = &crate::stage::json(&ended);
    let problem = row(problems, "key", "servers.linear.comand");
    world.snapshots().bind(|| {
        insta::assert_json_snapshot!(problem, @r#"
    {
      "severity": "error",
      "message": "`servers.linear.comand` is not a known key",
      "place": {
        "file": "[HOME]/.config/capstan/config.toml",
        "line": 2,
        "column": 1,
        "start": 17,
        "len": 6
      },
      "key": "servers.linear.comand",
      "help": "did you mean `command`?",
      "server": "linear"
    }
    "#);
    });
}

#[test]
fn check_of_a_sound_file_says_so() {
    let world = with("[servers.a]\ncommand = \"npx\"\n");
    let ended = ends_with(run(&world, "config check"), 0);
    assert_eq!(ended.stderr, "1 server, 0 errors, 0 warnings\n");
    assert_eq!(ok_json(&world, "config check"), json!([]));
}

#[test]
fn what_is_not_toml_is_shown_with_line_and_column() {
    let world = with("[servers.a]\ncommand = \"x\n");
    for words in ["config check", "list", "call a__b", "tools"] {
        let ended = ends_with(run(&world, words), 3);
        says(&ended.stderr, "config.toml:2:13");
        says(&ended.stderr, "not valid TOML");
    }
    let ended = ends_with(run(&world, "list --json"), 3);
    let error = &crate::stage::json(&ended)["error"];
    assert_eq!(error["code"], "invalid_config");
    let place = &error["problems"][0]["place"];
    assert_eq!(json!([place["line"], place["column"]]), json!([2, 13]));
    says(place["file"].as_str().unwrap(), "capstan/config.toml");
}

#[test]
fn what_a_file_of_a_project_says_cannot_play_with_the_terminal() {
    let world = with_project();
    world.write_project_config("# \u{1b}]0;owned\u{7}\u{202e}\n[servers.a]\ncomand = 1\n");
    // A file that nobody has approved stops nothing.
    for (words, exit) in [("config check", 3), ("list", 0)] {
        let ended = ends_with(run(&world, words), exit);
        let sneaky = |c: char| matches!(c, '\u{1b}' | '\u{7}' | '\u{202e}');
        assert!(!ended.stderr.contains(sneaky), "{:?}", ended.stderr);
    }
}

#[test]
fn a_file_that_was_named_must_be_there_and_be_text() {
    let world = World::new();
    world.write("project/latin.toml", b"# \xfc\n");
    for (words, message) in [
        ("list --config nowhere.toml", "nowhere.toml does not exist"),
        ("list --config latin.toml", "latin.toml"),
        ("config show --config .", "project"),
    ] {
        let ended = ends_with(run(&world, words), 3);
        says(&ended.stderr, message);
    }
    let ended = world.capstan(["list"]).env("CAPSTAN_CONFIG", "nowhere.toml").run();
    ends_with(ended, 3);
}

#[test]
fn restrictions_that_are_not_in_force_are_refused_and_never_ignored() {
    let world = World::new();
    let server = "id = \"a\"\ncommand = \"a\"\ntool_allowlist = [\"x\"]\n";
    let limit = "[mcp.servers.policy]\nrate_limit = { max_calls_per_minute = 1 }\n";
    world.write("project/zeph.toml", format!("[[mcp.servers]]\n{server}{limit}"));
    let ended = ends_with(run(&world, "call a__x --config zeph:zeph.toml"), 7);
    says(&ended.stderr, "which this version does not enforce");
}

#[test]
fn show_tells_every_value_and_its_origin() {
    let world = with_project();
    world.write_user_config(
        "[servers.a]\ncommand = \"user\"\n\n[servers.b]\ncommand = \"b\"\ntimeout = \"5s\"\n",
    );
    world.write_project_config("[servers.a]\ncommand = \"project\"\n");
    ends_with(run(&world, "trust --yes"), 0);
    let run = world.capstan(["config", "show"]).env("MCP_TIMEOUT", "2000");
    let ended = ends_with(run.run(), 0);
    world.snapshots().bind(|| {
        insta::assert_snapshot!(ended.stdout, @r#"
        KEY                        VALUE        ORIGIN
        servers.a.command          "project"    [HOME]/project/.capstan/config.toml:2
        servers.a.type             "stdio"      default
        servers.a.enabled          true         default
        servers.a.required         false        default
        servers.a.always_load      false        default
        servers.a.trust            "untrusted"  default
        servers.a.protocol         "auto"       default
        servers.a.timeout          "1m"         default
        servers.a.startup_timeout  "[DURATION]"         environment
        servers.b.command          "b"          [HOME]/.config/capstan/config.toml:5
        servers.b.timeout          "[DURATION]"         [HOME]/.config/capstan/config.toml:6
        servers.b.type             "stdio"      default
        servers.b.enabled          true         default
        servers.b.required         false        default
        servers.b.always_load      false        default
        servers.b.trust            "untrusted"  default
        servers.b.protocol         "auto"       default
        servers.b.startup_timeout  "[DURATION]"         environment
        mcp.max_dynamic_servers    10           default
        mcp.login_browser          true         default
        mcp.elicitation_enabled    true         default
        mcp.elicitation_timeout    "2m"         default
        mcp.elicitation_queue      16           default
        audit.enabled              true         default
        audit.arguments            "off"        default
        audit.retention            "90d"        default
        audit.max_size             "100MiB"     default
        audit.max_total            "1GiB"       default
        audit.durable              false        default
        audit.on_full              "degrade"    default
        screen.max_answer          "10MiB"      default
        screen.max_description     "2KiB"       default
        screen.definitions         "mask"       default
        screen.instructions        "mask"       default
        screen.answers             "flag"       default
        screen.secrets             false        default
        screen.accept              []           default
        "#);
    });
    let shown = ok_json(&world, "config show");
    let command = row(&shown, "key", "servers.a.command");
    assert_eq!(command["value"], "\"project\"");
    says(command["origin"].as_str().unwrap(), ".capstan/config.toml:2");
}

#[test]
fn flags_come_before_the_project_and_that_before_the_user() {
    let world = with_project();
    let entry = |command: &str| format!("[servers.a]\ncommand = \"{command}\"\n");
    world.write_user_config(&entry("user"));
    world.write_project_config(&entry("project"));
    world.write("project/flag.toml", entry("flag"));
    world.write("project/variable.toml", entry("variable"));
    let command = |run: capstan_testkit::Capstan| -> Value {
        let ended = ends_with(run.run(), 0);
        row(&crate::stage::json(&ended), "key", "servers.a.command")["value"].clone()
    };
    let show = ["config", "show", "--json"];
    assert_eq!(command(world.capstan(show)), "\"project\"");
    let variable = || world.capstan(show).env("CAPSTAN_CONFIG", "variable.toml");
    assert_eq!(command(variable()), "\"variable\"");
    let flag = world.capstan(show.iter().chain(&["--config", "flag.toml"]));
    assert_eq!(command(flag.env("CAPSTAN_CONFIG", "variable.toml")), "\"flag\"");
}

#[test]
fn the_schema_is_the_one_in_the_documentation() {
    let ended = ends_with(run(&World::new(), "config schema"), 0);
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/config.schema.json");
    let documented: Value = serde_json::from_str(&read(path)).unwrap();
    assert_eq!(printed, documented);
}

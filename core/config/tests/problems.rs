//! Problems of a file: each is reported with its position and a remedy.

use std::fmt::Write as _;

use capstan_config::NativeFiles;
use capstan_config::{Scope, SourceFile, Surroundings, load};
use proptest::prelude::*;

/// A file in which hardly anything is right.
const BROKEN: &str = r#"
[servers.linear]
comand = "npx"
args = "-y"
timeout = 60
startup_timeout = "60000s"
trust = true
includeTools = ["a"]
env = { NODE_OPTIONS = "--require x", KEY = "${NONE}" }
sandbox = { network = false }

[servers.both]
command = "npx"
url = "https://example.com"

[servers.fine]
command = "npx"
httpUrl = "x"

[permissions]
alow = ["*"]
deny = ["[", 1]
default = "asks"

[mcp_servers.x]
command = "npx"

[access]
default = "never"

[screen]
max_answer = 10
"#;

/// The problems of a file as lines, the way a front may print them.
fn problems(text: &str) -> String {
    let file = SourceFile::new("config.toml", Scope::User, text);
    let loaded =
        load(&[file], &Surroundings { variable: &|_| None, project_dir: "/project" }, &NativeFiles);
    let mut lines = String::new();
    for problem in loaded.problems {
        let place = problem.place.map_or_else(String::new, |place| {
            assert!(place.start + place.len <= text.len(), "a place outside the file");
            format!("{}:{}", place.line, place.column)
        });
        let severity = problem.severity.as_str();
        let help = problem.help.unwrap_or_else(|| "NO REMEDY".to_owned());
        let server = problem.server.map_or_else(String::new, |server| format!(" [{server}]"));
        let _ = writeln!(lines, "{place} {severity}{server}: {}\n  {help}", problem.message);
    }
    lines
}

#[test]
fn every_problem_of_a_file_is_reported_with_its_place_and_a_remedy() {
    insta::assert_snapshot!(problems(BROKEN), @r##"
    2:10 error [linear]: `servers.linear` has neither a command nor an address
      give it a `command` or a `url`
    3:1 error [linear]: `servers.linear.comand` is not a known key
      did you mean `command`?
    4:8 error [linear]: `servers.linear.args` must be a list of strings, not a string
      write `args = ["…"]`
    5:11 error [linear]: `servers.linear.timeout` has no unit
      write `timeout = "60s"`
    6:19 warning [linear]: `servers.linear.startup_timeout` is 16h 40m; is the unit right?
      usual limits are "30s" or "2m"
    7:9 error [linear]: `servers.linear.trust` must be one of "trusted", "untrusted", "sandboxed", not true or false
      to run its tools without asking, write `permissions = { allow = ["*"] }`
    8:1 error [linear]: `servers.linear.includeTools` is not a known key
      use `expose = ["…"]`
    9:24 error [linear]: `servers.linear.env.NODE_OPTIONS`: `NODE_OPTIONS` can make the program run something else
      remove `NODE_OPTIONS`; such variables are never passed to a server
    9:45 error [linear]: `servers.linear.env.KEY` needs the environment variable `NONE`, which is not set
      set it: `export NONE=…`, or give a default: `${NONE:-default}`
    10:13 error [linear]: `servers.linear.sandbox.network` is not a known key
      did you mean `net`?
    14:7 error [both]: `servers.both` has both `command` and `url`
      keep one of them, or define two servers
    18:1 error [fine]: `servers.fine.httpUrl` is not a known key
      use `url`; Streamable HTTP is the default
    21:1 error: `permissions.alow` is not a known key
      did you mean `allow`?
    22:9 error: in `permissions.deny`, `[` is not a glob pattern
      write a pattern such as "delete_*" or "github__create_issue"
    22:14 error: `permissions.deny` contains a number, which is not a pattern
      write "…" or { pattern = "…", reason = "…" }
    23:11 error: `permissions.default` cannot be "asks"
      did you mean "ask"?
    25:2 error: `mcp_servers` is not a known key
      use `[servers.NAME]`
    29:11 error: `access.default` cannot be "never"
      use one of "allow", "deny"
    32:14 error: `screen.max_answer` has no unit
      write `max_answer = "10MiB"`
    "##);
}

#[test]
fn a_syntax_error_is_one_problem_and_nothing_of_the_file_is_used() {
    insta::assert_snapshot!(problems("[servers.a]\ncommand = \"x\n[servers.b]\n"), @r##"
    2:13 error: not valid TOML: invalid basic string, expected `"`
      the file is not used until this is fixed
    "##);
}

#[test]
fn words_of_other_programs_are_answered_with_ours() {
    insta::assert_snapshot!(problems(
        r#"
mcpServers = {}
server = {}

[mcp]
servers = []

[servers.a]
command = "x"
excludeTools = []
tool_allowlist = []
enabled_tools = []
trust_level = "trusted"
startup_timeout_sec = 5
alwaysLoad = true
name = "a"
"#
    ), @r##"
    2:1 error: `mcpServers` is not a known key
      use `[servers.NAME]`
    3:1 error: `server` is not a known key
      use `[servers.NAME]`
    6:1 error: `mcp.servers` is not a known key
      use `[servers.NAME]`
    10:1 error [a]: `servers.a.excludeTools` is not a known key
      use `hide = ["…"]`
    11:1 error [a]: `servers.a.tool_allowlist` is not a known key
      use `expose = ["…"]`
    12:1 error [a]: `servers.a.enabled_tools` is not a known key
      use `expose = ["…"]`
    13:1 error [a]: `servers.a.trust_level` is not a known key
      use `trust`
    14:1 error [a]: `servers.a.startup_timeout_sec` is not a known key
      use `startup_timeout = "30s"`
    15:1 error [a]: `servers.a.alwaysLoad` is not a known key
      use `always_load`
    16:1 error [a]: `servers.a.name` is not a known key
      the server's name is the NAME in `[servers.NAME]`
    "##);
}

proptest! {
    #[test]
    fn any_text_is_read_or_reported(text in ".{0,200}") {
        problems(&text);
    }

    #[test]
    fn any_value_under_any_key_is_read_or_reported(
        table in prop::sample::select(vec!["servers.x", "permissions", "tools", "mcp", "screen"]),
        key in prop::sample::select(vec![
            "type", "command", "url", "args", "env", "timeout", "idle_timeout", "trust", "expose",
            "permissions", "effect", "deny", "default", "policy", "allowed_commands", "max_answer",
        ]),
        value in prop::sample::select(vec![
            "1", "-1", "1.5", "true", "\"\"", "\"ü${\"", "\"${A:-b}\"", "[]", "[[1]]", "[{}]",
            "{}", "{ a = 1 }", "2030-01-01", "{ deny = [{ pattern = 1 }] }",
        ]),
    ) {
        problems(&format!("[{table}]\n{key} = {value}\n"));
    }
}

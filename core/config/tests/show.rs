//! `config show` says where every value comes from, and shows no secret.

use capstan_config::NativeFiles;
use capstan_config::{Scope, Shown, SourceFile, Surroundings, load, show};

const SECRET: &str = "hunter2";

fn variable(name: &str) -> Option<String> {
    match name {
        "PW" => Some(SECRET.to_owned()),
        "MCP_TOOL_TIMEOUT" => Some("9000".to_owned()),
        _ => None,
    }
}

fn shown(files: &[(Scope, &str, &str)]) -> Vec<Shown> {
    let files: Vec<SourceFile> =
        files.iter().map(|(scope, path, text)| SourceFile::new(*path, *scope, *text)).collect();
    show(&load(
        &files,
        &Surroundings { variable: &variable, project_dir: "/project" },
        &NativeFiles,
    ))
}

fn lines(shown: &[Shown]) -> String {
    let lines = shown.iter().map(|s| format!("{} = {} ({})", s.key, s.value, s.origin));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
#[expect(clippy::too_many_lines, reason = "one line for each value")]
fn every_value_is_shown_with_its_origin() {
    let user = r#"
[servers.a]
command = "${CAPSTAN_PROJECT_DIR}/run"
args = ["-y", "--token", "abc", "${PW}"]
env = { KEY = "plain" }
timeout = "5s"

[servers.a.permissions]
allow = ["list_*", { pattern = "get_*", reason = "harmless" }]

[servers."b c"]
url = "https://me:pw@host/mcp?key=abc&x=1"
headers = { Authorization = "Bearer ${PW}" }

[permissions]
deny = ["x"]

[tools]
max_tool_calls_per_session = 9
"#;
    let project = "[permissions]\ndeny = [\"y\"]\n[tools]\nmax_tool_calls_per_session = 5\n";
    let shown =
        shown(&[(Scope::User, "user.toml", user), (Scope::Project, "project.toml", project)]);
    insta::assert_snapshot!(lines(&shown), @r##"
    servers.a.command = "/project/run" (user.toml:3)
    servers.a.args = ["-y", "--token", "***", "${PW}"] (user.toml:4)
    servers.a.env.KEY = "***" (user.toml:5)
    servers.a.timeout = "5s" (user.toml:6)
    servers.a.permissions.allow = ["list_*", { pattern = "get_*", reason = "harmless" }] (user.toml:9)
    servers.a.type = "stdio" (default)
    servers.a.enabled = true (default)
    servers.a.required = false (default)
    servers.a.always_load = false (default)
    servers.a.trust = "untrusted" (default)
    servers.a.protocol = "auto" (default)
    servers.a.startup_timeout = "30s" (default)
    servers."b c".url = "https://***@host/mcp?key=***&x=1" (user.toml:12)
    servers."b c".headers.Authorization = "Bearer ${PW}" (user.toml:13)
    servers."b c".type = "http" (default)
    servers."b c".enabled = true (default)
    servers."b c".required = false (default)
    servers."b c".always_load = false (default)
    servers."b c".trust = "untrusted" (default)
    servers."b c".protocol = "auto" (default)
    servers."b c".timeout = "9s" (environment)
    servers."b c".startup_timeout = "30s" (default)
    permissions.deny = "y" (project.toml:2)
    permissions.deny = "x" (user.toml:16)
    tools.max_tool_calls_per_session = 5 (project.toml:4)
    mcp.max_dynamic_servers = 10 (default)
    mcp.login_browser = true (default)
    mcp.elicitation_enabled = true (default)
    mcp.elicitation_timeout = "2m" (default)
    mcp.elicitation_queue = 16 (default)
    audit.enabled = true (default)
    audit.arguments = "off" (default)
    audit.retention = "90d" (default)
    audit.max_size = "100MiB" (default)
    audit.max_total = "1GiB" (default)
    audit.durable = false (default)
    audit.on_full = "degrade" (default)
    screen.max_answer = "10MiB" (default)
    screen.max_description = "2KiB" (default)
    screen.definitions = "mask" (default)
    screen.instructions = "mask" (default)
    screen.answers = "flag" (default)
    screen.secrets = false (default)
    screen.accept = [] (default)
    "##);
}

#[test]
fn the_value_of_a_variable_is_never_shown_wherever_it_stands() {
    let text = r#"
[servers.a]
command = "${PW}"
args = ["${PW}", "x${PW}y", "--flag=${PW}"]
env = { A = "${PW}", PLAIN = "hunter2" }
cwd = "${PW}"
description = "${PW}"
roots = ["${PW}"]
expose = ["${PW}"]
[servers.env]
url = "https://${PW}.example.com/${PW}"
headers = { A = "${PW}" }
[servers.broken]
command = "${PW}"
unknown = "${PW}"
trust = "${PW}"
hide = ["[${PW}"]
permissions = { deny = ["[${PW}"] }
[permissions]
deny = ["${PW}", { pattern = "${PW}", reason = "${PW}" }, "[${PW}"]
default = "${PW}"
[audit]
path = "${PW}"
[mcp]
allowed_commands = ["${PW}"]
"#;
    let file = SourceFile::new("f", Scope::User, text);
    let loaded =
        load(&[file], &Surroundings { variable: &variable, project_dir: "" }, &NativeFiles);
    assert!(!format!("{:?}", loaded.problems).contains(SECRET), "{:?}", loaded.problems);
    let shown = lines(&show(&loaded));
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(shown.contains("servers.env.url = \"https://${PW}.example.com/${PW}\""), "{shown}");
}

/// Issue "First hour" 9: a value is masked if it may be a secret, and only then.
#[test]
fn settings_in_an_environment_are_shown_and_secrets_are_not() {
    let text = r#"
[servers.a]
command = "x"
args = ["--token", "${PW}", "--key=hunter2"]
env = { DEBUG = "1", DATA = "/srv/data", TOKEN = "${PW}", MIX = "hunter2${PW}", API_KEY = "1", PLAIN = "hunter2" }
"#;
    let shown = lines(&shown(&[(Scope::User, "f", text)]));
    assert!(!shown.contains(SECRET), "{shown}");
    for line in [
        "servers.a.args = [\"--token\", \"${PW}\", \"--key=***\"]",
        "servers.a.env.DEBUG = \"1\"",
        "servers.a.env.DATA = \"/srv/data\"",
        "servers.a.env.TOKEN = \"${PW}\"",
        "servers.a.env.MIX = \"***\"",
        "servers.a.env.API_KEY = \"***\"",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
}

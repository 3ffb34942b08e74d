//! `config show` says where every value comes from, and shows no secret.

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
    let files: Vec<SourceFile> = files
        .iter()
        .map(|(scope, path, text)| SourceFile {
            path: (*path).to_owned(),
            scope: *scope,
            text: (*text).to_owned(),
            approved: true,
        })
        .collect();
    show(&load(&files, &Surroundings { variable: &variable, project_dir: "/project" }))
}

fn lines(shown: &[Shown]) -> String {
    let lines = shown.iter().map(|s| format!("{} = {} ({})", s.key, s.value, s.origin));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
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
    insta::assert_snapshot!(lines(&shown), @r"");
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
"#;
    let shown = lines(&shown(&[(Scope::User, "f", text)]));
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(shown.contains("servers.env.url = \"https://${PW}.example.com/${PW}\""), "{shown}");
}

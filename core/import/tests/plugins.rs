//! Servers that plugins and bundles bring along: what they are called, where they are, what they
//! are told, and what is refused.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use capstan_config::{
    Dialect, Kind, Loaded, Plugin, Program, Scope, SourceFile, Surroundings, load, show,
};
use capstan_import::AllDialects;
use capstan_import::packages;

/// Secrets that no output may contain.
const CANARY: &str = "canary-variable";

fn variable(name: &str) -> Option<String> {
    let value = match name {
        "HOME" => "/home/me",
        "XDG_DOWNLOAD_DIR" => "/downloads",
        "CAPSTAN_ACME__PASSWORD" | "CAPSTAN_FILE_ORGANIZER__API_KEY" => CANARY,
        _ => return None,
    };
    Some(value.to_owned())
}

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn load_with(file: SourceFile, variable: &dyn Fn(&str) -> Option<String>) -> Loaded {
    load(&[file], &Surroundings { variable, project_dir: "/project" }, &AllDialects)
}

fn of(path: &str, text: &str, plugin: Plugin) -> SourceFile {
    SourceFile { plugin: Some(plugin), ..SourceFile::new(path, Scope::Flag, text) }
}

fn plugin(text: &str) -> SourceFile {
    let (plugin, _) = packages::plugin("/plugins/acme", text);
    of("/plugins/acme/.claude-plugin/plugin.json", text, plugin)
}

fn servers(text: &str) -> SourceFile {
    let (plugin, _) = packages::plugin("/plugins/acme", "{\"name\": \"acme\"}");
    of("/plugins/acme/.mcp.json", text, plugin.servers())
}

fn bundle(text: &str) -> SourceFile {
    of("/b.mcpb/manifest.json", text, packages::bundle("/cache/1", text))
}

/// The program of the only server that can be used.
fn program(loaded: &Loaded) -> &Program {
    let server = loaded.config.servers.values().find_map(|entry| entry.usable());
    match server.map(|server| &server.kind) {
        Some(Kind::Stdio(program)) => Some(program),
        _ => None,
    }
    .unwrap()
}

/// Everything that people are told about a configuration.
fn told(loaded: &Loaded) -> String {
    let mut text = String::new();
    for entry in loaded.config.servers.values() {
        let target = match &entry.status {
            Ok(server) => format!("{} {}", server.kind.as_str(), server.target),
            Err(problem) => format!("broken: {problem}"),
        };
        let _ = writeln!(text, "{} [{}] {target}", entry.name, entry.display);
    }
    text.push('\n');
    for problem in &loaded.problems {
        let help = problem.help.as_deref().unwrap_or("NO REMEDY");
        let _ = writeln!(text, "{}: {problem}\n    {help}", problem.severity.as_str());
    }
    text.push('\n');
    for shown in show(loaded).iter().filter(|shown| shown.key.starts_with("servers.")) {
        let _ = writeln!(text, "{} = {} ({})", shown.key, shown.value, shown.origin);
    }
    text
}

#[test]
fn every_form_is_read_with_its_names_places_and_settings() {
    let (one, two, three) =
        (fixture("plugin.json"), fixture("servers.json"), fixture("bundle.json"));
    for (name, file) in
        [("plugin", plugin(&one)), ("servers", servers(&two)), ("bundle", bundle(&three))]
    {
        let loaded = load_with(file, &variable);
        let told = told(&loaded);
        assert!(!told.contains(CANARY), "{name} shows a secret:\n{told}");
        assert!(!format!("{loaded:?}").contains(CANARY), "{name} shows a secret when debugged");
        insta::assert_snapshot!(name, told);
    }
}

#[test]
fn a_bundles_server_is_started_in_its_folder_with_the_settings_put_in() {
    let loaded = load_with(bundle(&fixture("bundle.json")), &variable);
    let program = program(&loaded);
    assert_eq!((program.command.as_str(), program.cwd.as_deref()), ("node", Some("/cache/1")));
    assert_eq!(
        program.args,
        [
            "/cache/1/server/index.js",
            "/home/me/a",
            "/home/me/Documents",
            "--size=10",
            "--home",
            "/home/me/x",
            "/home/me/Desktop",
            "/downloads",
            "${PATH}",
        ]
    );
    let env: Vec<(&str, &str)> =
        program.env.iter().map(|(name, value)| (name.as_str(), value.reveal().as_str())).collect();
    assert_eq!(env, [("API_KEY", CANARY), ("GREETING", "hello "), ("SYSTEM", "linux")]);
    let entry = loaded.config.servers.values().next().unwrap();
    assert_eq!(entry.secrets.iter().map(|s| s.reveal().as_str()).collect::<Vec<_>>(), [CANARY]);
}

#[test]
fn what_the_user_says_goes_before_the_default_and_is_used_as_it_is() {
    let said = |name: &str| match name {
        "CAPSTAN_FILE_ORGANIZER__FOLDERS" => Some("/one\n/two ${HOME}".to_owned()),
        "CAPSTAN_FILE_ORGANIZER__NICKNAME" => Some("${__dirname}".to_owned()),
        name => variable(name),
    };
    let loaded = load_with(bundle(&fixture("bundle.json")), &said);
    let args = &program(&loaded).args;
    assert_eq!(args[1..5], ["/one", "/two ${HOME}", "--size=10", "${__dirname}"]);
}

#[test]
fn a_setting_that_is_missing_or_wrong_fails_its_server_and_names_the_variable() {
    let check = |name: &'static str, value: Option<&'static str>, says: &str| {
        let said = |asked: &str| {
            if asked == name { value.map(str::to_owned) } else { variable(asked) }
        };
        let loaded = load_with(bundle(&fixture("bundle.json")), &said);
        assert_eq!(loaded.fatal().count(), 0, "one server must not fail the others");
        let entry = loaded.config.servers.values().next().unwrap();
        let problem = entry.status.as_ref().unwrap_err();
        let text = format!("{problem} {}", problem.help.as_ref().unwrap());
        for piece in [name, "/b.mcpb/manifest.json:", "server.mcp_config", says] {
            assert!(text.contains(piece), "{piece:?} is not in {text}");
        }
        assert!(value.is_none_or(|value| value.is_empty() || !text.contains(value)), "{text}");
    };
    check("CAPSTAN_FILE_ORGANIZER__API_KEY", None, "is not set");
    check("CAPSTAN_FILE_ORGANIZER__API_KEY", Some(""), "is not set");
    check("CAPSTAN_FILE_ORGANIZER__SIZE", Some("987654"), "is above 100");
    check("CAPSTAN_FILE_ORGANIZER__SIZE", Some("lots-of-it"), "is not a number");
}

#[test]
fn a_path_of_the_bundle_is_meant_from_its_folder() {
    for (command, expected) in [
        ("server/tool", "/cache/1/server/tool"),
        ("./tool", "/cache/1/./tool"),
        ("${__dirname}/tool", "/cache/1/tool"),
        ("/usr/bin/env", "/usr/bin/env"),
        ("node", "node"),
    ] {
        let text = format!(
            r#"{{ "manifest_version": "0.2", "name": "b", "server": {{ "type": "binary",
            "entry_point": "tool", "mcp_config": {{ "command": "{command}" }} }} }}"#
        );
        assert_eq!(program(&load_with(bundle(&text), &variable)).command, expected);
    }
}

#[test]
fn a_uv_bundle_needs_no_command() {
    let text = r#"{ "manifest_version": "0.4", "name": "b",
        "server": { "type": "uv", "entry_point": "src/server.py" } }"#;
    let loaded = load_with(bundle(text), &variable);
    assert_eq!(loaded.problems, []);
    let program = program(&loaded);
    assert_eq!(program.command, "uv");
    assert_eq!(program.args, ["run", "--directory", "/cache/1", "src/server.py"]);
}

#[test]
fn a_bundle_gets_no_variable_of_ours_and_hijacks_nothing() {
    let server = |config: &str| {
        format!(
            r#"{{ "manifest_version": "0.2", "name": "b", "server": {{ "type": "node",
            "entry_point": "i.js", "mcp_config": {config} }} }}"#
        )
    };
    let said = |name: &str| (name == "TOKEN").then(|| CANARY.to_owned());
    let text = server(r#"{ "command": "node", "args": ["${TOKEN}", "${TOKEN:-x}"] }"#);
    assert_eq!(
        program(&load_with(bundle(&text), &said)).args,
        ["${TOKEN}", "${TOKEN:-x}"],
        "what it wants to know it must ask for"
    );
    let text = server(r#"{ "command": "node", "env": { "LD_PRELOAD": "${__dirname}/x.so" } }"#);
    let loaded = load_with(bundle(&text), &variable);
    assert!(loaded.config.servers.values().all(|entry| entry.status.is_err()));
}

#[test]
fn a_bad_manifest_is_refused_with_its_place_its_key_and_a_remedy() {
    let server = |kind: &str, start: &str, more: &str| {
        format!(
            "{{ \"manifest_version\": \"0.2\", \"name\": \"b\",\n \"server\": {{\n \"type\": {kind},\n \
             \"entry_point\": {start},\n \"mcp_config\": {{ \"command\": \"x\" }} }}{more} }}"
        )
    };
    for (text, line, key) in [
        ("{".to_owned(), 1, ""),
        ("{ \"name\": \"b\" }".to_owned(), 1, "server"),
        ("{ \"name\": \"b\",\n \"server\": 1 }".to_owned(), 2, "server"),
        ("{ \"server\": { \"type\": \"node\" } }".to_owned(), 1, "name"),
        (
            "{ \"name\": \"b\",\n\"server\": { \"type\": \"node\", \"entry_point\": \"x\" } }"
                .to_owned(),
            2,
            "server.mcp_config",
        ),
        (server("\"ruby\"", "\"x\"", ""), 3, "server.type"),
        (server("3", "\"x\"", ""), 3, "server.type"),
        (server("\"node\"", "\"/etc/x\"", ""), 4, "server.entry_point"),
        (server("\"node\"", "\"../x\"", ""), 4, "server.entry_point"),
        (
            server("\"node\"", "\"x\"", ",\n\"compatibility\": { \"platforms\": [\"win32\"] }"),
            6,
            "compatibility.platforms",
        ),
        (
            server("\"node\"", "\"x\"", ",\n\"user_config\": { \"k\": { \"type\": \"color\" } }"),
            6,
            "user_config.k",
        ),
        (server("\"node\"", "\"x\"", ",\n\"user_config\": []"), 6, "user_config"),
    ] {
        let loaded = load_with(bundle(&text), &variable);
        let found = loaded.problems.iter().find(|problem| {
            let at = problem.place.as_ref().map(|place| place.line) == Some(line);
            at && problem.key.as_deref().unwrap_or_default() == key && problem.help.is_some()
        });
        assert!(found.is_some(), "{text}: {:#?}", loaded.problems);
    }
    for (text, line, key) in [
        ("{ \"mcpServers\": {} }", 1, "name"),
        ("{ \"name\": \"\",\n \"mcpServers\": {} }", 1, "name"),
        ("{ \"name\": \"p\",\n \"mcpServers\": \"../x.json\" }", 2, "mcpServers"),
        ("{ \"name\": \"p\",\n \"mcpServers\": [\"a.json\", \"/x.json\"] }", 2, "mcpServers"),
        ("{ \"name\": \"p\",\n \"mcpServers\": \"x.mcpb\" }", 2, "mcpServers"),
        ("{ \"name\": \"p\",\n \"mcpServers\": 1 }", 2, "mcpServers"),
    ] {
        let loaded = load_with(plugin(text), &variable);
        let found = loaded.fatal().find(|problem| {
            let at = problem.place.as_ref().map(|place| place.line) == Some(line);
            at && problem.key.as_deref() == Some(key) && problem.help.is_some()
        });
        assert!(found.is_some(), "{text}: {:#?}", loaded.problems);
    }
}

#[test]
fn what_says_that_it_is_a_bundle_without_being_one_is_refused() {
    let mut file = SourceFile::new("manifest.json", Scope::Flag, fixture("bundle.json"));
    file.dialect = Some(Dialect::Mcpb);
    assert_eq!(load_with(file, &variable).fatal().count(), 1);
}

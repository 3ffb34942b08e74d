//! Command-line programs: their subcommands, and tools that a file describes.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::panic, reason = "a test that cannot have what it stands on must fail")]

use capstan_config::NativeFiles;
use capstan_config::{CliProgram, Kind, Loaded, Scope, SourceFile, Surroundings, load};
use serde_json::json;

fn load_files(files: &[(Scope, &str)]) -> Loaded {
    let file = |(at, (scope, text)): (usize, &(Scope, &str))| {
        SourceFile::new(format!("{at}.toml"), *scope, *text)
    };
    let files: Vec<SourceFile> = files.iter().enumerate().map(file).collect();
    load(&files, &Surroundings { variable: &|_| None, project_dir: "/project" }, &NativeFiles)
}

#[track_caller]
fn program(loaded: &Loaded) -> &CliProgram {
    assert_eq!(loaded.problems, []);
    let entry = loaded.config.servers.values().next().unwrap();
    let kind = &entry.status.as_ref().unwrap().kind;
    let Kind::Cli(program) = kind else { panic!("{kind:?}") };
    program
}

#[test]
fn tools_are_described_by_hand_with_their_schemas() {
    let text = "
        [servers.k]
        type = \"cli\"
        command = \"kubectl\"

        [[servers.k.tools]]
        name = \"pods\"
        args = [\"get\", \"pods\"]
        description = \"Lists pods\"

        [servers.k.tools.input_schema]
        required = [\"namespace\"]
        properties = { namespace = { type = \"string\" }, limit = { type = \"integer\", maximum = 5 } }

        [[servers.k.tools]]
        name = \"version\"
    ";
    let loaded = load_files(&[(Scope::User, text)]);
    let [pods, version] = program(&loaded).presets.as_slice() else { panic!() };
    assert_eq!(
        (pods.name.as_str(), pods.args.as_slice()),
        ("pods", &["get".to_owned(), "pods".to_owned()][..])
    );
    assert_eq!(pods.description.as_deref(), Some("Lists pods"));
    let schema = json!({
        "required": ["namespace"],
        "properties": { "namespace": { "type": "string" }, "limit": { "type": "integer", "maximum": 5 } },
    });
    assert_eq!(pods.input_schema, Some(schema));
    assert_eq!((version.args.len(), &version.input_schema), (0, &None));
}

#[test]
fn a_project_that_replaces_a_program_does_not_widen_its_subcommands() {
    let user = "[servers.k]\ntype = \"cli\"\ncommand = \"kubectl\"\ncli_only = [\"get\", \"logs\"]";
    for (keys, expected) in [
        ("", &["get", "logs"][..]),
        ("cli_only = [\"get\", \"delete\"]", &["get"]),
        ("cli_only = [\"delete\"]", &[]),
    ] {
        let project = format!("[servers.k]\ntype = \"cli\"\ncommand = \"kubectl\"\n{keys}");
        let loaded = load_files(&[(Scope::User, user), (Scope::Project, &project)]);
        assert_eq!(program(&loaded).only.as_deref().unwrap(), expected, "{keys}");
    }
}

#[test]
fn what_is_no_subcommand_and_no_tool_is_refused() {
    for keys in [
        "cli_only = [\"--exec\"]",
        "cli_only = [\"get --all\"]",
        "cli_only = [\" \"]",
        "tools = [1]",
        "tools = [{}]",
        "tools = [{ name = \"\" }]",
        "tools = [{ name = \"a/b\" }]",
        "tools = [{ name = \"a\", input_schema = \"string\" }]",
        "tools = [{ name = \"a\", args = [\"\\u0000\"] }]",
        "tools = [{ name = \"a\", more = 1 }]",
        "tools = [{ name = \"a\" }, { name = \"a\" }]",
        "tools = { a = 1 }",
    ] {
        let text = format!("[servers.k]\ntype = \"cli\"\ncommand = \"kubectl\"\n{keys}");
        let loaded = load_files(&[(Scope::User, &text)]);
        let entry = loaded.config.servers.values().next().unwrap();
        assert!(entry.status.is_err(), "{keys} was accepted");
        assert_eq!(loaded.problems.len(), 1, "{keys}: {:?}", loaded.problems);
    }
    let stdio = "[servers.k]\ncommand = \"kubectl\"\ntools = [{ name = \"a\" }]";
    assert_eq!(load_files(&[(Scope::User, stdio)]).problems.len(), 1);
}

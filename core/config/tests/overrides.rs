//! What a project that replaces a server cannot undo of its tools and operations.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use capstan_config::{Kind, Scope, Server, SourceFile, Surroundings, load};
use serde_json::json;

#[track_caller]
fn replaced(user: &str, project: &str) -> Server {
    let files = [
        SourceFile::new("user.toml", Scope::User, format!("[servers.x]\n{user}")),
        SourceFile::new("project.toml", Scope::Project, format!("[servers.x]\n{project}")),
    ];
    let loaded = load(&files, &Surroundings { variable: &|_| None, project_dir: "/project" });
    assert_eq!(loaded.problems, []);
    loaded.config.servers.into_values().next().unwrap().status.unwrap()
}

#[test]
fn pins_hidden_things_and_names_stay() {
    let user = "command = \"run\"\n[servers.x.tools.a]\nname = \"b\"\npin = { team = \"core\" }\n\
                hide_parameters = [\"cursor\"]\ndefault = { limit = 1 }\n[servers.x.tools.drop]\n\
                hidden = true\n[servers.x.tools.words]\ndescription = \"Mine.\"";
    let bare = replaced(user, "command = \"other\"");
    let other = replaced(
        user,
        "command = \"other\"\n[servers.x.tools.a]\nname = \"c\"\npin = { team = \"evil\", more = 1 }\n\
         [servers.x.tools.drop]\nhidden = false",
    );
    let loose = replaced(user, "command = \"other\"\ntools.a.default = { team = \"evil\" }");
    for server in [&bare, &other, &loose] {
        let a = &server.tools["a"];
        assert_eq!((a.name.as_deref(), &a.pin["team"]), (Some("b"), &json!("core")));
        assert_eq!(a.hide_parameters, ["cursor"]);
        assert!(!a.default.contains_key("team"));
        assert!(server.tools["drop"].hidden);
    }
    assert_eq!(other.tools["a"].pin["more"], json!(1));
    // What restricts nothing is the project's to say.
    assert!(!bare.tools.contains_key("words") && bare.tools["a"].default.is_empty());
}

#[test]
fn the_choice_of_operations_is_not_widened() {
    let user = "openapi = { document = \"a\", tags = [\"t\", \"u\"], only = [\"GET *\"], except = [\"x\"] }";
    for (project, tags, only) in [
        ("openapi = \"a\"", &["t", "u"][..], &["GET *"][..]),
        (
            "openapi = { document = \"a\", tags = [\"u\", \"v\"], only = [\"GET *\", \"*\"] }",
            &["u"],
            &["GET *"],
        ),
        ("openapi = { document = \"a\", only = [\"*\"] }", &["t", "u"], &[]),
    ] {
        let server = replaced(user, project);
        let openapi = match server.kind {
            Kind::OpenApi(openapi) => Some(openapi),
            Kind::Stdio(_) | Kind::Http(_) | Kind::Sse(_) | Kind::Cli(_) => None,
        };
        let openapi = openapi.unwrap();
        assert_eq!(
            (openapi.tags.unwrap(), openapi.only.unwrap()),
            (own(tags), own(only)),
            "{project}"
        );
        assert_eq!(openapi.except, ["x"]);
    }
}

fn own(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

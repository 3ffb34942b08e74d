//! Restrictions of tools and operations that a project cannot undo when it replaces a server.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use capstan_config::NativeFiles;
use capstan_config::{Kind, Scope, Server, SourceFile, Surroundings, load};
use serde_json::json;

#[track_caller]
fn replaced(user: &str, project: &str) -> Server {
    let files = [
        SourceFile::new("user.toml", Scope::User, format!("[servers.x]\n{user}")),
        SourceFile::new("project.toml", Scope::Project, format!("[servers.x]\n{project}")),
    ];
    let loaded =
        load(&files, &Surroundings { variable: &|_| None, project_dir: "/project" }, &NativeFiles);
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
    // The project may set keys that restrict nothing.
    assert!(!bare.tools.contains_key("words") && bare.tools["a"].default.is_empty());
}

#[test]
fn what_the_user_hides_the_project_does_not_supply() {
    let tool = |said: &str| format!("command = \"run\"\n[servers.x.tools.a]\n{said}");
    let project = tool("pin = { team = \"theirs\", other = 1 }\ndefault = { cursor = 1 }");
    for (user, pin, default) in [
        ("hide_parameters = [\"team\", \"cursor\"]", json!({"other": 1}), json!({})),
        (
            "hide_parameters = [\"team\", \"cursor\"]\npin = { team = 2 }\ndefault = { cursor = 3 }",
            json!({"other": 1, "team": 2}),
            json!({"cursor": 3}),
        ),
        (
            "hide_parameters = [\"team\"]\ndefault = { team = 2 }",
            json!({"other": 1}),
            json!({"cursor": 1, "team": 2}),
        ),
        (
            "hide_parameters = [\"else\"]",
            json!({"team": "theirs", "other": 1}),
            json!({"cursor": 1}),
        ),
    ] {
        let server = replaced(&tool(user), &project);
        let a = &server.tools["a"];
        assert_eq!((json!(a.pin), json!(a.default)), (pin, default), "{user}");
    }
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

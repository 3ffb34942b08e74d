//! Skills, pages and a method of an extension: servers and clients made with `FastMCP`, through both
//! kinds of endpoints.

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::remote::{Remote, beside};
use crate::stdio::entry;
use crate::{ALLOW, LIMIT, installed};

const SKILL: &str =
    "---\nname: pdf\ndescription: Reads PDF files.\n---\nSee references/FORMS.md.\n";

/// A gateway in front of two servers with the same URIs.
fn start(world: &World, rules: &str) -> Remote {
    let mut config = rules.to_owned();
    let script = beside("extensions_server.py").display().to_string();
    for name in ["a", "b"] {
        let skills = format!("skills/{name}");
        let file = world.write(format!("{skills}/pdf/SKILL.md"), SKILL);
        world.write(format!("{skills}/pdf/references/FORMS.md"), format!("forms of {name}"));
        let folder = file.ancestors().nth(2).unwrap().display().to_string();
        config += &entry(name, &[&installed("python"), &script, name, &folder], "");
    }
    world.write_user_config(&config);
    let mut command = world.capstan(["serve", "--http", ":0"]).into_command();
    Remote::start(world, &mut command)
}

/// A client's view of an endpoint.
#[track_caller]
fn seen(world: &World, url: &str) -> Value {
    let script = beside("extensions_peer.py").display().to_string();
    let run = world.program(installed("python"), [script.as_str(), url, "method"]);
    serde_json::from_str(&run.limit(LIMIT).run().ok()).unwrap()
}

/// The texts of all skills and pages, sorted.
fn texts(seen: &Value) -> Vec<String> {
    let all = ["skills", "pages"].into_iter().flat_map(|key| seen[key].as_array().unwrap());
    let mut texts: Vec<String> = all.map(|row| row[2].as_str().unwrap().to_owned()).collect();
    texts.sort();
    texts
}

#[test]
fn skills_and_pages_of_equal_uris_are_read_at_their_servers_through_both_endpoints() {
    let world = World::new();
    let gateway = start(&world, ALLOW);
    for server in ["a", "b"] {
        let url = gateway.url.replace("/mcp", &format!("/servers/{server}/mcp"));
        let seen = seen(&world, &url);
        let (page, forms) = (format!("page of {server}"), format!("forms of {server}"));
        assert_eq!(texts(&seen), [SKILL, &forms, &page]);
        assert_eq!(seen["skills"][0][0], "skill://pdf/SKILL.md");
        assert_eq!(seen["pages"], json!([["get_time", "ui://clock/app.html", page]]));
        assert_eq!(seen["method"], format!("x of {server}"));
    }
    let seen = seen(&world, &gateway.url);
    let expected = [SKILL, SKILL, "forms of a", "forms of b", "page of a", "page of b"];
    assert_eq!(texts(&seen), expected, "{seen}");
    for row in seen["pages"].as_array().unwrap() {
        let server = row[0].as_str().unwrap().strip_suffix("__get_time").unwrap();
        assert_eq!(row[2], format!("page of {server}"));
        assert!(row[1].as_str().unwrap().starts_with("ui://"), "{row}");
    }
    assert!(seen["method"].as_str().unwrap().contains("unknown method"), "{seen}");
}

#[test]
fn a_rule_that_names_a_method_denies_it_at_a_real_server() {
    let world = World::new();
    let rules = "[permissions]\nallow = [\"*\"]\ndeny = [\"a__method:example/*\"]\n";
    let gateway = start(&world, rules);
    for (server, expected) in [("a", "unknown method"), ("b", "x of b")] {
        let url = gateway.url.replace("/mcp", &format!("/servers/{server}/mcp"));
        let seen = seen(&world, &url);
        assert!(seen["method"].as_str().unwrap().contains(expected), "{server}: {seen}");
    }
}

//! `capstan search` and `capstan tools --tokens`.

use capstan_testkit::World;
use serde_json::Value;

use crate::stage::{column, ends_with, failure, fixture, ok_json, row, run, says, with};

fn ids(world: &World, words: &str) -> Vec<String> {
    column(&ok_json(world, words), "id")
}

#[test]
fn tools_are_found_by_what_they_do() {
    let world = with(&fixture("one", &[]));
    let found = ok_json(&world, "search sum of two numbers");
    let first = &found[0];
    assert_eq!(first["id"], "one__add");
    for key in ["server", "name", "description"] {
        assert!(first[key].is_string(), "{key}: {first}");
    }
    let score = first["score"].as_f64().unwrap();
    assert!((0.3..=1.0).contains(&score), "{first}");
    let shown = ends_with(run(&world, "search sum of two numbers -k 1"), 0).stdout;
    says(&shown, "TOOL");
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

#[test]
fn a_tool_that_rules_forbid_is_not_found() {
    let rules = "\n[permissions]\ndeny = [\"one__add\"]\n";
    let world = with(&(fixture("one", &[]) + rules));
    let found = ids(&world, "search adds two numbers -k 100");
    assert!(!found.contains(&"one__add".to_owned()), "{found:?}");
    let free = with(&fixture("one", &[]));
    assert_eq!(ids(&free, "search adds two numbers -k 1"), ["one__add"]);
}

#[test]
fn a_tool_that_two_servers_have_is_shown_once_with_its_alternative() {
    let world = with(&(fixture("alpha", &[]) + &fixture("beta", &[])));
    let found = ok_json(&world, "search adds two numbers");
    let add = row(&found, "id", "alpha__add");
    assert_eq!(add["alternatives"], serde_json::json!(["beta__add"]));
    assert!(!column(&found, "id").contains(&"beta__add".to_owned()), "{found}");
    assert_eq!(ids(&world, "search --server beta adds two numbers -k 1"), ["beta__add"]);
}

#[test]
fn a_search_can_end_without_a_tool() {
    let world = with(&fixture("one", &[]));
    let none = ends_with(run(&world, "search xyzzy plugh"), 0);
    says(&none.stderr, "tools fits");
    assert_eq!(ok_json(&world, "search xyzzy plugh"), Value::Array(Vec::new()));
    let (code, message, _) = failure(&run(&world, "search --json --server nosuch add"));
    assert_eq!(code, "not_found", "{message}");
    for words in ["search", "search -k 0 add", "search -k 101 add"] {
        ends_with(run(&world, words), 2);
    }
}

#[test]
fn the_settings_of_the_configuration_apply() {
    let world = with(&(fixture("one", &[]) + "\n[search]\ntop_k = 2\nmin_similarity = 0.0\n"));
    assert_eq!(ids(&world, "search adds two numbers").len(), 2);
    let strict = with(&(fixture("one", &[]) + "\n[search]\nmin_similarity = 1.0\n"));
    assert_eq!(ids(&strict, "search adds two numbers"), [""; 0]);
    for wrong in ["top_k = -1", "min_similarity = 2", "min_similarity = \"x\"", "nosuch = 1"] {
        let world = with(&format!("[search]\n{wrong}\n"));
        ends_with(run(&world, "tools"), 3);
    }
}

#[test]
fn the_cost_of_tools_is_shown_with_their_use() {
    let world = with(&(fixture("used", &[]) + &fixture("idle", &["--tools", "30"])));
    ends_with(run(&world, "call used__add a=1 b=2"), 0);
    let costs = ok_json(&world, "tools --tokens");
    let servers = &costs["servers"];
    let used = row(servers, "server", "used");
    assert_eq!(used["calls"], 1, "{used}");
    assert_eq!(row(&used["tools"], "id", "used__add")["calls"], 1);
    assert_eq!(row(servers, "server", "idle")["calls"], 0);
    let (all, with_search) = (&costs["tokens"], &costs["with_search"]);
    assert!(with_search.as_u64() < all.as_u64(), "{with_search} {all}");
    let shown = ends_with(run(&world, "tools --tokens"), 0);
    says(&shown.stdout, "CALLS IN 30 DAYS");
    says(&shown.stderr, "with search: about");
    says(&shown.stderr, "servers: `idle`");
}

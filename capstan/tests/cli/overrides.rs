//! Tools under other names, with other words, and with arguments that are settled.

use crate::stage::{
    column, ends_with, failure, fixture, json, last_entry, ok_json, run, says, with,
};

fn config(rules: &str, tools: &str) -> String {
    format!("{rules}{}{tools}", fixture("f", &[]))
}

const ALL: &str = "[permissions]\nallow = [\"*\"]\n\n";

const ADD: &str = "[servers.f.tools.add]\nname = \"plus_two\"\ndescription = \"Adds two.\"\n\
                   pin = { b = 2 }\n";

#[test]
fn a_tool_is_shown_and_called_as_the_operator_wants_it() {
    let world = with(&config(ALL, ADD));
    let ids = column(&ok_json(&world, "tools f"), "id");
    assert!(
        ids.contains(&"f__plus_two".to_owned()) && !ids.contains(&"f__add".to_owned()),
        "{ids:?}"
    );
    let tool = ok_json(&world, "tools f__plus_two");
    assert_eq!(tool["description"], "Adds two.");
    assert_eq!(tool["own_name"], "add");
    assert!(tool["inputSchema"]["properties"].get("b").is_none(), "{tool}");
    says(&ends_with(run(&world, "tools f__plus_two"), 0).stdout, "rules match it as `f__add`");
    for name in ["f__plus_two", "f:plus_two", "mcp__f__plus_two", "f__add"] {
        let ended = ends_with(run(&world, &format!("call {name} a=40")), 0);
        assert_eq!(ended.stdout.trim(), "42", "{name}");
    }
    assert_eq!(last_entry(&world)["item"], "add");
}

#[test]
fn what_is_pinned_cannot_be_given() {
    let world = with(&config(ALL, ADD));
    for words in ["call f__plus_two a=1 b=3", "call f__add a=1 b=2"] {
        let ended = run(&world, &format!("{words} --json"));
        assert_ne!(ended.status, Some(0), "{words}");
        assert_eq!(failure(&ended).0, "invalid_input", "{words}: {}", ended.stdout);
    }
}

#[test]
fn rules_mean_a_tool_by_its_own_name_and_only_restrict_it_by_its_new_one() {
    for (rules, code) in [
        ("[permissions]\nallow = [\"*\"]\ndeny = [\"f__add\"]\n\n", 6),
        ("[permissions]\nallow = [\"*\"]\ndeny = [\"plus_*\"]\n\n", 6),
        ("[permissions]\nallow = [\"*\"]\ndeny = [\"f__add:b=2\"]\n\n", 6),
        ("[permissions]\nallow = [\"*\"]\ndeny = [\"f__add:b=3\"]\n\n", 0),
        ("[permissions]\ndefault = \"deny\"\nallow = [\"f__plus_two\"]\n\n", 6),
        ("[permissions]\ndefault = \"deny\"\nallow = [\"f__add\"]\n\n", 0),
    ] {
        let world = with(&config(rules, ADD));
        let ended = run(&world, "call f__plus_two a=1");
        assert_eq!(ended.status, Some(code), "{rules}{}", ended.stderr);
        // What is explained is what happens.
        let why = json(&run(&world, "why f__plus_two a=1 --json"));
        let verdict = if code == 0 { "allow" } else { "deny" };
        assert_eq!(why["verdict"], verdict, "{rules}{why}");
    }
}

#[test]
fn what_is_hidden_is_not_there() {
    let world = with(&config(ALL, "[servers.f.tools.add]\nhidden = true\n"));
    let ids = column(&ok_json(&world, "tools f"), "id");
    assert!(!ids.contains(&"f__add".to_owned()), "{ids:?}");
    let refused = ends_with(run(&world, "call f__add a=1 b=2"), 6);
    says(&refused.stderr, "is denied by rule `servers.f.tools.add.hidden`");
}

#[test]
fn overrides_that_mean_nothing_are_warned_of_and_harm_nobody() {
    let tools = "[servers.f.tools.ad]\nname = \"x\"\n[servers.f.tools.add]\nname = \"echo\"\n\
                 default = { aa = 1 }\n";
    let world = with(&config(ALL, tools));
    let ended = ends_with(run(&world, "call f__add a=1 b=2"), 0);
    for words in [
        "`tools.ad`: there is no such tool; did you mean `add`?",
        "`tools.add.name`: `echo` is another tool",
        "`aa`; did you mean `a`?",
    ] {
        says(&ended.stderr, words);
    }
}

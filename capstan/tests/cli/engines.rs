//! Trust, ordered rules and rules that can never count, as files of Zeph and our own have them.

use capstan_testkit::{World, binary};

use crate::stage::{column, ends_with, failure, fixture, ok_json, run, says, with};

/// A server in a file of Zeph, with these further keys.
fn zeph(id: &str, keys: &str) -> String {
    let command = serde_json::Value::from(binary("capstan-fixture").to_str().unwrap());
    format!("[[mcp.servers]]\nid = \"{id}\"\ncommand = {command}\nargs = []\n{keys}\n")
}

fn world_of(text: &str) -> World {
    let world = with("");
    world.write("project/zeph.toml", text);
    world
}

/// Row C41 of the seed examples.
#[test]
fn c41_each_trust_level_offers_what_its_page_says() {
    let text = [
        zeph("own", "trust_level = \"trusted\""),
        zeph(
            "listed",
            "trust_level = \"untrusted\"\ntool_allowlist = [\"echo\", \"add\", \"log\"]",
        ),
        zeph("boxed", "trust_level = \"sandboxed\"\ntool_allowlist = [\"echo\", \"add\"]"),
        zeph("closed", "trust_level = \"sandboxed\"\ntool_allowlist = []"),
        zeph("open", "trust_level = \"untrusted\""),
    ];
    let world = world_of(&text.concat());
    let tools = |server: &str| {
        let words = format!("tools {server} --config zeph:zeph.toml --wait 40s");
        column(&ok_json(&world, &words), "name").len()
    };
    let all = tools("own");
    assert!(all > 3, "{all}");
    assert_eq!([tools("listed"), tools("boxed"), tools("closed"), tools("open")], [3, 2, 0, all]);
    for (tool, code) in
        [("boxed__echo", 0), ("boxed__log", 6), ("closed__echo", 6), ("listed__env", 6)]
    {
        ends_with(run(&world, &format!("call {tool} --config zeph:zeph.toml")), code);
    }
    let checked = run(&world, "config check --config zeph:zeph.toml");
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert_eq!(said.matches("is untrusted and offers all of its tools").count(), 1, "{said}");
    // It may never ask: the call goes on, and nobody was shown anything.
    let asked = run(&world, "call boxed__elicit --config zeph:zeph.toml");
    assert!(!asked.stderr.contains("Who are you"), "{}", asked.stderr);
}

/// Row C50 of the seed examples.
#[test]
fn c50_what_an_ordered_rule_denies_is_blocked_with_its_comment() {
    let text = |enabled: &str, policy: &str| {
        format!(
            "{}\n[tools.policy]\n{policy}\n[tools.authorization]\n{enabled}\n\
             [[tools.authorization.rules]]\naction = \"allow\"\ntools = [\"echo\", \"add\"]\n\
             comment = \"Read-only access\"\n\
             [[tools.authorization.rules]]\naction = \"deny\"\ntools = [\"count\"]\n\
             comment = \"Counting is not permitted in this deployment\"\n",
            zeph("f", "trust_level = \"trusted\"")
        )
    };
    let call = |world: &World, tool: &str, code: i32| {
        ends_with(run(world, &format!("call {tool} --json --config zeph:zeph.toml")), code)
    };
    let world = world_of(&text("enabled = true", ""));
    call(&world, "f__echo", 0);
    let blocked = call(&world, "f__count", 6);
    let (code, message, _) = failure(&blocked);
    assert_eq!(code, "policy_blocked");
    says(&message, "Counting is not permitted in this deployment");
    call(&world, "f__env", 0);

    for off in ["", "enabled = false"] {
        call(&world_of(&text(off, "")), "f__count", 0);
    }
    let world = world_of(&text("enabled = true", "deny = [\"echo\"]"));
    says(&failure(&call(&world, "f__echo", 6)).1, "tools.policy.deny: echo");
}

#[test]
fn a_rule_that_can_never_count_is_told_with_its_place_and_the_nearest_name() {
    let rules = "[permissions]\ndeny = [\"linaer__delete_*\"]\nallow = [\"*\"]\n\n";
    let world = with(&format!("{rules}{}", fixture("linear", &[])));
    let ended = ends_with(run(&world, "config check"), 0);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    says(&said, "names the server `linaer`, which does not exist");
    says(&said, "did you mean `linear`?");
    says(&said, "config.toml:2:9");
    ends_with(run(&world, "call linear__echo"), 0);
}

#[test]
fn a_rule_for_reads_lets_no_write_through() {
    let rules = "[permissions]\ndefault = \"deny\"\nallow = [{ pattern = \"f__*\", effect = \"read\" }]\n\n";
    let effects = "effect = { read = [\"echo\"], write = [\"count\"] }\n";
    let world = with(&format!("{rules}{}{effects}", fixture("f", &[])));
    ends_with(run(&world, "call f__echo"), 0);
    ends_with(run(&world, "call f__count"), 6);
}

//! A client's servers moved to Capstan, and moved back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use capstan_testkit::{World, binary};
use serde_json::{Value, json};

use crate::clients::{FILES, crowded, place, tree};
use crate::stage::{
    column, ends_with, json as parsed, ok_json, read, row, run, says, with_project,
};

/// Claude Code's file with these servers, and what else it keeps in it.
pub(crate) fn claude(servers: &Value) -> String {
    let file = json!({ "numStartups": 1, "mcpServers": servers, "userID": "0" });
    serde_json::to_string_pretty(&file).unwrap()
}

/// An entry of Claude Code for a fixture.
pub(crate) fn server(options: &[&str]) -> Value {
    json!({ "type": "stdio", "command": binary("capstan-fixture"), "args": options })
}

/// A world in which Claude Code has two servers.
pub(crate) fn world() -> (World, PathBuf) {
    let world = World::new();
    let servers = json!({ "one": server(&[]), "two": server(&["--era", "legacy"]) });
    let path = world.write(world.home().join(".claude.json"), claude(&servers));
    (world, path)
}

pub(crate) fn config(world: &World) -> PathBuf {
    world.config().join("capstan/config.toml")
}

/// The names of the servers in Claude Code's file.
#[track_caller]
pub(crate) fn servers_in(path: &PathBuf) -> Vec<String> {
    let file: Value = serde_json::from_str(&read(path)).unwrap();
    file["mcpServers"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_clients_servers_move_to_capstan_and_back_byte_for_byte() {
    let world = crowded();
    let before = tree(&world);
    for (client, _, path) in FILES {
        let planned = ok_json(&world, &format!("adopt {client}"));
        assert_eq!((&planned["written"], tree(&world) == before), (&json!(false), true));
        let told = ok_json(&world, &format!("adopt {client} --yes"));
        assert_eq!(told["written"], true, "{client}");
        let moved = told["servers"].as_array().unwrap().iter().filter(|row| row["moves"] == true);
        let moved: Vec<&str> = moved.map(|row| row["server"].as_str().unwrap()).collect();
        assert!(!moved.is_empty(), "{client}: {told}");
        // All that is left is Capstan, and what cannot move.
        let left = ok_json(&world, &format!("import {client}"));
        let left = left["servers"].as_array().unwrap().clone();
        assert!(left.iter().any(|row| row["state"] == "itself"), "{client}: {left:?}");
        for row in &left {
            let name = row["server"].as_str().unwrap();
            assert!(!moved.contains(&name), "{client}: `{name}` is still there");
        }
        let again = run(&world, &format!("adopt {client} --yes"));
        says(&again.stderr, "uses Capstan already; its servers are in");
        again.ok();
        let undone = ok_json(&world, &format!("adopt {client} --undo"));
        assert_eq!(undone["files"][0]["change"], "restored", "{client}: {undone}");
        assert_eq!(tree(&world), before, "{client}: {path}");
        assert!(!config(&world).exists(), "{client}");
        assert_eq!(run(&world, &format!("adopt {client} --undo")).status, Some(4));
    }
}

#[test]
fn clients_that_are_all_moved_are_all_moved_back_in_any_order() {
    let mut order: Vec<(&str, &str)> = FILES.map(|(client, _, path)| (client, path)).to_vec();
    for turn in 0..4 {
        order.rotate_left(turn * 4);
        if turn == 1 {
            order.reverse();
        }
        let world = crowded();
        let before = tree(&world);
        for (client, _, _) in FILES {
            run(&world, &format!("adopt {client} --yes")).ok();
        }
        for (client, path) in &order {
            run(&world, &format!("adopt {client} --undo")).ok();
            assert!(!read(place(&world, path)).contains("capstan"), "{client}");
        }
        assert_eq!(tree(&world), before, "{order:?}");
        assert!(!config(&world).exists(), "{order:?}: {}", read(config(&world)));
    }
}

#[test]
fn without_a_yes_nothing_is_written_and_the_plan_is_shown() {
    let (world, path) = world();
    let before = read(&path);
    let planned = run(&world, "adopt claude-code");
    says(&planned.stderr, "2 servers would move to");
    says(&planned.stderr, "add `--yes` to write");
    says(&planned.ok(), "one");
    run(&world, "adopt claude-code --dry-run").ok();
    assert_eq!((read(&path), config(&world).exists()), (before, false));
}

#[test]
fn one_server_moves_and_the_others_stay() {
    let (world, path) = world();
    says(&ends_with(run(&world, "adopt claude-code three --yes"), 4).stderr, "no server `three`");
    run(&world, "adopt claude-code one --yes").ok();
    assert_eq!(servers_in(&path), ["two", "capstan"]);
    // The other one follows later.
    run(&world, "adopt claude-code --yes").ok();
    assert_eq!(servers_in(&path), ["capstan"]);
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["one", "two"]);
}

#[test]
fn a_server_that_cannot_be_imported_stays_and_the_reason_is_told() {
    let world = World::new();
    let servers = json!({ "good": server(&[]), "odd": { "url": "https://example.com/mcp" } });
    let path = world.write(world.home().join(".claude.json"), claude(&servers));
    let moved = run(&world, "adopt claude-code --yes");
    says(&moved.stderr, "`odd` stays: ");
    says(&moved.stderr, "has a `url` but no `type`");
    moved.ok();
    assert_eq!(servers_in(&path), ["odd", "capstan"]);
    let only = json!({ "odd": { "url": "https://example.com/mcp" } });
    let other = World::new();
    let path = other.write(other.home().join(".claude.json"), claude(&only));
    let refused = ends_with(run(&other, "adopt claude-code --yes"), 3);
    says(&refused.stderr, "no server of Claude Code can be moved");
    assert_eq!(read(path), claude(&only));
}

#[test]
fn a_server_that_capstan_has_with_other_restrictions_stays() {
    let (world, path) = world();
    let command = json!(binary("capstan-fixture"));
    world.write_user_config(&format!(
        "[servers.one]\ncommand = {command}\nargs = []\nhide = [\"count\"]\n"
    ));
    let moved = run(&world, "adopt claude-code --yes");
    says(&moved.stderr, "`one` stays: Capstan has `one` with another `hide`");
    moved.ok();
    assert_eq!(servers_in(&path), ["one", "capstan"]);
}

#[test]
fn variables_that_are_not_set_are_listed() {
    let world = World::new();
    let mut needy = server(&[]);
    needy["env"] = json!({ "TOKEN": "${NOT_SET_HERE}", "HOME_OF": "${HOME}", "X": "${Y:-z}" });
    world.write(world.home().join(".claude.json"), claude(&json!({ "needy": needy })));
    let planned = run(&world, "adopt claude-code");
    says(&planned.stderr, "`needy` needs the variable NOT_SET_HERE, which is not set");
    let told = ok_json(&world, "adopt claude-code");
    assert_eq!(told["unset"], json!([{ "name": "NOT_SET_HERE", "server": "needy" }]));
}

#[test]
fn servers_come_back_into_a_file_that_its_program_has_changed() {
    let (world, path) = world();
    let servers: Value = serde_json::from_str(&read(&path)).unwrap();
    run(&world, "adopt claude-code --yes").ok();
    fs::write(&path, read(&path).replace("\"numStartups\": 1", "\"numStartups\": 2")).unwrap();
    run(&world, "adopt claude-code --undo").ok();
    let mut now: Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(now["numStartups"], 2);
    now["numStartups"] = json!(1);
    assert_eq!(now, servers);
    assert!(!config(&world).exists());
}

#[test]
fn a_server_that_two_clients_share_stays_until_both_have_their_own_again() {
    let (world, claude) = world();
    let cursor = world.home().join(".cursor/mcp.json");
    let one = json!({ "mcpServers": { "one": server(&[]) } }).to_string();
    world.write(&cursor, &one);
    run(&world, "adopt claude-code --yes").ok();
    run(&world, "adopt cursor --yes").ok();
    let undone = ok_json(&world, "adopt claude-code --undo");
    assert_eq!(undone["kept"], json!(["one"]));
    assert_eq!(servers_in(&claude), ["one", "two"]);
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["one"]);
    run(&world, "adopt cursor --undo").ok();
    assert_eq!(read(&cursor), one);
    assert!(!config(&world).exists(), "Capstan had created it");
}

#[test]
fn a_clients_file_that_cannot_be_written_leaves_everything_as_it_was() {
    let (world, path) = world();
    let before = read(&path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let refused = ends_with(run(&world, "adopt claude-code --yes"), 3);
    says(&refused.stderr, "read-only");
    assert_eq!((read(&path), config(&world).exists()), (before, false));
    assert_eq!(run(&world, "adopt claude-code --undo").status, Some(4));
}

#[test]
fn an_adopted_client_is_neither_installed_nor_uninstalled() {
    let (world, path) = world();
    run(&world, "adopt claude-code --yes").ok();
    let adopted = read(&path);
    for words in ["install claude-code", "uninstall claude-code"] {
        let refused = ends_with(run(&world, words), 2);
        says(&refused.stderr, "`capstan adopt claude-code --undo` moves the servers back");
    }
    assert_eq!(read(&path), adopted);
}

#[test]
fn an_entry_of_an_earlier_installation_is_replaced() {
    let (world, path) = world();
    let before = read(&path);
    run(&world, "install claude-code").ok();
    run(&world, "adopt claude-code --yes --confirm client").ok();
    assert_eq!(servers_in(&path), ["capstan"]);
    let file: Value = serde_json::from_str(&read(&path)).unwrap();
    let args = &file["mcpServers"]["capstan"]["args"];
    assert_eq!(args, &json!(["serve", "--confirm", "client"]));
    run(&world, "adopt claude-code --undo").ok();
    assert_eq!(read(&path), before);
}

#[test]
fn a_shared_file_of_a_project_has_no_path_of_this_machine() {
    let world = with_project();
    let text = claude(&json!({ "one": server(&[]) }));
    let path = world.write("project/.mcp.json", &text);
    let moved = run(&world, "adopt claude-code --scope project --yes");
    says(&moved.stderr, "it must be in a folder of PATH");
    moved.ok();
    let file: Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(file["mcpServers"]["capstan"]["command"], "capstan");
    says(&read(world.project().join(".capstan/config.toml")), "[servers.one]");
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["one"]);
    run(&world, "adopt claude-code --scope project --undo").ok();
    assert_eq!(read(&path), text);
    // The same holds for an installation.
    for client in ["claude-code", "codex", "cursor", "vscode"] {
        let installed = ok_json(&world, &format!("install {client} --scope project"));
        let text = read(installed["file"].as_str().unwrap());
        assert!(!text.contains(&format!("{}\"", binary("capstan").display())), "{text}");
        says(&text, "\"capstan\"");
    }
}

#[test]
fn a_project_file_with_more_servers_is_named() {
    let world = with_project();
    world.write(world.home().join(".claude.json"), claude(&json!({ "one": server(&[]) })));
    world.write("project/.mcp.json", claude(&json!({ "two": server(&[]) })));
    let planned = run(&world, "adopt claude-code");
    says(&planned.stderr, "`capstan adopt claude-code --scope project` moves them");
}

#[test]
fn servers_of_the_project_move_with_the_others() {
    let world = with_project();
    let project = world.project().display().to_string();
    let text = json!({
        "mcpServers": { "one": server(&[]) },
        "projects": { project.clone(): { "mcpServers": { "two": server(&["--era", "legacy"]) }, "history": [] } },
    })
    .to_string();
    let path = world.write(world.home().join(".claude.json"), &text);
    run(&world, "adopt claude-code --yes").ok();
    let file: Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(file["projects"][&project]["mcpServers"], json!({}));
    assert_eq!(servers_in(&path), ["capstan"]);
    assert_eq!(column(&ok_json(&world, "list"), "name").len(), 2);
    run(&world, "adopt claude-code --undo").ok();
    assert_eq!(read(&path), text);
}

#[test]
fn servers_that_are_added_are_connected_once_if_that_is_wanted() {
    let manifests = |world: &World| {
        let folder = fs::read_dir(world.cache().join("capstan/manifests"));
        folder.map_or(0, |folder| folder.flatten().count())
    };
    let fixture = binary("capstan-fixture").display().to_string();
    let quick = World::new();
    run(&quick, &format!("add f {fixture}")).ok();
    assert_eq!(manifests(&quick), 0, "a script is not kept waiting");
    let world = World::new();
    let added = run(&world, &format!("add --check --json f {fixture}"));
    let checked = parsed(&added)["checked"][0].clone();
    assert_eq!(checked["server"], "f");
    assert!(checked["tools"].as_u64() > Some(0), "{checked}");
    assert_eq!(manifests(&world), 1);
    // A server that does not answer is added all the same.
    let failed = run(&world, "add --check g false");
    says(&failed.stderr, "warning:");
    says(&failed.stderr, "`capstan doctor g` suggests a fix");
    failed.ok();
    let (other, _) = self::world();
    let told = ok_json(&other, "adopt claude-code --yes --check");
    assert_eq!(column(&told["checked"], "server"), ["one", "two"]);
    assert_eq!(manifests(&other), 2);
}

#[test]
fn rules_of_claude_code_move_with_their_servers() {
    let world = with_project();
    let path = world.write(world.home().join(".claude.json"), claude(&json!({ "g": server(&[]) })));
    let rules = |rule: &str, tool: &str| {
        let list = json!([format!("mcp__g__{tool}")]);
        json!({ "permissions": { rule: list } }).to_string()
    };
    world.write(world.home().join(".claude/settings.json"), rules("deny", "echo"));
    world.write("project/.claude/settings.json", rules("ask", "count"));
    world.write("project/.claude/settings.local.json", rules("deny", "env"));
    let before = read(&path);
    let inside =
        |words: &str| world.capstan(words.split_whitespace()).within(world.project()).run();
    let imported = inside("import claude-code --json");
    assert_eq!(parsed(&imported)["servers"][0]["notes"].as_array().unwrap().len(), 3);
    inside("adopt claude-code --yes").ok();
    let expected = "permissions = { deny = [\"echo\", \"env\"], ask = [\"count\"] }";
    says(&read(config(&world)), expected);
    assert_eq!(inside("call g__echo message=x").status, Some(6), "as before");
    inside("adopt claude-code --undo").ok();
    assert_eq!((read(&path), config(&world).exists()), (before, false));
    // Settings that cannot be read may have a rule for any server.
    world.write("project/.claude/settings.json", "{");
    says(&ends_with(inside("adopt claude-code --yes"), 3).stderr, "`g` stays: its client's rules");
}

#[test]
fn a_server_that_is_disabled_in_claude_code_is_disabled_in_the_projects_file() {
    let world = with_project();
    world.write(
        "project/.mcp.json",
        claude(&json!({ "on": server(&[]), "off": server(&["--era", "legacy"]) })),
    );
    let project =
        json!({ world.project().display().to_string(): { "disabledMcpjsonServers": ["off"] } });
    world.write(world.home().join(".claude.json"), json!({ "projects": project }).to_string());
    let inside =
        |words: &str| world.capstan(words.split_whitespace()).within(world.project()).run();
    let moved = inside("adopt claude-code --scope project --yes");
    says(&moved.stderr, "`off`: it is written as disabled");
    moved.ok();
    let rows = parsed(&inside("list --json"));
    assert_eq!(row(&rows, "name", "off")["state"], "disabled");
    assert_ne!(row(&rows, "name", "on")["state"], "disabled");
}

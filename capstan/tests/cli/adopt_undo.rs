//! Adopted clients moved back: in any order, after changes by others, and after failures.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::adopt::{claude, config, server, servers_in, world};
use crate::clients::tree;
use crate::stage::{column, ends_with, ok_json, read, run, says, user_config, with_project};

/// A world in which three clients have servers: one of them states limits, and two share a server.
fn three() -> World {
    let world = World::new();
    let shared = json!({ "mcpServers": { "one": server(&[]), "only": server(&["--pages", "2"]) } });
    world.write(world.home().join(".cursor/mcp.json"), shared.to_string());
    let servers = json!({ "one": server(&[]), "two": server(&["--era", "legacy"]) });
    world.write(world.home().join(".claude.json"), claude(&servers));
    let zeph = "[mcp]\nallowed_commands = [\"npx\"]\n[[mcp.servers]]\nid = \"fs\"\n\
        command = \"npx\"\n[tools]\nmax_tool_calls_per_session = 7\n";
    world.write(world.config().join("zeph/config.toml"), zeph);
    world
}

const THREE: [&str; 3] = ["cursor", "claude-code", "zeph"];

/// All orders of three clients.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

fn clients(order: [usize; 3]) -> [&'static str; 3] {
    order.map(|at| THREE[at])
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn every_order_of_returns_ends_with_the_bytes_of_the_beginning() {
    // The text of Capstan's file at the beginning, and a change by hand in between.
    let own = "# mine\n[servers.mine]\ncommand = \"x\" # here\n\n[tools]\n# few\nmax_tool_calls_per_session = 9 # at most\n";
    let line = "# added by hand\n";
    for (text, change) in
        [(None, ""), (Some(own), ""), (Some("\n# only this\n"), ""), (Some(own), line)]
    {
        for (moved, back) in ORDERS.into_iter().zip(ORDERS.into_iter().cycle().skip(2)) {
            let world = three();
            if let Some(text) = text {
                world.write_user_config(text);
                mode(&config(&world), 0o600);
            }
            let before = tree(&world);
            for client in clients(moved) {
                run(&world, &format!("adopt {client} --yes")).ok();
            }
            fs::write(config(&world), format!("{change}{}", user_config(&world))).unwrap();
            for client in clients(back) {
                run(&world, &format!("adopt {client} --undo")).ok();
            }
            assert_eq!(tree(&world), before, "{moved:?} {back:?}");
            let now = config(&world).exists().then(|| user_config(&world));
            let expected = text.map(|text| format!("{change}{text}"));
            assert_eq!(now, expected, "{moved:?} {back:?}");
        }
    }
}

#[test]
fn a_limit_stays_while_its_client_is_adopted() {
    let world = three();
    for client in THREE {
        run(&world, &format!("adopt {client} --yes")).ok();
    }
    run(&world, "adopt cursor --undo").ok();
    says(&user_config(&world), "max_tool_calls_per_session = 7");
    run(&world, "adopt zeph --undo").ok();
    let config = user_config(&world);
    assert!(!config.contains("max_tool_calls") && !config.contains("allowed_commands"), "{config}");
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["one", "two"]);
}

#[test]
fn clients_that_are_adopted_at_the_same_time_all_keep_their_records() {
    for _ in 0..4 {
        let world = three();
        let before = tree(&world);
        thread::scope(|scope| {
            for client in ["cursor", "zeph"] {
                let world = &world;
                scope.spawn(move || {
                    let adopted = run(world, &format!("adopt {client} --yes"));
                    // One of the two may be told to repeat the command.
                    if adopted.status != Some(0) {
                        says(&adopted.stderr, "try again");
                        run(world, &format!("adopt {client} --yes")).ok();
                    }
                });
            }
        });
        for client in ["zeph", "cursor"] {
            run(&world, &format!("adopt {client} --undo")).ok();
        }
        assert_eq!(tree(&world), before);
        assert!(!config(&world).exists());
    }
}

/// A project whose `.mcp.json` is trusted, and the file of the approvals.
fn trusted_project() -> (World, std::path::PathBuf) {
    let world = with_project();
    world.write("project/.mcp.json", claude(&json!({ "one": server(&[]) })));
    run(&world, "trust --yes").ok();
    let approvals = world.state().join("capstan/approvals.json");
    assert!(approvals.exists());
    (world, approvals)
}

#[test]
fn a_project_whose_new_text_cannot_be_approved_is_left_as_it_was() {
    let (world, approvals) = trusted_project();
    let own = world.write("project/.capstan/config.toml", "# not approved\n");
    let shared = world.project().join(".mcp.json");
    let before = (read(&shared), read(&own));
    mode(&approvals, 0o400);
    assert_ne!(run(&world, "adopt claude-code --scope project --yes").status, Some(0));
    assert_eq!((read(&shared), read(&own)), before);
    mode(&approvals, 0o600);
    assert_eq!(run(&world, "adopt claude-code --scope project --undo").status, Some(4));
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["one"], "it is trusted as before");
}

#[test]
fn a_file_of_capstan_that_cannot_be_approved_is_removed_again() {
    let (world, approvals) = trusted_project();
    let (own, shared) =
        (world.project().join(".capstan/config.toml"), world.project().join(".mcp.json"));
    let before = read(&shared);
    mode(&approvals, 0o400);
    assert_ne!(run(&world, "adopt claude-code --scope project --yes").status, Some(0));
    assert_eq!((read(&shared), own.exists()), (before, false));
    mode(&approvals, 0o600);
    assert_eq!(run(&world, "adopt claude-code --scope project --undo").status, Some(4));
}

#[test]
fn without_a_backup_the_servers_stay_in_capstan() {
    let (world, path) = world();
    let original = read(&path);
    run(&world, "adopt claude-code --yes").ok();
    fs::remove_file(world.home().join(".claude.json.capstan-backup")).unwrap();
    fs::write(&path, claude(&json!({}))).unwrap();
    let config = user_config(&world);
    let refused = ends_with(run(&world, "adopt claude-code --undo"), 3);
    says(&refused.stderr, "`one`, `two` cannot be put back");
    says(&refused.stderr, "Capstan still has them");
    assert_eq!(user_config(&world), config);
    // The remedy of the hint works.
    fs::write(&path, &original).unwrap();
    says(&run(&world, "adopt claude-code --undo").stderr, "has its servers already");
    assert!(!crate::adopt::config(&world).exists());
    assert_eq!(read(&path), original);
}

#[test]
fn a_second_file_without_a_backup_stops_the_return_too() {
    let world = World::new();
    let file = |name: &str| {
        let command = [capstan_testkit::binary("capstan-fixture")];
        json!({ "mcp": { name: { "type": "local", "command": command, "enabled": true } } })
    };
    let folder = world.config().join("opencode");
    world.write(folder.join("opencode.json"), file("one").to_string());
    let second = world.write(folder.join("opencode.jsonc"), file("two").to_string());
    run(&world, "adopt opencode --yes").ok();
    assert!(!read(&second).contains("two"));
    fs::remove_file(folder.join("opencode.jsonc.capstan-backup")).unwrap();
    fs::write(&second, format!("// touched\n{}", read(&second))).unwrap();
    let files = (read(folder.join("opencode.json")), user_config(&world));
    says(&ends_with(run(&world, "adopt opencode --undo"), 3).stderr, "`two` cannot be put back");
    assert_eq!((read(folder.join("opencode.json")), user_config(&world)), files);
}

#[test]
fn servers_come_back_into_a_file_that_was_removed() {
    let (world, path) = world();
    let servers: Value = serde_json::from_str(&read(&path)).unwrap();
    run(&world, "adopt claude-code --yes").ok();
    fs::remove_file(&path).unwrap();
    let undone = run(&world, "adopt claude-code --undo");
    let backup = world.home().join(".claude.json.capstan-backup");
    says(&undone.stderr, &format!("the backup is still in {}", backup.display()));
    undone.ok();
    let now: Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(now["mcpServers"], servers["mcpServers"]);
    assert!(backup.exists() && !config(&world).exists());
}

#[test]
fn a_server_that_is_no_longer_chosen_goes_back_to_its_client() {
    let (world, path) = world();
    let before = read(&path);
    run(&world, "adopt claude-code --yes").ok();
    let again = ok_json(&world, "adopt claude-code one --yes");
    assert_eq!(again["returned"], json!(["two"]));
    assert_eq!(servers_in(&path), ["two", "capstan"]);
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["one"]);
    run(&world, "adopt claude-code --undo").ok();
    assert_eq!((read(&path), config(&world).exists()), (before, false));
}

#[test]
fn in_the_home_folder_a_file_is_adopted_once() {
    let world = World::new();
    let path = world.home().join(".cursor/mcp.json");
    world.write(&path, json!({ "mcpServers": { "one": server(&[]) } }).to_string());
    let at_home = |words: &str| world.capstan(words.split_whitespace()).within(world.home()).run();
    let moved = at_home("adopt cursor --yes");
    assert!(!moved.stderr.contains("has servers, too"), "{}", moved.stderr);
    moved.ok();
    let refused = ends_with(at_home("adopt cursor --scope project --yes"), 2);
    says(&refused.stderr, &format!("were moved to {}", config(&world).display()));
    says(&refused.stderr, "`capstan adopt cursor --undo` moves them back first");
    at_home("adopt cursor --undo").ok();
}

#[test]
fn a_file_of_capstan_behind_a_link_is_removed_and_the_link_stays() {
    let (world, _) = world();
    let (link, real) = (config(&world), world.home().join("dotfiles/capstan.toml"));
    for folder in [link.parent(), real.parent()] {
        fs::create_dir_all(folder.unwrap()).unwrap();
    }
    symlink(&real, &link).unwrap();
    run(&world, "adopt claude-code --yes").ok();
    assert!(real.exists());
    run(&world, "adopt claude-code --undo").ok();
    assert!(link.is_symlink() && !real.exists());
}

#[test]
fn a_secret_that_became_a_variable_is_in_the_backup() {
    let world = World::new();
    let mut secret = server(&[]);
    secret["env"] = json!({ "API_TOKEN": "canary-0123456789" });
    let path = world.write(world.home().join(".claude.json"), claude(&json!({ "s": secret })));
    let backup = format!("{}.capstan-backup", path.display());
    let planned = ok_json(&world, "adopt claude-code --secrets env");
    assert_eq!(planned["variables"][0]["value_in"], json!(path));
    let moved = run(&world, "adopt claude-code --secrets env --yes");
    says(&moved.stderr, &format!("API_TOKEN: its value will be in {backup}"));
    moved.ok();
    says(&read(backup), "canary-0123456789");
}

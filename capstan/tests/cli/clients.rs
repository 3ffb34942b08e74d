//! Servers taken over from other clients, and an entry for Capstan in their files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use capstan_testkit::{World, binary};

use crate::stage::{
    column, ends_with, failure, json, ok_json, read, row, run, says, user_config, with_project,
};

/// One real-shaped file of each client, and where it lies in a home.
pub(crate) const FILES: [(&str, &str, &str); 14] = [
    ("claude-code", "claude-code.json", ".claude.json"),
    ("claude-desktop", "claude-desktop.json", ".config/Claude/claude_desktop_config.json"),
    ("codex", "codex.toml", ".codex/config.toml"),
    ("cursor", "cursor.json", ".cursor/mcp.json"),
    ("vscode", "vscode.json", ".config/Code/User/mcp.json"),
    ("gemini", "gemini.json", ".gemini/settings.json"),
    ("llxprt", "llxprt.json", ".llxprt/settings.json"),
    ("goose", "goose.yaml", ".config/goose/config.yaml"),
    ("zed", "zed.json", ".config/zed/settings.json"),
    ("opencode", "opencode.jsonc", ".config/opencode/opencode.jsonc"),
    ("windsurf", "windsurf.json", ".codeium/windsurf/mcp_config.json"),
    ("caliban", "caliban.toml", ".config/caliban/settings.toml"),
    ("zeph", "zeph.toml", ".config/zeph/config.toml"),
    ("avelino", "avelino.json", ".config/mcp/servers.json"),
];

fn fixture(name: &str) -> String {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    read(tree.join("core/import/tests/clients").join(name))
}

/// The place of a client's file, wherever this world has its configuration.
pub(crate) fn place(world: &World, path: &str) -> PathBuf {
    match path.strip_prefix(".config/") {
        Some(path) => world.config().join(path),
        None => world.home().join(path),
    }
}

/// A home in which every client is configured.
pub(crate) fn crowded() -> World {
    let world = World::new();
    for (_, name, path) in FILES {
        world.write(place(&world, path), fixture(name));
    }
    world
}

/// All files of a home, but those of Capstan.
pub(crate) fn tree(world: &World) -> Vec<(PathBuf, Vec<u8>, u32)> {
    fn walk(folder: &Path, all: &mut Vec<(PathBuf, Vec<u8>, u32)>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            if entry.file_name() == "capstan" {
                continue;
            }
            let mode = meta.permissions().mode();
            if meta.is_dir() {
                all.push((path.clone(), Vec::new(), mode));
                walk(&path, all);
            } else if meta.is_file() {
                all.push((path.clone(), fs::read(&path).unwrap(), mode));
            }
        }
    }
    let mut all = Vec::new();
    walk(world.home(), &mut all);
    all.sort();
    all
}

#[test]
fn import_then_install_then_uninstall_leaves_every_clients_file_byte_for_byte_as_it_was() {
    let world = crowded();
    let before = tree(&world);
    run(&world, "import --yes").ok();
    assert_eq!(tree(&world), before, "an import only reads");
    for ways in ["", " --http", " --http https://hub.example.com/mcp"] {
        for (client, _, path) in FILES {
            let ended = run(&world, &format!("install {client}{ways}"));
            if !ways.is_empty() && matches!(client, "claude-desktop" | "avelino") {
                says(&ends_with(ended, 3).stderr, "cannot use an address");
                continue;
            }
            ended.ok();
            let text = read(place(&world, path));
            says(&text, "capstan");
            says(&text, if ways.is_empty() { "serve" } else { "/mcp" });
        }
        for (client, _, path) in FILES {
            if !ways.is_empty() && matches!(client, "claude-desktop" | "avelino") {
                continue;
            }
            says(&run(&world, &format!("uninstall {client}")).ok(), "");
            assert_eq!(run(&world, &format!("uninstall {client}")).status, Some(4), "{path}");
        }
        assert_eq!(tree(&world), before, "{ways}");
    }
}

#[test]
fn an_entry_for_capstan_works_and_is_not_imported() {
    let world = World::new();
    run(&world, "install cursor").ok();
    let text = read(world.home().join(".cursor/mcp.json"));
    says(&text, binary("capstan").to_str().unwrap());
    run(&world, "install gemini --http").ok();
    says(&read(world.home().join(".gemini/settings.json")), "http://127.0.0.1:8080/mcp");
    let plan = ok_json(&world, "import");
    assert_eq!(column(&plan["servers"], "state"), ["itself", "itself"]);
    assert_eq!(plan["written"], false);
}

#[test]
fn an_entry_names_the_program_by_the_path_that_outlives_an_update() {
    let world = World::new();
    let folder = world.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    symlink(binary("capstan"), folder.join("capstan")).unwrap();
    world.capstan(["install", "cursor"]).env("PATH", &folder).run().ok();
    let text = read(world.home().join(".cursor/mcp.json"));
    says(&text, &format!("{}", folder.join("capstan").display()));
}

#[test]
fn a_plan_is_shown_and_nothing_written_until_somebody_says_yes() {
    let world = crowded();
    let config = world.config().join("capstan/config.toml");
    for words in ["import", "import --dry-run"] {
        let ended = ends_with(run(&world, words), 0);
        says(&ended.stdout, "CLIENT");
        says(&ended.stdout, "differs from `github`, becomes `github-cursor`");
        says(&ended.stdout, "same as `github`");
        says(&ended.stdout, "cannot be used: ");
        says(&ended.stderr, "`--yes`");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("canary"), "{said}");
        assert!(!config.exists(), "{words}");
    }
}

#[test]
fn what_is_imported_keeps_what_is_there_and_is_imported_once() {
    let world = crowded();
    let mine = "# mine\n[servers.linear] # here\nurl = \"https://mcp.linear.app/mcp\"\n";
    world.write_user_config(mine);
    fs::set_permissions(
        world.config().join("capstan/config.toml"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let plan = ok_json(&world, "import --yes");
    assert_eq!(plan["written"], true);
    assert_eq!(row(&plan["servers"], "server", "linear")["state"], "same");
    let config = user_config(&world);
    assert!(config.starts_with(mine), "{config}");
    says(&config, "ghp_canary0123456789abcdef");
    let names =
        ["FIGMA_TOKEN", "SENTRY_TOKEN", "PERPLEXITY_KEY", "MAPS_KEY", "GITLAB_TOKEN", "LEVEL"];
    let check = names.iter().fold(world.capstan(["config", "check"]), |c, name| c.env(name, "x"));
    says(&check.run().stderr, " 0 errors");
    let again = ends_with(run(&world, "import --yes"), 0);
    says(&again.stderr, "there is nothing new");
    assert_eq!(user_config(&world), config);
}

#[test]
fn secrets_are_turned_into_variables_on_request_and_the_variables_listed() {
    let world = crowded();
    let plan = ok_json(&world, "import --yes --secrets env");
    let config = user_config(&world);
    assert!(!config.contains("canary"), "{config}");
    says(&config, "Bearer ${SLACK_TOKEN}");
    let slack = row(&plan["variables"], "name", "SLACK_TOKEN");
    assert_eq!(slack["server"], "slack");
    says(slack["value_in"].as_str().unwrap(), "mcp_config.json");
}

#[test]
fn secrets_are_not_copied_to_where_others_read_them() {
    let world = crowded();
    world.write_user_config("# mine\n");
    let file = world.config().join("capstan/config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let plan = ends_with(run(&world, "import"), 0).stderr;
    says(&plan, "because other users can read it; nothing is written");
    says(&plan, "chmod 600");
    assert!(!plan.contains("are copied to"), "{plan}");
    let (_, message, hint) = failure(&ends_with(run(&world, "import --yes --json"), 2));
    says(&message, "others can read");
    says(&hint, "--secrets env");
    assert_eq!(user_config(&world), "# mine\n");
    run(&world, "import --yes --secrets env").ok();

    let world = with_project();
    world.write(world.project().join(".cursor/mcp.json"), fixture("cursor.json"));
    let inside =
        |words: &str| world.capstan(words.split_whitespace()).within(world.project()).run();
    let (_, message, _) =
        failure(&ends_with(inside("import -s project --yes --secrets keep --json"), 2));
    says(&message, "must not be in a project's file");
    inside("import -s project --yes").ok();
    let config = read(world.project().join(".capstan/config.toml"));
    assert!(config.contains("${GITHUB_PERSONAL_ACCESS_TOKEN}") && !config.contains("canary"));
}

#[test]
fn what_counts_as_it_is_or_only_in_its_client_is_shown_and_not_copied() {
    let world = crowded();
    let plan = ok_json(&world, "import --yes");
    let states = |client: &str| {
        let rows = plan["servers"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["client"] == client);
        rows.map(|row| row["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(!states("avelino").is_empty());
    assert!(states("avelino").iter().all(|state| state == "read_directly"), "{plan}");
    let developer = row(&plan["servers"], "server", "developer");
    assert_eq!((&developer["client"], &developer["state"]), (&"goose".into(), &"inside".into()));
    says(developer["reason"].as_str().unwrap(), "`builtin` runs inside goose");
    let context = row(&plan["servers"], "server", "mcp-server-context7");
    says(context["reason"].as_str().unwrap(), "an extension of Zed runs it");
    let shown = ends_with(run(&world, "import"), 0).stdout;
    says(&shown, "read directly, not copied");
    says(&shown, "left out: `builtin` runs inside goose");
}

/// Issue "First hour" 2: the rows of the plan, the limits, and the written file.
#[test]
fn restrictions_are_imported_and_listed_and_a_server_that_they_stop_is_left_out() {
    let world = World::new();
    let zeph = "[mcp]\nallowed_commands = [\"npx\"]\n\
        [[mcp.servers]]\nid = \"fs\"\ncommand = \"npx\"\n\
        [[mcp.servers]]\nid = \"py\"\ncommand = \"python\"\n\
        [tools]\nmax_tool_calls_per_session = 7\n[tools.policy]\ndeny = [\"shell\"]\n";
    world.write(world.config().join("zeph/config.toml"), zeph);
    let planned = ends_with(run(&world, "import"), 0);
    says(&planned.stdout, "does not list `python`");
    says(&planned.stderr, "`tools.max_tool_calls_per_session = 7` is imported too");
    let plan = ok_json(&world, "import --yes");
    assert_eq!(column(&plan["servers"], "state"), ["new", "unusable"]);
    let keys = ["max_tool_calls_per_session", "allowed_commands"];
    assert_eq!(column(&plan["limits"], "key"), keys);
    let shown = ok_json(&world, "config show");
    for (key, value) in [
        ("tools.max_tool_calls_per_session", "7"),
        ("mcp.allowed_commands", "[\"npx\"]"),
        ("servers.fs.permissions.deny", "[\"shell\"]"),
    ] {
        assert_eq!(row(&shown, "key", key)["value"], value);
    }
    assert!(!user_config(&world).contains("py"));
}

/// Issue "First hour" 12, and row C17: the older file of Caliban in a project.
#[test]
fn c17_the_older_file_of_caliban_in_a_project_is_imported_where_no_settings_name_a_server() {
    let world = with_project();
    let project = world.project();
    world.write(project.join(".caliban/mcp.toml"), "[server.older]\ncommand = \"x\"\n");
    let found = || {
        let ended =
            world.capstan(["import", "--scope", "project", "--json"]).within(&project).run();
        column(&json(&ended)["servers"], "server")
    };
    assert_eq!(found(), ["older"]);
    world.write(project.join(".caliban/settings.toml"), "[mcp_servers.newer]\ncommand = \"x\"\n");
    assert_eq!(found(), ["newer"]);
}

#[test]
fn servers_of_other_projects_are_taken_over_only_when_all_are_asked_for() {
    let world = crowded();
    let names = |words: &str| column(&ok_json(&world, words)["servers"], "server");
    assert_eq!(names("import claude-code"), ["github", "linear", "login"]);
    assert_eq!(names("import claude --all"), ["github", "linear", "login", "shop-db"]);
    let (code, message, _) = failure(&ends_with(run(&World::new(), "import zed --json"), 4));
    assert_eq!((code.as_str(), message.contains("Zed")), ("not_found", true));
    says(&ends_with(run(&World::new(), "import"), 0).stderr, "no other client");
}

#[test]
fn one_broken_file_keeps_no_other_from_being_imported() {
    let world = World::new();
    world.write(world.home().join(".cursor/mcp.json"), "{\n  \"mcpServers\": {,}\n}");
    world.write(world.home().join(".llxprt/settings.json"), fixture("llxprt.json"));
    let plan = ok_json(&world, "import --yes");
    let broken = row(&plan["servers"], "client", "cursor");
    says(broken["reason"].as_str().unwrap(), "mcp.json:2:18)");
    says(&user_config(&world), "[servers.playwright]");
}

#[test]
fn a_file_that_was_made_for_the_entry_is_removed_with_its_folders() {
    let world = World::new();
    let before = tree(&world);
    for (client, ..) in FILES {
        run(&world, &format!("install {client}")).ok();
        assert_ne!(tree(&world), before, "{client}");
        run(&world, &format!("install {client}")).ok();
        run(&world, &format!("uninstall {client}")).ok();
        assert_eq!(tree(&world), before, "{client}");
    }
}

#[test]
fn a_file_that_has_changed_since_loses_only_the_entry() {
    for (client, name, path) in FILES {
        let world = World::new();
        let file = place(&world, path);
        world.write(&file, fixture(name));
        run(&world, &format!("install {client}")).ok();
        let comment = match path.rsplit_once('.').unwrap().1 {
            "json" | "jsonc" => "// changed\n",
            _ => "# changed\n",
        };
        fs::write(&file, format!("{comment}{}", read(&file))).unwrap();
        let ended = ends_with(run(&world, &format!("uninstall {client}")), 0);
        says(&ended.stderr, "changed since");
        assert_eq!(read(&file), format!("{comment}{}", fixture(name)), "{client}");
    }
}

#[test]
fn installing_again_another_way_replaces_the_entry_and_can_still_be_undone() {
    let world = crowded();
    let before = tree(&world);
    run(&world, "install cursor").ok();
    says(&ends_with(run(&world, "install cursor"), 0).stderr, "already has Capstan");
    run(&world, "install cursor --http").ok();
    let text = read(world.home().join(".cursor/mcp.json"));
    assert!(text.contains("8080/mcp") && !text.contains("\"serve\""), "{text}");
    run(&world, "uninstall cursor").ok();
    assert_eq!(tree(&world), before);
}

#[test]
fn a_dry_run_shows_the_entry_alone_and_changes_nothing() {
    let world = crowded();
    let before = tree(&world);
    let ended = ends_with(run(&world, "install cursor --dry-run"), 0);
    says(&ended.stdout, "\"capstan\"");
    assert!(!ended.stdout.contains("canary"), "{}", ended.stdout);
    assert_eq!(tree(&world), before);
    run(&world, "install cursor").ok();
    let with = tree(&world);
    says(&ends_with(run(&world, "uninstall cursor --dry-run"), 0).stderr, "would be restored");
    assert_eq!(tree(&world), with);
}

#[test]
fn a_file_that_cannot_be_changed_is_left_alone_and_the_reason_said() {
    let refuses = |text: &str, code: i32, pieces: &[&str]| {
        let world = World::new();
        let file = world.home().join(".cursor/mcp.json");
        world.write(&file, text);
        let before = tree(&world);
        let ended = ends_with(run(&world, "install cursor"), code);
        for piece in pieces {
            says(&ended.stderr, piece);
        }
        assert_eq!(tree(&world), before, "{text}");
        assert!(!world.state().join("capstan/placed.json").exists(), "{text}");
    };
    refuses("{\n  \"mcpServers\": {,}\n}", 3, &["mcp.json:2:18", "is not changed"]);
    refuses("{\"mcpServers\": []}", 3, &["`mcpServers` in this file"]);
    let other = "{\"mcpServers\": {\"capstan\": {\"command\": \"other\"}}}";
    refuses(other, 3, &["an entry named `capstan`", "rename or remove"]);

    let world = World::new();
    let file = world.home().join(".cursor/mcp.json");
    world.write(&file, other);
    says(&ends_with(run(&world, "uninstall cursor"), 3).stderr, "an entry named `capstan`");
    assert_eq!(read(&file), other);
    fs::write(&file, fixture("cursor.json")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    let before = tree(&world);
    let ended = ends_with(run(&world, "install cursor"), 3);
    says(&ended.stderr, "is marked read-only");
    assert_eq!(tree(&world), before);
}

#[test]
fn a_client_that_there_is_not_is_answered_with_the_nearest() {
    let world = World::new();
    for words in ["install crusor", "uninstall crusor", "import crusor"] {
        says(&ends_with(run(&world, words), 2).stderr, "'cursor'");
    }
    let (_, message, _) = failure(&ends_with(run(&world, "install goose -s project --json"), 2));
    says(&message, "goose has no project files");
    says(&ends_with(run(&world, "install cursor --http nowhere"), 2).stderr, "http://127.0.0.1");
}

#[test]
fn a_link_is_written_through_and_stays_and_one_out_of_a_project_is_refused() {
    let world = with_project();
    let (link, real) =
        (world.home().join(".cursor/mcp.json"), world.home().join("dot/cursor.json"));
    world.write(&real, fixture("cursor.json"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&real, &link).unwrap();
    run(&world, "install cursor").ok();
    assert!(link.is_symlink() && read(&real).contains("capstan"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    run(&world, "uninstall cursor").ok();
    assert!(link.is_symlink() && read(&real) == fixture("cursor.json"));

    let inside = world.project().join(".vscode/mcp.json");
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    symlink(&real, &inside).unwrap();
    let words = ["install", "vscode", "-s", "project", "--json"];
    let ended = world.capstan(words).within(world.project()).run();
    says(&failure(&ends_with(ended, 2)).1, "is a link that leaves the project");
    let words = ["import", "vscode", "-s", "project"];
    assert_eq!(world.capstan(words).within(world.project()).run().status, Some(4));
    assert_eq!(read(&real), fixture("cursor.json"));
}

#[test]
fn an_entry_of_ones_own_that_starts_capstan_is_respected_and_can_be_taken_out() {
    let world = World::new();
    let file = world.home().join(".cursor/mcp.json");
    world.write(
        &file,
        "{\"mcpServers\": {\"capstan\": {\"command\": \"capstan\", \"args\": [\"serve\"]}}}\n",
    );
    let ended = json(&ends_with(run(&world, "install cursor --json"), 0));
    assert_eq!(ended["result"]["change"], "by_hand");
    run(&world, "uninstall cursor").ok();
    assert_eq!(read(&file), "{\"mcpServers\": {}}\n");
}

#[test]
fn a_clients_file_that_cannot_be_read_is_named_and_fails_the_import() {
    let world = World::new();
    world.write(".cursor/mcp.json", "{ broken");
    let (_, message, hint) = failure(&ends_with(run(&world, "import cursor --json"), 3));
    says(&message, "~/.cursor/mcp.json cannot be read");
    says(&hint, "repair the file");
}

/// A list of commands that an import writes does not stop servers that are read in place.
#[test]
fn servers_that_are_read_in_place_still_start_after_an_import_of_allowed_commands() {
    let world = World::new();
    let program = binary("capstan-fixture");
    let servers = serde_json::json!({ "mcpServers": { "own": { "command": program } } });
    world.write(place(&world, ".config/mcp/servers.json"), servers.to_string());
    let zeph =
        "[mcp]\nallowed_commands = [\"npx\"]\n[[mcp.servers]]\nid = \"fs\"\ncommand = \"npx\"\n";
    world.write(place(&world, ".config/zeph/config.toml"), zeph);
    ends_with(run(&world, "import zeph --yes"), 0);
    says(&user_config(&world), "allowed_commands = [\"npx\", \"");
    assert_eq!(row(&ok_json(&world, "list"), "name", "own")["state"], "connected");
}

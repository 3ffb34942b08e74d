//! Plugins and bundles: named on the command line, unpacked, approved by that, called.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use capstan_testkit::{Ended, World, binary};
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::stage::{
    column, ends_with, failure, fixture, json, quoted, row, run, says, surroundings, with,
};

/// Runs `capstan` with a package.
#[track_caller]
fn run_with(world: &World, package: &Path, words: &str) -> Ended {
    let package = package.to_str().unwrap();
    world.capstan(["--config", package].into_iter().chain(words.split_whitespace())).run()
}

/// The manifest of a bundle around the fixture, which asks for a folder and a secret.
fn manifest(server: &Value) -> Value {
    json!({
        "manifest_version": "0.3", "name": "Hello Bundle", "version": "1.0.0",
        "description": "says hello", "author": { "name": "somebody" },
        "server": server,
        "user_config": {
            "token": { "type": "string", "sensitive": true, "required": true },
            "nickname": { "type": "string", "default": "nobody" },
        },
    })
}

fn server() -> Value {
    json!({
        "type": "binary", "entry_point": "bin/server",
        "mcp_config": {
            "command": "${__dirname}/bin/server",
            "args": ["--trace", "${user_config.token}/trace"],
            "env": { "GIVEN": "${user_config.token}", "NICK": "${user_config.nickname}" },
        },
    })
}

/// A program that becomes the fixture, which itself is large.
#[track_caller]
fn launcher() -> String {
    format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary("capstan-fixture").display())
}

/// Zips a manifest together with the fixture.
#[track_caller]
fn zipped(world: &World, manifest: &Value) -> PathBuf {
    let path = world.home().join("hello.mcpb");
    let mut writer = ZipWriter::new(File::create(&path).unwrap());
    let options = SimpleFileOptions::default();
    writer.start_file("manifest.json", options).unwrap();
    writer.write_all(manifest.to_string().as_bytes()).unwrap();
    // Without the bit that makes it executable, as other systems write it.
    writer.start_file("bin/server", options.unix_permissions(0o644)).unwrap();
    writer.write_all(launcher().as_bytes()).unwrap();
    writer.finish().unwrap();
    path
}

/// A world that allows everything.
#[track_caller]
fn world() -> World {
    with("[permissions]\nallow = [\"*\"]\n")
}

#[test]
fn a_bundle_is_unpacked_once_and_its_server_called() {
    let world = world();
    let bundle = zipped(&world, &manifest(&server()));
    let token = world.home().join("secret-folder");
    fs::create_dir(&token).unwrap();
    let call = |words: &str| {
        let words = words.split_whitespace();
        let all = ["--config", bundle.to_str().unwrap()].into_iter().chain(words);
        world.capstan(all).env("CAPSTAN_HELLO_BUNDLE__TOKEN", &token).run()
    };
    let listed = json(&ends_with(call("list --json"), 0));
    let listed = row(&listed, "name", "hello-bundle");
    assert_eq!((&listed["state"], &listed["scope"]), (&json!("connected"), &json!("flag")));

    let env = surroundings(call("call hello-bundle__env --json"));
    assert_eq!(env["env"]["GIVEN"], token.to_str().unwrap());
    assert_eq!(env["env"]["NICK"], "nobody");
    assert!(env["env"]["CAPSTAN_HELLO_BUNDLE__TOKEN"].is_null(), "{env:#}");
    let cwd = PathBuf::from(env["cwd"].as_str().unwrap());
    let unpacked: Vec<PathBuf> =
        fs::read_dir(cwd.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(unpacked, [cwd], "it is unpacked once, and it runs there");
    assert!(token.join("trace").exists(), "a setting stands in an argument too");

    for words in ["config show", "list", "get hello-bundle", "config check"] {
        let Ended { stdout, stderr, .. } = ends_with(call(words), 0);
        let all = stdout + &stderr;
        assert!(!all.contains("secret-folder"), "`{words}` shows a secret:\n{all}");
    }
    says(&call("config show --json").stdout, "hello.mcpb/manifest.json:");
    says(&call("config path").stdout, "hello.mcpb");
    let ended = ends_with(call("remove hello-bundle"), 2);
    says(&ended.stderr, "a file of another program");
}

#[test]
fn a_bundle_without_what_it_needs_fails_alone_and_says_what_to_set() {
    let world = with(&format!("[permissions]\nallow = [\"*\"]\n{}", fixture("f", &[])));
    let bundle = zipped(&world, &manifest(&server()));
    let listed = json(&run_with(&world, &bundle, "list --json"));
    let broken = row(&listed, "name", "hello-bundle");
    assert_eq!(broken["state"], "failed");
    says(broken["error"].as_str().unwrap(), "`CAPSTAN_HELLO_BUNDLE__TOKEN` is not set");
    assert_eq!(row(&listed, "name", "f")["state"], "connected");
    ends_with(run_with(&world, &bundle, "call f__echo"), 0);
    says(&ends_with(run_with(&world, &bundle, "config check"), 3).stderr, "manifest.json");
}

#[test]
fn a_bundle_with_a_bad_manifest_is_refused_with_its_place() {
    let world = world();
    let mut server = server();
    server["type"] = json!("ruby");
    let bundle = zipped(&world, &manifest(&server));
    let ended = ends_with(run_with(&world, &bundle, "config check --json"), 3);
    let problems = &json(&ended);
    let problem = row(problems, "key", "server.type");
    says(problem["place"]["file"].as_str().unwrap(), "hello.mcpb/manifest.json");
    says(problem["help"].as_str().unwrap(), "`binary`");
}

#[test]
fn an_archive_that_is_no_bundle_starts_nothing() {
    let world = world();
    let path = world.home().join("x.mcpb");
    world.write(&path, "no archive");
    for words in ["list --json", "call f__echo --json", "config show --json"] {
        let ended = ends_with(run_with(&world, &path, words), 3);
        let (code, message, _) = failure(&ended);
        assert_eq!(code, "invalid_config");
        says(&message, "not a whole zip archive");
    }
    let ended = ends_with(run_with(&world, &world.home().join("absent.mcpb"), "list"), 3);
    says(&ended.stderr, "does not exist");
}

#[test]
fn an_unpacked_bundle_is_used_where_it_lies() {
    let world = world();
    let folder = world.home().join("unpacked");
    world.write(folder.join("manifest.json"), manifest(&server()).to_string());
    world.write(folder.join("bin/server"), launcher());
    fs::set_permissions(folder.join("bin/server"), fs::Permissions::from_mode(0o700)).unwrap();
    let words = ["--config", folder.to_str().unwrap(), "call", "hello-bundle__env", "--json"];
    let run = world.capstan(words).env("CAPSTAN_HELLO_BUNDLE__TOKEN", world.home()).run();
    let cwd = surroundings(run)["cwd"].clone();
    assert_eq!(Path::new(cwd.as_str().unwrap()), folder.canonicalize().unwrap());
}

/// A plugin with a server in each place where one can be.
#[track_caller]
fn plugin(world: &World) -> PathBuf {
    let folder = world.home().join("plugins/acme");
    let command = quoted(binary("capstan-fixture").to_str().unwrap());
    let entry = format!("{{ \"command\": {command}, \"args\": [] }}");
    let manifest = "{ \"name\": \"acme\", \"mcpServers\": [\"./more/servers.json\"] }";
    world.write(folder.join(".claude-plugin/plugin.json"), manifest);
    world.write(folder.join(".mcp.json"), format!("{{ \"db\": {entry} }}"));
    let more = format!("{{ \"mcpServers\": {{ \"web\": {entry} }} }}");
    world.write(folder.join("more/servers.json"), more);
    folder
}

#[test]
fn the_servers_of_a_plugin_carry_its_name_and_know_its_folder() {
    let world = world();
    let folder = plugin(&world);
    let listed = json(&ends_with(run_with(&world, &folder, "list --json"), 0));
    assert_eq!(column(&listed, "name"), ["acme-web", "acme-db"]);
    assert_eq!(column(&listed, "state"), ["connected", "connected"]);
    for id in ["acme-db__env", "acme:db__env", "mcp__acme-db__env"] {
        let ended = run_with(&world, &folder, &format!("call {id} --json"));
        let root = surroundings(ended)["env"]["CLAUDE_PLUGIN_ROOT"].clone();
        assert_eq!(Path::new(root.as_str().unwrap()), folder.canonicalize().unwrap(), "{id}");
    }
    says(&run_with(&world, &folder, "config show").stdout, "acme:db");
    says(&run_with(&world, &folder, "get acme:db").stdout, "acme/.mcp.json:1");
    for words in ["remove acme:db", "disable acme:db"] {
        let ended = ends_with(run_with(&world, &folder, words), 2);
        says(&ended.stderr, "a file of another program");
    }
}

#[test]
fn a_plugin_that_reaches_out_of_its_folder_is_refused() {
    let world = world();
    let folder = plugin(&world);
    let outside = world.home().join("outside.json");
    world.write(&outside, fs::read_to_string(folder.join("more/servers.json")).unwrap());
    fs::remove_file(folder.join("more/servers.json")).unwrap();
    let ended = ends_with(run_with(&world, &folder, "list"), 3);
    says(&ended.stderr, "more/servers.json, which does not exist");
    std::os::unix::fs::symlink(&outside, folder.join("more/servers.json")).unwrap();
    says(
        &ends_with(run_with(&world, &folder, "list"), 3).stderr,
        "is a link that leaves its plugin",
    );
    let manifest = "{ \"name\": \"acme\", \"mcpServers\": \"../../outside.json\" }";
    world.write(folder.join(".claude-plugin/plugin.json"), manifest);
    says(&ends_with(run_with(&world, &folder, "list"), 3).stderr, "not in the plugin's folder");
    let empty = world.home().join("empty");
    fs::create_dir(&empty).unwrap();
    says(&ends_with(run_with(&world, &empty, "list"), 3).stderr, "neither a plugin nor a bundle");
}

#[test]
fn a_project_brings_no_plugin_and_no_bundle() {
    let world = world();
    let folder = plugin(&world);
    let project = world.project();
    fs::create_dir_all(project.join(".git")).unwrap();
    // What is read unasked must be a file; a folder of that name is no plugin.
    let copy = project.join(".mcp.json");
    fs::create_dir_all(&copy).unwrap();
    fs::copy(folder.join(".mcp.json"), copy.join(".mcp.json")).unwrap();
    says(&ends_with(run(&world, "list"), 3).stderr, "not a regular file");
}

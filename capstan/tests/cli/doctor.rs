//! `capstan doctor`: what is wrong, and what to do about it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use capstan_testkit::World;

use crate::stage::{column, ends_with, fixture, json, ok_json, row, run, says, with};

#[test]
fn all_is_well() {
    let world = with(&format!("[gateway]\nlisten = \":0\"\n\n{}", fixture("f", &[])));
    let ended = ends_with(run(&world, "doctor --strict"), 0);
    world.snapshots().bind(|| {
        insta::assert_snapshot!(ended.stdout, @"
    ● ok      configuration: [HOME]/.config/capstan/config.toml is read
    ● ok      PATH: is set
    ● ok      configuration folder: [HOME]/.config/capstan can be written
    ● ok      state folder: [HOME]/.local/state/capstan can be written
    ● ok      control socket: no gateway is running
    ● ok      gateway address: 127.0.0.1:0 is free
    ● ok      keyring: there is no session bus; logins and secrets are stored in a file
    ● ok      clock: is not behind what was written last
    ● ok      state database: [HOME]/.local/state/capstan/state.db can be used
    ● ok      audit log: 0 entries, whole
    ● ok      server f: connected, 18 tools
    ");
    });
    let checks = ok_json(&world, "doctor");
    assert_eq!(column(&checks, "status"), ["ok"; 11]);
    let keys: Vec<&String> = checks[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["check", "status", "detail", "fix"]);
}

#[test]
fn what_is_wrong_is_named_with_the_remedy() {
    let world = with(&format!(
        "[servers.gone]\ncommand = \"no-such-program\"\n\n[servers.typo]\ncomand = \"npx\"\n\n\
         [servers.off]\ncommand = \"x\"\nenabled = false\n\n{}",
        fixture("dies", &["--exit", "3"])
    ));
    let checks = ok_json(&world, "doctor");
    let check = |name: &str| row(&checks, "check", name);
    says(check("server gone")["detail"].as_str().unwrap(), "`no-such-program` was not found");
    assert_eq!(check("servers.typo.comand")["fix"], "did you mean `command`?");
    assert_eq!(check("server off")["status"], "ok");
    says(check("server dies")["detail"].as_str().unwrap(), "exiting with 3");
    for name in ["server gone", "server typo", "server dies", "servers.typo.comand"] {
        let check = check(name);
        assert_eq!(check["status"], "error", "{name}");
        assert!(check["fix"].is_string(), "{name} has no remedy");
    }
    says(&run(&world, "doctor").stdout, "○ error   server gone: ");
}

#[test]
fn every_kind_of_server_gets_the_remedy_that_fits_it() {
    // A port that nobody listens on: it was ours a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let document = r#"{"openapi":"3.0.3","info":{"title":"t","version":"1"},
        "paths":{"/a":{"get":{"operationId":"a","responses":{}}}}}"#;
    let world = with(&format!(
        "[servers.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n\n[servers.api.openapi]\n\
         document = \"a.json\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\n[servers.token]\n\
         command = \"x\"\nenv = {{ KEY = \"${{MY_KEY}}\" }}\n\n[servers.barred]\ncommand = \"x\"\n\n\
         [mcp]\nallowed_commands = [\"y\"]\n"
    ));
    world.write(".config/capstan/a.json", document);
    let checks = ok_json(&world, "doctor --wait 20s");
    for (name, detail, fix) in [
        ("server web", "no connection", "`url` under `[servers.web]`"),
        ("server api", &*format!("cannot reach http://127.0.0.1:{port}: "), "`base_url`"),
        ("server token", "`servers.token.env.KEY` needs", "`export MY_KEY=…`"),
        ("server token", "variable `MY_KEY`, which is not set", "`export MY_KEY=…`"),
        (
            "server barred",
            "is not listed",
            "to allow its command, add it to `mcp.allowed_commands`",
        ),
    ] {
        let check = row(&checks, "check", name);
        assert_eq!(check["status"], "error", "{check}");
        says(check["detail"].as_str().unwrap(), detail);
        says(check["fix"].as_str().unwrap(), fix);
        assert!(!check["fix"].as_str().unwrap().contains("by hand"), "{check}");
    }
}

#[test]
fn only_strict_makes_it_fail() {
    let world = with("[servers.gone]\ncommand = \"/nowhere\"\n");
    ends_with(run(&world, "doctor"), 0);
    let ended = ends_with(run(&world, "doctor --strict --json"), 1);
    assert!(json(&ended).is_array());
}

#[test]
fn one_server_alone_is_looked_at() {
    let world = with(&[fixture("a", &[]), fixture("b", &["--exit", "1"])].join("\n"));
    assert_eq!(column(&ok_json(&world, "doctor a"), "check"), ["server a"]);
    ends_with(run(&world, "doctor a --strict"), 0);
    ends_with(run(&world, "doctor b --strict"), 1);
    let ended = ends_with(run(&world, "doctor c"), 4);
    says(&ended.stderr, "no server named `c`");
}

#[test]
fn a_server_that_hangs_is_given_up_on() {
    let world = with(&fixture("f", &["--silent"]));
    let checks = ok_json(&world, "doctor f --wait 1s");
    let check = row(&checks, "check", "server f");
    assert_eq!(check["detail"], "no answer within 1s");
    says(check["fix"].as_str().unwrap(), "`startup_timeout` under `[servers.f]`");
}

#[test]
fn a_broken_file_is_a_finding_too() {
    let world = with("[permissions]\nalow = []\n");
    let checks = ok_json(&world, "doctor");
    assert_eq!(row(&checks, "check", "permissions.alow")["status"], "error");
    ends_with(run(&world, "doctor --strict"), 1);
    let world = with("nonsense");
    let ended = ends_with(run(&world, "doctor --strict --json"), 1);
    says(&ended.stdout, "not valid TOML");
}

/// The finding on something, by `doctor` in a world with this configuration.
#[track_caller]
fn finding(config: &str, variables: &[(&str, &str)], name: &str) -> (String, String, String) {
    finding_in(&with(config), variables, name)
}

#[track_caller]
fn finding_in(world: &World, variables: &[(&str, &str)], name: &str) -> (String, String, String) {
    let doctor = world.capstan(["doctor", "--json", "--wait", "1s"]);
    let doctor = variables.iter().fold(doctor, |doctor, (name, value)| doctor.env(name, value));
    let checks = json(&ends_with(doctor.run(), 0));
    let check = row(&checks, "check", name).clone();
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("detail"), text("fix"))
}

#[test]
fn programs_that_start_servers_are_looked_for_and_the_remedy_is_named() {
    for (command, remedy) in [
        ("npx", "install Node.js 20 or newer"),
        ("uvx", "install uv"),
        ("docker", "install Docker"),
        ("python3", "install Python"),
    ] {
        let config = format!("[servers.x]\ncommand = \"{command}\"\n");
        let nowhere = [("PATH", "/nowhere")];
        let (status, _, fix) = finding(&config, &nowhere, &format!("program {command}"));
        assert_eq!(status, "error", "{command}");
        says(&fix, remedy);
    }
    // Whoever is switched off needs nothing.
    let world = with("[servers.x]\ncommand = \"npx\"\nenabled = false\n");
    assert!(!run(&world, "doctor").stdout.contains("npx"));
}

#[test]
fn an_old_node_is_told_of() {
    for (version, status) in [("v12.22.9", "warning"), ("v22.1.0", "ok")] {
        let world = with("[servers.x]\ncommand = \"npx\"\n");
        for (name, text) in [("npx", ""), ("node", &*format!("echo {version}"))] {
            let script = world.write(format!("bin/{name}"), format!("#!/bin/sh\n{text}\n"));
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = world.home().join("bin");
        let found = finding_in(&world, &[("PATH", path.to_str().unwrap())], "program npx");
        assert_eq!(found.0, status, "{found:?}");
    }
}

#[test]
fn a_docker_that_does_not_answer_is_told_of() {
    let config = "[servers.x]\ncommand = \"docker\"\n";
    let (status, detail, fix) =
        finding(config, &[("DOCKER_HOST", "unix:///nowhere.sock")], "Docker");
    assert_eq!(status, "error");
    says(&detail, "does not answer at /nowhere.sock");
    says(&fix, "start it");
    assert_eq!(finding(config, &[("DOCKER_HOST", "tcp://h:1")], "Docker").0, "ok");
}

#[test]
fn an_address_that_somebody_has_is_told_of() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = format!("[gateway]\nlisten = \":{port}\"\n");
    let (status, detail, fix) = finding(&config, &[], "gateway address");
    assert_eq!(status, "warning");
    says(&detail, "is in use by another program");
    says(&fix, "--http :0");
    assert_eq!(finding("[gateway]\nlisten = \"x\"\n", &[], "gateway address").0, "error");
}

#[test]
fn a_server_that_two_files_describe_is_told_of() {
    let world = with("[servers.x]\ncommand = \"a\"\n");
    world.write(".config/mcp/servers.json", r#"{"mcpServers":{"x":{"command":"b"}}}"#);
    let (status, detail, fix) = finding_in(&world, &[], "servers.x");
    assert_eq!(status, "warning");
    says(&detail, "mcp/servers.json defines it too");
    says(&fix, "rename one of them");
}

#[test]
fn a_clock_that_is_behind_is_told_of() {
    let world = with("");
    let log = world.write(".local/state/capstan/audit.jsonl", "");
    let later = SystemTime::now() + Duration::from_hours(2);
    fs::File::options().write(true).open(log).unwrap().set_modified(later).unwrap();
    let (status, detail, fix) = finding_in(&world, &[], "clock");
    assert_eq!(status, "error", "{detail}");
    says(&fix, "timedatectl");
}

#[test]
fn an_empty_path_is_noticed() {
    let ended = World::new().capstan(["doctor", "--json"]).env("PATH", "").run();
    assert_eq!(row(&json(&ends_with(ended, 0)), "check", "PATH")["status"], "error");
}

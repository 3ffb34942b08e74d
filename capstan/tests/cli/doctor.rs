//! `capstan doctor`: what is wrong, and what to do about it.

use capstan_testkit::World;

use crate::stage::{column, ends_with, fixture, json, ok_json, row, run, says, with};

#[test]
fn all_is_well() {
    let world = with(&fixture("f", &[]));
    let ended = ends_with(run(&world, "doctor --strict"), 0);
    world.snapshots().bind(|| {
        insta::assert_snapshot!(ended.stdout, @"
    ● ok      configuration: [HOME]/.config/capstan/config.toml is read
    ● ok      PATH: is set
    ● ok      audit log: 0 entries, whole
    ● ok      server f: connected, 18 tools
    ");
    });
    let checks = ok_json(&world, "doctor");
    assert_eq!(column(&checks, "status"), ["ok"; 4]);
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

#[test]
fn an_empty_path_is_noticed() {
    let ended = World::new().capstan(["doctor", "--json"]).env("PATH", "").run();
    assert_eq!(row(&json(&ends_with(ended, 0)), "check", "PATH")["status"], "error");
}

//! The world a test runs programs in.

use std::time::Duration;

use capstan_testkit::{World, alive, binary, wait_until};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const ENV: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"env"}}"#;

#[test]
fn programs_find_nothing_but_path_home_and_xdg() {
    let world = World::new();
    let run = world.program(binary("capstan-fixture"), [""; 0]);
    let told = run.env("EXTRA", "1").stdin(format!("{INITIALIZE}\n{ENV}\n")).run().ok();
    let told: serde_json::Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    let told = &told["result"]["structuredContent"];
    let mut names: Vec<&str> =
        told["env"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let xdg = ["CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "RUNTIME_DIR", "STATE_HOME"];
    let xdg = xdg.map(|name| format!("XDG_{name}"));
    let mut expected = vec!["EXTRA", "HOME", "PATH"];
    expected.extend(xdg.iter().map(String::as_str));
    assert_eq!(names, expected);
    assert_eq!(told["cwd"], world.project().to_str().unwrap());
    assert_eq!(told["env"]["HOME"], world.home().to_str().unwrap());
}

#[test]
fn a_run_tells_status_and_both_outputs() {
    let world = World::new();
    let ended = world.program(binary("capstan-fixture"), ["--exit", "3"]).run();
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(3), ""));
    assert_eq!(ended.stderr, "fixture: exiting with 3\n");
}

#[test]
#[should_panic(expected = "has not ended within")]
fn a_run_beyond_its_limit_is_killed_and_fails_the_test() {
    let world = World::new();
    let run = world.program(binary("capstan-fixture"), ["--start-delay-ms", "600000"]);
    run.limit(Duration::from_millis(50)).run();
}

#[cfg(unix)]
#[test]
fn a_child_that_keeps_the_output_open_fails_the_test_too() {
    use rustix::process::{Pid, Signal, kill_process};

    let world = World::new();
    let file = world.home().join("pids");
    let run = world.program(binary("capstan-fixture"), ["--spawn", file.to_str().unwrap()]);
    let ran = std::thread::spawn(|| run.limit(Duration::from_secs(2)).run()).join();
    let why = *ran.unwrap_err().downcast::<String>().unwrap();
    assert!(why.contains("has not closed its output"), "{why}");

    let pids = std::fs::read_to_string(file).unwrap();
    let pids: Vec<u32> = pids.lines().map(|line| line.parse().unwrap()).collect();
    let [detached, plain] = pids[..] else { panic!("two children, not {pids:?}") };
    assert!(wait_until(|| !alive(plain), Duration::from_secs(20)), "the group was not killed");
    assert!(alive(detached), "what left the group is for the test to find");
    kill_process(Pid::from_raw(i32::try_from(detached).unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[test]
#[should_panic(expected = "ended with Some(3)")]
fn a_failed_run_is_not_ok() {
    World::new().program(binary("capstan-fixture"), ["--exit", "3"]).run().ok();
}

#[test]
#[should_panic(expected = "cargo build --workspace")]
fn a_program_that_is_not_built_is_asked_for() {
    binary("capstan-never-built");
}

#[test]
fn configuration_lies_where_programs_look_for_it() {
    let world = World::new();
    let user = world.write_user_config("a = 1");
    let project = world.write_project_config("b = 1");
    assert_eq!(user, world.config().join("capstan/config.toml"));
    assert_eq!(project, world.project().join(".capstan/config.toml"));
    assert_eq!(std::fs::read_to_string(user).unwrap(), "a = 1");
}

#[test]
fn worlds_share_nothing() {
    let (one, two) = (World::new(), World::new());
    assert_ne!(one.home(), two.home());
    let home = one.home().to_owned();
    drop(one);
    assert!(!home.exists() && two.home().exists());
}

#[test]
fn filters_hide_what_differs_between_runs_and_nothing_else() {
    let world = World::new();
    let text = format!(
        "{}/x {} v{} at 2026-10-25T02:30:00.5Z in 1.25 ms, 30s; 10.1.0 and 3 servers stay",
        world.project().display(),
        binary("capstan-fixture").display(),
        env!("CARGO_PKG_VERSION"),
    );
    world.snapshots().bind(|| {
        insta::assert_snapshot!(
            text,
            @"[HOME]/project/x [BIN]/capstan-fixture [VERSION] at [TIME] in [DURATION], [DURATION]; 10.1.0 and 3 servers stay"
        );
    });
}

//! A server that speaks both eras, used in each of them through a gateway: the same as directly.

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::remote::{Remote, beside, use_it};
use crate::stdio::entry;
use crate::{ALLOW, LIMIT, installed};

/// Has a client of this era do everything at an address or with a program; what it has seen.
#[track_caller]
fn seen(world: &World, era: &str, place: &[&str]) -> Value {
    let script = beside("eras_peer.py").display().to_string();
    let words = [&[script.as_str(), era], place].concat();
    let said = world.program(installed("python"), words).limit(LIMIT).run().ok();
    serde_json::from_str(&said).unwrap()
}

/// The questions are asked and the log is heard in the legacy era, without a level being set.
#[track_caller]
fn assert_complete(seen: &Value) {
    let answers = json!({
        "ask": [false, "accept ann"], "sample": [false, "hi"], "talk": [false, "done"]
    });
    assert_eq!(seen["answers"], answers);
    assert_eq!(seen["heard"], json!(["line 0", "line 1", "line 2", "line 3"]));
}

#[test]
fn each_client_of_a_dual_era_server_over_http_sees_what_it_sees_directly() {
    let world = World::new();
    let remote = Remote::python(&world, "dual");
    use_it(&world, &remote.url, "");
    let direct = ["legacy", "2026-07-28"].map(|era| seen(&world, era, &[&remote.url]));
    assert_complete(&direct[0]);
    let mut command = world.capstan(["serve", "--http", ":0"]).into_command();
    let gateway = Remote::start(&world, &mut command);
    let url = gateway.url.replace("/mcp", "/servers/it/mcp");
    // In turns, so that each era finds the connection of the other one.
    for _ in 0..2 {
        let through = ["legacy", "2026-07-28"].map(|era| seen(&world, era, &[&url]));
        assert_eq!(through, direct);
    }
}

#[test]
fn a_dual_era_server_over_stdio_speaks_the_era_of_its_first_client() {
    let world = World::new();
    let (python, script) = (installed("python"), beside("python_dual.py").display().to_string());
    let direct = seen(&world, "legacy", &[&python, &script, "stdio"]);
    assert_complete(&direct);
    world.write_user_config(&format!("{ALLOW}{}", entry("it", &[&python, &script, "stdio"], "")));
    // The first gateway has no lists and starts the server for them; the second one has.
    for _ in 0..2 {
        let mut command = world.capstan(["serve", "--http", ":0"]).into_command();
        let gateway = Remote::start(&world, &mut command);
        let url = gateway.url.replace("/mcp", "/servers/it/mcp");
        assert_eq!(seen(&world, "legacy", &[&url]), direct);
    }
}

/// The reference server asks for roots outside of calls: after the handshake and after each change.
#[test]
fn a_server_that_asks_outside_of_calls_gets_the_roots_of_its_only_client() {
    let world = World::new();
    let everything = installed("mcp-server-everything");
    let script = beside("roots_peer.py").display().to_string();
    let shown = |place: &[&str]| {
        let words = [&["-W", "ignore", script.as_str()], place].concat();
        world.program(installed("python"), words).limit(LIMIT).run().ok()
    };
    let direct = shown(&[&everything, "stdio"]);
    world.write_user_config(&format!("{ALLOW}{}", entry("it", &[&everything, "stdio"], "")));
    let mut command = world.capstan(["serve", "--http", ":0"]).into_command();
    let gateway = Remote::start(&world, &mut command);
    let url = gateway.url.replace("/mcp", "/servers/it/mcp");
    // The second client finds a server that was told of the first one's roots.
    for _ in 0..2 {
        assert_eq!(shown(&[&url]), direct);
    }
}

//! Servers that come and go behind a gateway: no start without need, no process without use.

use std::fs;

use capstan_testkit::{World, binary, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::leftovers::running_in;
use crate::stage::{ALL, Gateway, LIMIT, echoed, fixture, http, modern, tool_names, with};

/// How many servers somebody with many has.
const MANY: usize = 50;

/// The servers that run in the world, each with its process id.
fn servers(world: &World) -> Vec<(i32, String)> {
    let running = running_in(world).into_iter();
    let split = running.filter_map(|line| {
        let (pid, words) = line.split_once(' ')?;
        Some((pid.parse().ok()?, words.to_owned()))
    });
    // A keeper has the words of its server behind its own.
    let is_server = |(_, words): &(i32, String)| {
        words.split(' ').next().is_some_and(|program| program.ends_with("capstan-fixture"))
    };
    split.filter(is_server).collect()
}

#[track_caller]
fn wait_for_servers(world: &World, count: usize) {
    let there = wait_until(|| servers(world).len() == count, LIMIT);
    assert!(there, "{count} servers are meant to run, not {:#?}", servers(world));
}

/// Waits until so many servers are remembered with all of their lists.
#[track_caller]
fn wait_for_manifests(world: &World, count: usize) {
    let whole = || {
        let files = fs::read_dir(world.cache().join("capstan/manifests")).into_iter().flatten();
        let texts = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.filter(|text| text.contains("\"resourceTemplates\":")).count()
    };
    assert!(wait_until(|| whole() == count, LIMIT), "{} of {count} are remembered", whole());
}

/// Asks until the list has so many tools.
#[track_caller]
fn wait_for_tools(gateway: &mut Gateway, count: usize) -> Vec<String> {
    let (mut names, mut id) = (Vec::new(), 1000);
    let there = || {
        id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        gateway.send(&request.to_string());
        // Meanwhile it may tell that lists have changed.
        let mut answer = gateway.hear();
        while answer["id"] != id {
            answer = gateway.hear();
        }
        names = tool_names(&answer);
        names.len() == count
    };
    assert!(wait_until(there, LIMIT), "{} tools instead of {count}", names.len());
    names
}

#[track_caller]
fn call(gateway: &mut Gateway, id: u64, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    let method = "tools/call";
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    gateway.send(&request.to_string());
    let mut answer = gateway.hear();
    while answer["id"] != id {
        answer = gateway.hear();
    }
    answer
}

/// Holes 7.
#[test]
fn a_server_that_ends_a_second_after_each_start_is_started_five_times_and_then_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let options = ["--era", "legacy", "--live-ms", "1000", "--trace", trace.to_str().unwrap()];
    let world = with(&format!("{ALL}{}", fixture("s", &options)));
    let starts = || {
        let lines = fs::read_to_string(&trace).unwrap_or_default();
        lines.matches(r#""method":"initialize""#).count()
    };
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let mut id = 0;
    let mut ask = || {
        id += 1;
        call(&mut gateway, id, "s__echo", &json!({ "text": "hi" })).to_string()
    };
    let given_up = "it failed 5 times in a row and is tried again in ";
    assert!(wait_until(|| ask().contains(given_up), LIMIT));
    assert_eq!(starts(), 5);
    for _ in 0..20 {
        assert!(ask().contains(given_up));
    }
    assert_eq!(starts(), 5, "nobody is started while calls fail at once");
}

#[test]
fn a_warm_start_with_many_servers_answers_every_list_and_starts_none() {
    let names: Vec<String> = (0..MANY).map(|number| format!("s{number}")).collect();
    let entries: String = names.iter().map(|name| fixture(name, &["--era", "legacy"])).collect();
    let world = with(&format!("{ALL}{entries}"));
    let mut cold = Gateway::start(&world, "");
    let first = cold.initialize("2025-11-25");
    let tools = wait_for_tools(&mut cold, MANY * 18);
    wait_for_manifests(&world, MANY);
    cold.hang_up();
    assert_eq!(cold.end(), Some(0));

    let mut warm = Gateway::start(&world, "");
    let hello = warm.initialize("2025-11-25");
    assert!(hello["capabilities"]["tools"].is_object(), "{first} {hello}");
    assert!(hello["capabilities"]["resources"].is_object(), "{hello}");
    assert_eq!(tool_names(&warm.ask(1, "tools/list", &json!({}))), tools);
    for (id, method, member) in [
        (2, "prompts/list", "prompts"),
        (3, "resources/list", "resources"),
        (4, "resources/templates/list", "resourceTemplates"),
    ] {
        let answer = warm.ask(id, method, &json!({}));
        assert_eq!(answer["result"][member].as_array().unwrap().len(), MANY, "{method}");
    }
    assert_eq!(servers(&world), [], "nobody has used any");
    let said = call(&mut warm, 5, "s7__echo", &json!({ "text": "hi" }));
    assert_eq!(echoed(&said), "hi");
    wait_for_servers(&world, 1);
    warm.hang_up();
    assert_eq!(warm.end(), Some(0));
}

#[test]
fn a_server_that_waits_for_a_list_is_started_by_a_clients_first_one_and_not_by_the_gateway() {
    let waits = format!("{}start = \"on-list\"\n", fixture("waits", &["--era", "legacy"]));
    let runs = format!("{}start = \"eager\"\n", fixture("runs", &[]));
    let world = with(&format!("{ALL}{waits}{runs}"));
    for remembered in [false, true] {
        let mut gateway = Gateway::start(&world, "");
        gateway.initialize("2025-11-25");
        let said = call(&mut gateway, 1, "runs__echo", &json!({ "text": "hi" }));
        assert_eq!(echoed(&said), "hi");
        let running = servers(&world);
        assert!(matches!(&running[..], [(_, words)] if !words.contains("legacy")), "{running:?}");
        if remembered {
            assert_eq!(tool_names(&gateway.ask(2, "tools/list", &json!({}))).len(), 36);
        }
        wait_for_tools(&mut gateway, 36);
        wait_for_servers(&world, 2);
        wait_for_manifests(&world, 2);
        gateway.hang_up();
        gateway.end();
    }
}

#[test]
fn c60_an_unused_server_without_items_is_stopped_and_one_with_prompts_only_is_kept() {
    let empty = fixture("empty", &["--empty"]);
    let prompts = fixture("prompts", &["--no-tools"]);
    let world = with(&format!("{ALL}{empty}{prompts}"));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    wait_for_manifests(&world, 2);
    wait_for_servers(&world, 1);
    assert!(servers(&world)[0].1.contains("--no-tools"), "{:?}", servers(&world));
    let listed = gateway.ask(1, "prompts/list", &json!({}));
    assert_eq!(listed["result"]["prompts"][0]["name"], "prompts__greet", "{listed}");
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn the_first_list_has_the_tools_of_a_server_that_starts_slowly_over_both_transports() {
    let slow = |name: &str| {
        let server = binary("capstan-fixture").display().to_string();
        format!(
            "[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", \"sleep 3; exec '{server}'\"]\n"
        )
    };
    let config = format!("{ALL}{}{}", fixture("quick", &[]), slow("slow"));
    let world = with(&config);
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    assert_eq!(tool_names(&gateway.ask(1, "tools/list", &json!({}))).len(), 36);
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));

    let world = with(&config);
    let (gateway, address) = Gateway::listening(&world, "");
    let (method, params) = ("tools/list", modern(json!({})));
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list";
    let (status, body) = http(&address, head, &list.to_string());
    assert_eq!(status, 200, "{body}");
    assert_eq!(tool_names(&serde_json::from_str(&body).unwrap()).len(), 36);
    drop(gateway);
}

#[test]
fn c28_an_idle_server_is_stopped_stays_listed_and_comes_back_for_a_call() {
    let world = with(&format!("{ALL}{}idle_timeout = \"1s\"\n", fixture("s", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let tools = wait_for_tools(&mut gateway, 18);
    assert_eq!(echoed(&call(&mut gateway, 1, "s__echo", &json!({ "text": "a" }))), "a");
    wait_for_servers(&world, 0);
    assert_eq!(wait_for_tools(&mut gateway, 18), tools);
    assert_eq!(servers(&world), []);
    assert_eq!(echoed(&call(&mut gateway, 2, "s__echo", &json!({ "text": "b" }))), "b");
    // Longer than the idle time, and not cut.
    let slow = call(&mut gateway, 3, "s__slow", &json!({ "ms": 3500 }));
    assert!(slow["result"].is_object() && slow["result"]["isError"] != true, "{slow}");
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn a_killed_server_is_noticed_and_the_next_call_works() {
    let world = with(&format!("{ALL}{}", fixture("s", &[])));
    let (_gateway, address) = Gateway::listening(&world, "");
    let post = |id: u64, method: &str, params: Value| {
        let params = modern(params);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let name = body["params"]["name"].as_str().unwrap_or_default();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
             Mcp-Name: {name}"
        );
        http(&address, &head, &body.to_string())
    };
    let echo = |id| {
        let arguments = json!({ "text": "hi" });
        let (status, body) =
            post(id, "tools/call", json!({ "name": "s__echo", "arguments": arguments }));
        assert!(status == 200 && body.contains("hi") && !body.contains("isError\":true"), "{body}");
    };
    let metrics = || http(&address, "GET /metrics HTTP/1.1", "").1;
    echo(1);
    for piece in [
        "capstan_server_state{server=\"s\",state=\"connected\"} 1",
        "capstan_server_calls_per_hour{server=\"s\"} ",
        "capstan_server_stops_in_seconds{server=\"s\"} ",
        "capstan_server_memory_bytes{server=\"s\"} ",
        "capstan_server_cpu_seconds{server=\"s\"} ",
    ] {
        // Its other lists may still be read, and then nothing would stop it.
        let shown = || metrics().contains(piece);
        assert!(wait_until(shown, LIMIT), "no {piece} in {}", metrics());
    }
    for id in 2..5 {
        let [(pid, _)] = servers(&world)[..] else { panic!("one server") };
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        let noticed =
            || metrics().contains("capstan_server_state{server=\"s\",state=\"failed\"} 1");
        assert!(wait_until(noticed, LIMIT), "{}", metrics());
        echo(id);
    }
}

#[test]
fn a_server_that_dies_again_and_again_disturbs_no_other() {
    let entries: String = ["a", "b", "flapping", "c"].map(|name| fixture(name, &[])).concat();
    let world = with(&format!("{ALL}{entries}"));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    wait_for_tools(&mut gateway, 4 * 18);
    let mut told = Vec::new();
    for round in 0..8_u64 {
        let crash = json!({ "name": "flapping__crash", "arguments": {} });
        let crash =
            json!({ "jsonrpc": "2.0", "id": 100 + round, "method": "tools/call", "params": crash });
        gateway.send(&crash.to_string());
        for (at, name) in ["a__count", "b__count", "c__count"].into_iter().enumerate() {
            let id = 10 * round + u64::try_from(at).unwrap();
            let params = json!({ "name": name, "arguments": {} });
            let count = json!({ "jsonrpc": "2.0", "id": 1000 + id, "method": "tools/call", "params": params });
            gateway.send(&count.to_string());
        }
        let mut left = 4;
        while left > 0 {
            let answer = gateway.hear();
            match answer["id"].as_u64() {
                Some(id) if id >= 1000 => {
                    // The same process counts on: nobody has started it anew.
                    let count = answer["result"]["content"][0]["text"].clone();
                    assert_eq!(count, (round + 1).to_string(), "{answer}");
                    left -= 1;
                }
                Some(_) => {
                    told.push(answer.to_string());
                    left -= 1;
                }
                None => {}
            }
        }
    }
    let refused = told.iter().filter(|text| text.contains("times in a row")).count();
    assert!(refused > 0, "nobody was told when it is tried again: {told:#?}");
}

#[test]
fn another_entry_is_not_served_from_what_is_remembered() {
    let world = with(&format!("{ALL}{}", fixture("s", &["--tools", "3"])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let before = wait_for_tools(&mut gateway, 21);
    wait_for_manifests(&world, 1);
    gateway.hang_up();
    gateway.end();

    world.write_user_config(&format!("{ALL}{}", fixture("s", &["--tools", "5"])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    assert_ne!(wait_for_tools(&mut gateway, 23), before);
    assert_eq!(servers(&world).len(), 1);
    gateway.hang_up();
    gateway.end();
    // Nothing that looks like one is believed either.
    for file in fs::read_dir(world.cache().join("capstan/manifests")).unwrap().flatten() {
        fs::write(file.path(), "capstan-manifest-1 0000\n{}").unwrap();
    }
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    wait_for_tools(&mut gateway, 23);
    assert_eq!(servers(&world).len(), 1);
}

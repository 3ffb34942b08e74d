//! Files that change while the gateway runs.

use std::fs;

use capstan_testkit::{World, wait_until};
use rustix::process::Signal;
use serde_json::json;

use crate::leftovers::wait_until_empty;
use crate::scene::{Scene, fixtures, open_files, until_running};
use crate::stage::{ALL, LIMIT, fixture, with};

/// A server that can be told from others by its command line.
fn server(name: &str, mark: &str) -> String {
    fixture(name, &["--instructions", mark])
}

#[test]
fn servers_come_change_and_go_while_calls_run_and_the_others_notice_nothing() {
    let steady = server("steady", "m-steady");
    let world = with(&format!("{ALL}{steady}{}", server("c", "m-old")));
    let mut scene = Scene::start(&world);
    assert!(scene.has("c__echo") && scene.works("steady__echo"));
    let before = fixtures(&world, "m-steady");
    let slow = scene.begin("c__slow", &json!({ "ms": 3000 }));
    let changed = fixture("c", &["--instructions", "m-new", "--tools", "1"]);
    world.write_user_config(&format!("{ALL}{}{steady}{changed}", server("n", "m-n")));
    scene.appears("n__echo");
    scene.appears("c__tool_0");
    assert!(scene.works("c__tool_0"), "new calls go to the new server");
    // The long call ends on the connection it began on, which is closed then.
    let answer = scene.answer(slow);
    assert!(answer.get("error").is_none() && answer["result"]["isError"] != true, "{answer}");
    until_running(&world, "m-old", 0);
    until_running(&world, "m-new", 1);
    world.write_user_config(&format!("{ALL}{steady}{changed}"));
    scene.vanishes("n__echo");
    until_running(&world, "m-n", 0);
    assert!(scene.works("steady__echo") && !scene.works("n__echo"));
    assert_eq!(fixtures(&world, "m-steady"), before, "it was never started anew");
    scene.gateway.hang_up();
    assert_eq!(scene.gateway.end(), Some(0));
    wait_until_empty(&world);
}

#[test]
fn a_call_that_outlives_its_server_is_ended_with_the_gateway_and_nothing_is_left() {
    let world = with(&format!("{ALL}{}", server("c", "m-old")));
    let mut scene = Scene::start(&world);
    assert!(scene.works("c__echo"));
    scene.begin("c__hang", &json!({}));
    world.write_user_config(&format!("{ALL}{}", server("d", "m-d")));
    scene.appears("d__echo");
    until_running(&world, "m-old", 1);
    scene.gateway.signal(Signal::TERM);
    assert_eq!(scene.gateway.end(), Some(0));
    wait_until_empty(&world);
}

#[test]
fn a_server_whose_variable_is_not_set_keeps_no_rule_from_counting() {
    let world = with(&format!("{ALL}{}", server("c", "m-c")));
    let mut scene = Scene::start(&world);
    assert!(scene.works("c__echo"));
    let lacking = format!("{}env = {{ KEY = \"${{NOT_SET_HERE}}\" }}\n", server("k", "m-k"));
    let deny = "[permissions]\ndeny = [\"c__echo\"]\n";
    world.write_user_config(&format!("{deny}{}{lacking}", server("c", "m-c")));
    scene.vanishes("c__echo");
    assert!(!scene.works("c__echo"));
    scene.gateway.hang_up();
    assert_eq!(scene.gateway.end(), Some(0));
}

#[test]
fn a_broken_file_changes_nothing_and_says_where_it_is_broken() {
    let good = format!("{ALL}{}", server("f", "m-f"));
    let world = with(&good);
    let mut scene = Scene::start(&world);
    assert!(scene.works("f__echo"));
    let before = fixtures(&world, "m-f");
    let more = server("g", "m-g");
    for (broken, place) in [
        (format!("{good}{more}\n[servers\n"), ":11:9)"),
        (format!("{good}{more}colour = \"red\"\n"), "colour"),
        (format!("{good}[servers.g]\nurl = \"nonsense\"\n"), ":8:"),
        (format!("{good}{more}[nonsense]\na = 1\n"), "nonsense"),
        (format!("{good}{more}tiemout = \"1s\"\n"), "did you mean `timeout`?"),
    ] {
        world.write_user_config(&broken);
        let said = scene.gateway.says("the configuration is not reloaded");
        let file = world.config().join("capstan/config.toml");
        assert!(said.contains(&format!("{}:", file.display())), "{said}");
        assert!(said.contains(place), "{place} in {said}");
        assert!(scene.works("f__echo") && !scene.has("g__echo"), "{broken}");
        // One that is as before is no news, but that it can be used.
        world.write_user_config(&good);
        scene.gateway.says("is valid again");
    }
    assert_eq!(fixtures(&world, "m-f"), before);
    world.write_user_config(&format!("{good}{more}"));
    scene.appears("g__echo");
}

#[test]
fn a_file_that_is_put_in_the_place_of_another_is_seen_and_so_is_one_that_appears() {
    let world = World::new();
    let mut scene = Scene::start(&world);
    assert!(!scene.works("f__echo"));
    world.write_user_config(&format!("{ALL}{}", server("f", "m-f")));
    scene.appears("f__echo");
    let file = world.config().join("capstan/config.toml");
    let new = file.with_extension("new");
    fs::write(&new, format!("{ALL}{}", server("g", "m-g"))).unwrap();
    fs::rename(&new, &file).unwrap();
    scene.appears("g__echo");
    assert!(!scene.has("f__echo"));
    fs::remove_file(&file).unwrap();
    let said = scene.gateway.says("config.toml was removed");
    assert!(said.contains("its servers (g)") && said.contains("remaining servers: none"), "{said}");
    scene.vanishes("g__echo");
}

#[test]
fn what_needs_a_restart_is_named_by_reload_for_as_long_as_it_does() {
    let f = server("f", "m-f");
    let world = with(&format!("{ALL}{f}"));
    let mut scene = Scene::start(&world);
    assert!(scene.works("f__echo"));
    let reload = || world.capstan(["reload"]).run().stderr;
    assert_eq!(reload().trim(), "nothing has changed");
    world.write_user_config(&format!("[gateway]\nlisten = \":0\"\n\n{ALL}{f}"));
    scene.gateway.says("`gateway.listen` changed; restart the gateway to apply it");
    let said = reload();
    assert!(said.contains("nothing has changed since the last reload"), "{said}");
    assert!(said.contains("`gateway.listen` changed; restart the gateway"), "{said}");
    world.write_user_config(&format!("{ALL}{f}"));
    let reset = || !reload().contains("restart");
    assert!(wait_until(reset, LIMIT), "it is as it was at the start");
}

#[test]
fn another_rule_counts_for_the_next_call_and_the_server_stays() {
    let f = server("f", "m-f");
    let world = with(&format!("{ALL}{f}"));
    let mut scene = Scene::start(&world);
    assert!(scene.works("f__count"));
    let before = fixtures(&world, "m-f");
    world.write_user_config(&format!("{ALL}{f}[servers.f.permissions]\ndeny = [\"count\"]\n"));
    scene.vanishes("f__count");
    assert!(!scene.works("f__count") && scene.works("f__echo"));
    world.write_user_config(&format!("{ALL}{f}hide = [\"echo\"]\n"));
    scene.appears("f__count");
    assert!(scene.works("f__count") && !scene.works("f__echo"));
    assert_eq!(fixtures(&world, "m-f"), before);
}

#[test]
fn clients_are_told_only_of_what_looks_otherwise() {
    let f = server("f", "m-f");
    let world = with(&format!("{ALL}{f}"));
    let mut scene = Scene::start(&world);
    assert!(scene.has("f__echo"));
    // Seen by the server that comes with it.
    let off = "[servers.off]\ncommand = \"capstan-no-such-program\"\nenabled = false\n";
    world.write_user_config(&format!("# more\n{ALL}{f}description = \"d\"\n\n{off}"));
    world.write_user_config(&format!("# more\n{ALL}{f}description = \"d\"\n\n{off}"));
    scene.gateway.signal(Signal::HUP);
    let listed = || {
        let ended = world.capstan(["list", "--attach", "--json"]).run();
        ended.stdout.contains("\"off\"")
    };
    assert!(wait_until(listed, LIMIT));
    assert!(scene.works("f__echo") && scene.has("f__echo") && !scene.is_told());
}

#[test]
fn a_project_file_counts_as_it_was_approved_until_it_is_approved_anew() {
    let world = with(ALL);
    world.write("project/.git/HEAD", "");
    let file = "project/.capstan/config.toml";
    world.write(file, server("p", "m-p"));
    let trust = || world.capstan(["trust", "--yes"]).run();
    assert_eq!(trust().status, Some(0));
    let mut scene = Scene::start(&world);
    assert!(scene.works("p__echo"));
    world.write(file, format!("{}{}", server("p", "m-p"), server("q", "m-q")));
    let said = scene.gateway.says("is not trusted");
    assert!(said.contains("config.toml") && said.contains("capstan trust"), "{said}");
    assert!(scene.works("p__echo") && !scene.works("q__echo"));
    assert_eq!(fixtures(&world, "m-q"), Vec::<String>::new());
    assert_eq!(trust().status, Some(0));
    scene.appears("q__echo");
}

#[test]
fn what_needs_a_new_start_is_said() {
    let f = server("f", "m-f");
    let world = with(&format!("{ALL}{f}"));
    let scene = Scene::start(&world);
    let more = "[gateway]\nlisten = \"127.0.0.1:1\"\n\n[audit]\nretention = \"1h\"\n\n";
    world.write_user_config(&format!("{more}{ALL}{f}"));
    let said = scene.gateway.says("restart the gateway to apply it");
    assert!(said.contains("`gateway.listen`, `audit`"), "{said}");
}

#[test]
fn two_hundred_edits_under_load_fail_no_call_and_leave_nothing_behind() {
    let steady = server("steady", "m-steady");
    let edit = |number: usize| match number % 4 {
        0 => format!("{ALL}{steady}"),
        1 => format!("{ALL}{}{steady}", server("c", "m-c")),
        2 => format!("{ALL}{}{steady}hide = [\"big\"]\n", server("c", "m-c")),
        _ => format!("{ALL}{steady}{}", server("c", "m-other")),
    };
    let world = with(&edit(0));
    let mut scene = Scene::start(&world);
    assert!(scene.works("steady__echo"));
    let before = fixtures(&world, "m-steady");
    // Once there and back, so that everything is open that stays so.
    world.write_user_config(&edit(1));
    scene.appears("c__echo");
    world.write_user_config(&edit(0));
    scene.vanishes("c__echo");
    until_running(&world, "m-c", 0);
    let files = open_files(scene.gateway.child.id());
    for number in 1..=200 {
        world.write_user_config(&edit(number));
        for _ in 0..5 {
            assert!(scene.works("steady__echo"), "at edit {number}");
        }
        // From time to time it has to be in force, so that not all of them are taken as one.
        if number % 8 == 1 {
            scene.appears("c__echo");
        }
    }
    scene.vanishes("c__echo");
    until_running(&world, "m-c", 0);
    until_running(&world, "m-other", 0);
    assert_eq!(fixtures(&world, "m-steady"), before, "it was never started anew");
    let closed = wait_until(|| open_files(scene.gateway.child.id()) <= files, LIMIT);
    assert!(closed, "{files} before, {} now", open_files(scene.gateway.child.id()));
    scene.gateway.hang_up();
    assert_eq!(scene.gateway.end(), Some(0));
    wait_until_empty(&world);
}

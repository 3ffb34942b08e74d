//! `--debug` and `CAPSTAN_LOG`: the traffic and the servers' stderr, on stderr and nowhere else.

use crate::stage::{ends_with, fixture, run, says, with};

#[test]
fn c77_debug_shows_the_traffic_in_both_directions() {
    let world = with(&fixture("f", &["--stderr", "1"]));
    let plain = ends_with(run(&world, "call f__add a=1 b=2"), 0);
    assert_eq!((plain.stdout.as_str(), plain.stderr.as_str()), ("3\n", ""));

    let ended = ends_with(run(&world, "call f__add a=1 b=2 --debug"), 0);
    assert_eq!(ended.stdout, "3\n", "data stays alone on stdout");
    says(&ended.stderr, "→ {\"jsonrpc\":\"2.0\",\"id\":1");
    says(&ended.stderr, "← {\"jsonrpc\":\"2.0\",\"id\":1");
    says(&ended.stderr, "\"method\":\"tools/call\"");
    assert!(!ended.stderr.contains('\u{1b}'), "no colours where no terminal shows them");
}

#[test]
fn c77_the_stderr_of_a_server_is_shown_with_its_name() {
    let two = [fixture("one", &["--stderr", "1"]), fixture("two", &["--stderr", "1"])];
    let world = with(&two.join("\n"));
    let ended = ends_with(run(&world, "tools --debug"), 0);
    for name in ["one", "two"] {
        let of_server = |line: &&str| line.contains("fixture: line 1 of 1") && line.contains(name);
        assert_eq!(ended.stderr.lines().filter(of_server).count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn c77_a_filter_chooses_what_is_logged() {
    let two = [fixture("one", &["--stderr", "1"]), fixture("two", &["--stderr", "1"])];
    let world = with(&two.join("\n"));
    let logged = |filter: &str| {
        let run = world.capstan(["tools", "--json", "--refresh"]).env("CAPSTAN_LOG", filter);
        ends_with(run.run(), 0).stderr
    };
    assert_eq!(logged("off"), "");
    assert_eq!(logged(""), "");
    let stderr_only = logged("capstan::stderr=info");
    says(&stderr_only, "line 1 of 1");
    assert!(!stderr_only.contains("jsonrpc"), "{stderr_only}");
    let traffic_only = logged("capstan::wire=debug");
    says(&traffic_only, "jsonrpc");
    assert!(!traffic_only.contains("line 1 of 1"), "{traffic_only}");
    let one_server = logged("[server{name=one}]=debug");
    says(&one_server, "jsonrpc");
    assert!(!one_server.contains("name=two"), "{one_server}");
}

#[test]
fn a_filter_that_cannot_be_read_is_told_of_and_harms_nothing() {
    let world = with(&fixture("f", &[]));
    let run = world.capstan(["call", "f__echo"]).env("CAPSTAN_LOG", "a=b=c");
    let ended = ends_with(run.run(), 0);
    says(&ended.stderr, "CAPSTAN_LOG is not a log filter");
    assert_eq!(ended.stdout, "{}\n");
}

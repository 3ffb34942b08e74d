//! Everything that a server behind HTTP can do wrong: each has its code and its exit code, within
//! its limit, and nothing hangs.

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::peer::{Answer, Peer, Piece, Seen};
use crate::stage::{answering, ends, legacy, parsed, run, says, world_at};

/// Limits that are long enough for a loaded machine and short enough for a test.
const LIMITS: &str = "timeout = \"4s\"\nstartup_timeout = \"4s\"\ntype = \"http\"";

/// What a failed call must tell: exit code, code, whether it can be tried again, words.
type Told = (i32, &'static str, bool, &'static str);

#[track_caller]
fn check(what: &str, world: &World, told: Told) {
    let ended = ends(run(world, &["call", "s__do", "--json"]), told.0);
    let error = &parsed(&ended)["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&told.1.into(), &told.2.into()), "{what}");
    says(error["message"].as_str().unwrap(), told.3);
    let keys: Vec<&String> = error.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["code", "message", "hint", "retryable"], "{what}");
}

/// Checks what a call gets that is answered like this.
#[track_caller]
fn check_call(what: &str, answer: impl Fn() -> Answer + Send + Sync + 'static, told: Told) {
    let peer = Peer::new(answering(answer));
    check(what, &world_at(&format!("{}/mcp", peer.origin), LIMITS), told);
    assert_eq!(peer.count("tools/call"), 1, "{what}: sent once");
}

/// Checks what a call gets whose server answers nothing but this.
#[track_caller]
fn check_start(what: &str, answer: impl Fn() -> Answer + Send + Sync + 'static, told: Told) {
    let peer = Peer::new(move |_: &Seen| answer());
    let world = world_at(&format!("{}/mcp", peer.origin), LIMITS);
    check(what, &world, told);
    // The same server breaks no list.
    let listed = parsed(&ends(run(&world, &["list", "--json"]), 0));
    let state = if told.1 == "auth_failure" && what == "401" { "needs_login" } else { "failed" };
    assert_eq!(listed[0]["state"], state, "{what}: {listed}");
}

fn half_an_event() -> Answer {
    Answer::events("data: {\"jsonrpc\":\"2.0\",")
}

fn elsewhere() -> Answer {
    Answer::status(307).with("location", "http://127.0.0.1:9/mcp")
}

#[test]
fn a_connection_that_breaks_off() {
    let lost = (7, "outcome_unknown", false, "whether it took effect is not known");
    check_call("dropped", || Answer::status(200).then(Piece::Cut), lost);
    check_call("half an answer", || Answer::json("{").then(Piece::Cut), lost);
    check_call("half an event", || half_an_event().then(Piece::Cut), lost);
    let down = (7, "transient", true, "server `s`");
    check_start("dropped", || Answer::status(200).then(Piece::Cut), down);
}

#[test]
fn an_answer_that_does_not_come() {
    let late = (8, "transient", false, "did not answer within 4s");
    check_call("half an event", || half_an_event().then(Piece::Hold), late);
    check_call("one byte a second", || Answer::json("").then(Piece::Trickle), late);
    check_call("events, trickled", || Answer::events("").then(Piece::Trickle), late);
    let never = (7, "transient", true, "did not answer within 4s");
    check_start("silence", || Answer::json("").then(Piece::Hold), never);
    check_start("one byte a second", || Answer::json("").then(Piece::Trickle), never);
}

#[test]
fn a_status_instead_of_an_answer() {
    let table: [(u16, Told); 6] = [
        (401, (5, "auth_failure", false, "run `capstan login s`")),
        (403, (5, "auth_failure", false, "refused access")),
        (410, (4, "not_found", false, "HTTP status 410")),
        (429, (9, "rate_limited", true, "takes no more calls for now")),
        (500, (1, "server_error", false, "HTTP status 500")),
        (503, (7, "transient", true, "HTTP status 503")),
    ];
    for (status, told) in table {
        check_call(&status.to_string(), move || Answer::status(status), told);
        check_start(&status.to_string(), move || Answer::status(status), told);
    }
}

#[test]
fn an_answer_that_is_none() {
    let html = || Answer::typed("text/html", "<html>hello</html>");
    check_call("html", html, (1, "server_error", false, "it answered with `text/html`"));
    check_start("html", html, (1, "server_error", false, "it answered with `text/html`"));
    check_call("no JSON", || Answer::json("{"), (1, "server_error", false, "not MCP"));
}

#[test]
fn a_redirect_to_somewhere_else() {
    let told = (6, "policy_blocked", false, "which is another server");
    check_call("redirect", elsewhere, told);
    check_start("redirect", elsewhere, told);
}

#[test]
fn a_session_that_is_no_longer_known_is_begun_again_once() {
    // Forgets the first session as soon as a tool is called.
    let forgets = |sessions: usize| {
        let begun = std::sync::atomic::AtomicUsize::new(0);
        move |seen: &Seen| match seen.method() {
            "initialize" => {
                begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                legacy(seen)
            }
            "tools/call" if begun.load(std::sync::atomic::Ordering::Relaxed) <= sessions => {
                Answer::status(404)
            }
            _ => legacy(seen),
        }
    };
    let peer = Peer::new(forgets(1));
    let world = world_at(&format!("{}/mcp", peer.origin), LIMITS);
    assert_eq!(ends(run(&world, &["call", "s__do"]), 0).stdout, "done\n");
    assert_eq!((peer.count("initialize"), peer.count("tools/call")), (2, 2));

    let peer = Peer::new(forgets(usize::MAX));
    let world = world_at(&format!("{}/mcp", peer.origin), LIMITS);
    check("for ever", &world, (7, "transient", true, "its session has ended"));
    assert!(peer.count("tools/call") <= 2, "{}", peer.count("tools/call"));
}

#[test]
fn what_goes_wrong_is_written_down_with_its_code() {
    let peer = Peer::new(answering(|| Answer::status(429).with("retry-after", "7")));
    let world = world_at(&format!("{}/mcp", peer.origin), LIMITS);
    let ended = ends(run(&world, &["call", "s__do"]), 9);
    says(&ended.stderr, "try again in 7s");
    let audit = parsed(&ends(run(&world, &["audit", "--json"]), 0));
    let last: &Value = audit.as_array().unwrap().last().unwrap();
    assert_eq!(json!([last["server"], last["code"]]), json!(["s", "rate_limited"]));
}

/// The seven codes of the seed. Whether to try again is said of the very call: a server that fails
/// inside may have done its work in part, so that only what surely did not run may be repeated.
#[test]
fn c51_each_code_is_the_result_of_a_fault_and_says_whether_to_try_again() {
    let error = |code: i64| {
        move |seen: &Seen| match seen.method() {
            "tools/call" => {
                let error = json!({ "code": code, "message": "because" });
                let body = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error });
                Answer::json(body.to_string())
            }
            _ => legacy(seen),
        }
    };
    let at = |peer: &Peer, more: &str| {
        world_at(&format!("{}/mcp", peer.origin), &format!("{LIMITS}\n{more}"))
    };
    let gone = Peer::new(|_: &Seen| Answer::status(200).then(Piece::Cut));
    check("transient", &at(&gone, ""), (7, "transient", true, "not usable"));
    let busy = Peer::new(answering(|| Answer::status(429)));
    check("rate_limited", &at(&busy, ""), (9, "rate_limited", true, "no more calls"));
    let broken = Peer::new(error(-32603));
    check("server_error", &at(&broken, ""), (1, "server_error", false, "because"));
    let picky = Peer::new(error(-32602));
    check("invalid_input", &at(&picky, ""), (2, "invalid_input", false, "because"));
    let strict = Peer::new(answering(|| Answer::status(401)));
    check("auth_failure", &at(&strict, ""), (5, "auth_failure", false, "needs a login"));
    let empty = Peer::new(error(-32601));
    check("not_found", &at(&empty, ""), (4, "not_found", false, "because"));
    let well = Peer::new(legacy);
    let denied = "[permissions]\ndeny = [\"s__do\"]";
    check("policy_blocked", &at(&well, denied), (6, "policy_blocked", false, "permissions.deny"));
    assert_eq!(well.count("tools/call"), 0);
    for (peer, code) in [(&busy, "rate_limited"), (&picky, "invalid_input")] {
        let world = at(peer, "");
        run(&world, &["call", "s__do"]);
        let audit = parsed(&ends(run(&world, &["audit", "--json", "--errors"]), 0));
        assert_eq!(audit[0]["code"], code);
    }
}

//! How the fixture misbehaves: each option and each tool that a library would smooth over.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

use capstan_testkit::peer::Peer;
use capstan_testkit::process::command;
use capstan_testkit::{alive, binary, descendants, wait_until};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{}}}"#;

fn fixture(arguments: &[&str]) -> Command {
    let mut command = command(binary("capstan-fixture"));
    command.args(arguments);
    command
}

fn start(arguments: &[&str]) -> Peer {
    Peer::spawn(fixture(arguments)).unwrap()
}

fn initialized(arguments: &[&str]) -> Peer {
    let mut peer = start(arguments);
    peer.initialize().unwrap();
    peer
}

/// Starts it with its end as the only thing of interest: exit code, stdout, stderr.
fn end(arguments: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let output = fixture(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_a_library_would_tidy_up_comes_as_it_is() {
    let mut peer = initialized(&[]);
    let odd = r#"{"z":1.50,"a":12345678901234567890123456789.1234567890123,"z2":"\u00fc"}"#;
    assert!(peer.call("echo", odd).unwrap().contains(&format!(r#""structuredContent":{odd}"#)));
    let number = "12345678901234567890123456789.1234567890123";
    assert!(peer.call("long_number", "{}").unwrap().contains(number));
    let weird = peer.call("weird", "{}").unwrap();
    for part in [r#""type":"hologram""#, number, r#"{"zeta":1,"alpha":2.50,"mu":3,"#, r"\u00fc \/"]
    {
        assert!(weird.contains(part), "{part}");
    }
}

#[test]
fn a_modern_result_has_its_type_and_a_legacy_result_has_none() {
    let mut peer = initialized(&[]);
    assert!(!peer.call("weird", "{}").unwrap().contains("resultType"));
    let params = format!(r#"{{"name":"weird",{META}}}"#);
    assert!(peer.request("tools/call", &params).unwrap().ends_with(r#""resultType":"complete"}}"#));
}

#[test]
fn slow_calls_delay_no_others_and_end_silently_when_cancelled() {
    let mut peer = initialized(&[]);
    peer.send(r#"{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"hang"}}"#)
        .unwrap();
    peer.send(r#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"slow","arguments":{"ms":60000}}}"#).unwrap();
    for id in ["h", "s"] {
        peer.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"{id}"}}}}"#
        ))
        .unwrap();
    }
    peer.send(r#"{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"slow","arguments":{"ms":1}}}"#).unwrap();
    assert!(peer.next(|_| true).unwrap().contains(r#""id":"q""#));
}

#[test]
fn a_call_that_crashes_ends_the_process() {
    for tool in ["crash", "crash_read"] {
        let mut peer = initialized(&[]);
        assert_eq!(peer.call(tool, "{}").unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(peer.close().unwrap(), Some(70));
    }
}

#[test]
fn a_client_without_the_capability_is_not_asked() {
    let mut peer = initialized(&[]);
    assert!(peer.call("elicit", "{}").unwrap().contains("the client has no elicitation"));
    let meta = META.replace(r#""elicitation":{},"roots":{}"#, "");
    let answer = peer.request("tools/call", &format!(r#"{{"name":"roots",{meta}}}"#)).unwrap();
    assert!(answer.contains("-32021") && answer.contains(r#"{"roots":{}}"#), "{answer}");
}

#[test]
fn a_modern_retry_must_bring_the_state_back_unchanged() {
    let mut peer = start(&["--era", "modern"]);
    let asked = peer.request("tools/call", &format!(r#"{{"name":"elicit",{META}}}"#)).unwrap();
    let (_, state) = asked.split_once(r#""requestState":"#).unwrap();
    let state = state.strip_suffix("}}").unwrap();
    let retry = |state: &str, said: &str| {
        format!(r#"{{"name":"elicit","requestState":{state},"inputResponses":{said},{META}}}"#)
    };
    let said = r#"{"answer":{"action":"decline"}}"#;
    let answer = peer.request("tools/call", &retry(state, said)).unwrap();
    assert!(answer.contains(r#"{\"action\":\"decline\"}"#), "{answer}");
    let again = peer.request("tools/call", &retry(state, "{}")).unwrap();
    assert!(again.contains("input_required"), "{again}");
    let other = peer.request("tools/call", &retry("\"forged\"", said)).unwrap();
    assert!(other.contains("-32602"), "{other}");
}

#[test]
fn each_era_refuses_the_other_when_told_to() {
    let mut legacy = start(&["--era", "legacy"]);
    let discover = format!("{{{META}}}");
    assert!(legacy.request("server/discover", &discover).unwrap().contains("-32601"));
    assert!(legacy.request("tools/list", &discover).unwrap().contains("not initialized"));
    assert!(legacy.initialize().unwrap().contains("2025-11-25"));

    let mut modern = start(&["--era", "modern"]);
    assert!(modern.initialize().unwrap().contains("-32602"));
    assert!(modern.request("server/discover", &discover).unwrap().contains("supportedVersions"));
    let other = discover.replace("2026-07-28", "2027-01-01");
    assert!(modern.request("tools/list", &other).unwrap().contains("-32022"));
}

#[test]
fn a_probe_can_be_answered_with_nothing_not_at_all_or_with_death() {
    let discover = format!("{{{META}}}");
    let mut empty = start(&["--discover", "empty"]);
    assert!(empty.request("server/discover", &discover).unwrap().ends_with(r#""result":{}}"#));

    let mut silent = start(&["--discover", "silent"]);
    silent.send(r#"{"jsonrpc":"2.0","id":"d","method":"server/discover"}"#).unwrap();
    assert!(!silent.initialize().unwrap().contains(r#""id":"d""#));

    let mut die = start(&["--discover", "die"]);
    assert_eq!(
        die.request("server/discover", &discover).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
    assert!(initialized(&["--discover", "die"]).call("add", r#"{"a":1,"b":1}"#).is_ok());
}

#[test]
fn garbage_surrounds_the_messages() {
    let mut peer = start(&["--garbage"]);
    assert!(peer.next(|_| true).unwrap().contains("fixture starts"));
    peer.initialize().unwrap();
    assert!(peer.call("add", r#"{"a":1,"b":1}"#).unwrap().contains(r#""text":"2""#));
    let (_, stdout, _) = end(&["--garbage"]);
    assert!(String::from_utf8(stdout).is_err());
}

#[test]
fn a_flood_has_the_wanted_size_and_no_newline() {
    let (status, stdout, _) = end(&["--flood", "100000"]);
    assert_eq!((status, stdout.len()), (Some(0), 100_000));
    assert!(!stdout.contains(&b'\n'));
}

#[test]
fn it_ends_at_once_and_talks_on_stderr_when_told_to() {
    let (status, stdout, stderr) = end(&["--stderr", "2", "--exit", "9"]);
    assert_eq!((status, stdout.as_slice()), (Some(9), &b""[..]));
    assert_eq!(stderr, "fixture: line 1 of 2\nfixture: line 2 of 2\nfixture: exiting with 9\n");
    assert_eq!(end(&["--no-such-option"]).0, Some(2));
}

#[test]
fn silence_is_complete_and_the_trace_shows_every_line() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("trace");
    let mut peer = start(&["--silent", "--trace", trace.to_str().unwrap()]);
    let lines = [r#"{"jsonrpc":"2.0", "id":1,"method":"ping"}"#, "not a message"];
    for line in lines {
        peer.send(line).unwrap();
    }
    peer.close().unwrap();
    assert_eq!(fs::read_to_string(trace).unwrap(), lines.map(|line| format!("{line}\n")).concat());
}

#[test]
fn the_surroundings_are_told() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let mut command = fixture(&["--tools", "1"]);
    command.env_clear().env("ONLY", "this").current_dir(&place);
    let mut peer = Peer::spawn(command).unwrap();
    peer.initialize().unwrap();
    let expected = format!(
        r#""structuredContent":{{"args":["--tools","1"],"env":{{"ONLY":"this"}},"cwd":"{}"}}"#,
        place.display()
    );
    let told = peer.call("env", "{}").unwrap();
    assert!(told.contains(&expected), "{told}");
}

#[cfg(unix)]
#[test]
fn it_leaves_children_behind_and_heeds_no_sigterm() {
    use rustix::process::{Pid, Signal, kill_process};

    let pid = |number: u32| Pid::from_raw(i32::try_from(number).unwrap()).unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pids");
    let peer = initialized_with_children(&file);
    let pids: Vec<u32> =
        fs::read_to_string(&file).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let [detached, plain] = pids[..] else { panic!("two children, not {pids:?}") };
    let mut found = descendants(peer.pid());
    found.sort_unstable();
    let mut expected = vec![detached, plain];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(session_of(detached), detached);
    assert_ne!(session_of(plain), plain);

    kill_process(pid(peer.pid()), Signal::TERM).unwrap();
    let mut peer = peer;
    assert!(peer.call("add", r#"{"a":1,"b":1}"#).is_ok(), "it ended on SIGTERM");
    drop(peer);
    for child in pids {
        assert!(alive(child), "children survive their parent");
        kill_process(pid(child), Signal::KILL).unwrap();
        assert!(wait_until(|| !alive(child), LIMIT));
    }
}

/// The session a process belongs to, by its leader: 0 for one led from outside of our process
/// namespace, as in a container, which is why `getsid` will not do.
#[cfg(unix)]
fn session_of(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, behind_the_name) = stat.rsplit_once(')').unwrap();
    behind_the_name.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[cfg(unix)]
fn initialized_with_children(file: &std::path::Path) -> Peer {
    let peer = initialized(&["--ignore-term", "--spawn", file.to_str().unwrap()]);
    assert!(file.exists(), "the file is written before the first answer");
    peer
}

#[test]
fn the_thin_client_prints_one_response() {
    let fixture = binary("capstan-fixture");
    let run = |arguments: &[&str]| {
        let mut thin = command(binary("capstan-thinclient"));
        thin.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = thin.spawn().unwrap();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        (child.wait().unwrap().success(), said)
    };
    let (good, said) = run(&["add", r#"{"a":2,"b":2}"#, "--", fixture.to_str().unwrap()]);
    assert!(good && said.contains(r#""text":"4""#) && said.lines().count() == 1, "{said}");
    assert_eq!(run(&["add", "{}"]), (false, String::new()));
    assert_eq!(run(&["crash", "{}", "--", fixture.to_str().unwrap()]), (false, String::new()));
}

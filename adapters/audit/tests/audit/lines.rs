//! The content of a line, and the data that it must not contain.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use capstan_audit::{Durability, JsonLines, Limits};
use capstan_hub::Outcome;
use capstan_hub::ports::AuditLog;
use capstan_model::{Caller, ErrorCode, Front, Kind};

use crate::world::{World, entry};

const FIELDS: [&str; 22] = [
    "seq",
    "time",
    "caller",
    "caller_id",
    "client",
    "front",
    "server",
    "item",
    "kind",
    "effect",
    "verdict",
    "rule",
    "approval",
    "roles",
    "bound",
    "outcome",
    "code",
    "duration_ms",
    "request_bytes",
    "answer_bytes",
    "prev",
    "hash",
];

#[test]
fn a_line_has_these_fields_in_this_order_and_no_others() {
    let world = World::with_entries(1);
    let line = world.lines().remove(0);
    let (open, seal) = line.split_once(r#","prev""#).unwrap();
    assert_eq!(
        open,
        r#"{"seq":1,"time":"1970-01-01T00:00:01.005Z","caller":"ci","caller_id":"planner","client":"some-client/1.0","front":"gateway","server":"linear","item":"tool_1","kind":"tool","effect":"write","verdict":"ask","rule":"permissions.ask: *","approval":"asked","roles":["deployers"],"bound":true,"outcome":"answered","code":null,"duration_ms":12,"request_bytes":17,"answer_bytes":4711"#
    );
    let hash = "f8c9e1061bb2ec836410820f58b3b10ba98c60bf8bdc634bec2c1b160b9dcb10";
    assert_eq!(seal, format!(r#":"{}","hash":"{hash}"}}"#, "0".repeat(64)));
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
    assert_eq!(object.keys().collect::<Vec<_>>(), FIELDS);
}

#[test]
fn what_is_not_known_is_null_and_not_left_out() {
    let world = World::new();
    let mut bare = entry(1);
    bare.caller = Caller::operator(Front::Cli).into();
    bare.kind = Kind::Resource;
    (bare.server, bare.rule, bare.effect) = (None, None, None);
    (bare.verdict, bare.approval) = (None, None);
    bare.outcome = Outcome::Failed(ErrorCode::NotFound);
    world.open().record(bare);
    let line = world.lines().remove(0);
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
    // A caller without roles or a client has none written, as in logs of older versions.
    let fields = FIELDS.into_iter().filter(|field| !["roles", "client", "bound"].contains(field));
    assert_eq!(object.keys().collect::<Vec<_>>(), fields.collect::<Vec<_>>());
    for field in ["caller_id", "server", "rule", "effect", "verdict", "approval"] {
        assert!(object[field].is_null(), "{field}");
    }
    assert_eq!(object["code"], "not_found");
}

#[test]
fn a_row_serialises_exactly_like_its_line() {
    let world = World::new();
    let mut odd = entry(1);
    odd.item = "line\nbreak \u{1b}[31m \"quote\" ü 🦀 \u{0}".to_owned();
    odd.outcome = Outcome::Abandoned;
    world.open().record(odd);
    world.record(2..=3);
    let mut bare = entry(4);
    bare.caller = Caller::operator(Front::Cli).into();
    (bare.server, bare.rule, bare.effect) = (None, None, None);
    (bare.verdict, bare.approval) = (None, None);
    bare.outcome = Outcome::Failed(ErrorCode::NotFound);
    let mut asked = entry(5);
    asked.method = Some("completion/complete");
    asked.arguments = Some(r#"{"a":"\\ü"}"#.to_owned());
    Arc::make_mut(&mut asked.caller).roles = ["a\"", "b"].map(str::to_owned).to_vec();
    world.open().record_all(&[bare, asked]).unwrap();
    let printed: Vec<String> =
        world.rows().iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    assert_eq!(printed, world.lines());
}

#[test]
fn roles_are_kept_as_far_as_there_is_room() {
    let world = World::new();
    let mut many = entry(1);
    Arc::make_mut(&mut many.caller).roles = (0..10_000).map(|n| format!("role-{n}")).collect();
    world.open().record(many);
    let kept = &world.rows()[0].roles;
    assert_eq!((kept[0].as_str(), kept.len() < 200), ("role-0", true));
    assert_eq!(world.verified().entries, 1);
}

#[test]
fn a_text_without_end_is_cut_off_and_the_chain_stays_whole() {
    let world = World::new();
    let mut huge = entry(1);
    huge.item = "ü\u{0}".repeat(1_000_000);
    Arc::make_mut(&mut huge.caller).subject = "\u{1}".repeat(1_000_000);
    Arc::make_mut(&mut huge.caller).caller_id = Some("\u{1}".repeat(1_000_000));
    huge.server = Some("\u{1}".repeat(1_000_000));
    huge.rule = Some("\u{1}".repeat(1_000_000));
    Arc::make_mut(&mut huge.caller).roles = vec!["\u{1}".repeat(1024)];
    world.open().record(huge);
    world.record(2..=2);
    assert!(fs::metadata(world.log()).unwrap().len() < 64 * 1024);
    assert!(world.rows()[0].item.ends_with('…'));
    assert_eq!(world.verified().entries, 2);
}

#[test]
fn the_log_is_for_its_owner_only_also_when_it_was_not() {
    let world = World::new();
    let log = world.file("state/logs/audit.jsonl");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open = || JsonLines::open(&log, Limits::default()).unwrap();
    open().record(entry(1));
    assert_eq!(mode(world.file("state")), 0o700);
    assert_eq!(mode(log.clone()), 0o600);
    assert_eq!(mode(world.file("state/logs/audit.head")), 0o600);
    fs::set_permissions(&log, Permissions::from_mode(0o644)).unwrap();
    open().record(entry(2));
    assert_eq!(mode(log.clone()), 0o600);
}

#[test]
fn an_entry_that_waits_for_the_disk_is_an_entry_like_any_other() {
    let world = World::new();
    let log = world.open().with_durability(Durability::Sync);
    log.record(entry(1));
    log.record(entry(2));
    assert_eq!(world.verified().entries, 2);
}

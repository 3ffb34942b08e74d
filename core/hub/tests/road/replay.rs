//! Past calls against rules: nothing changes under the same ones, and what changes under others is told.

use std::sync::Arc;

use capstan_hub::approvals::Extent;
use capstan_hub::ports::Approval;
use capstan_hub::replay::{Judged, KnownArguments, NoPast, Past, Reason};
use capstan_hub::{Entry, Ground, Keep};
use capstan_model::{Front, Kind, Verdict};
use capstan_policy::PolicySource;
use futures::FutureExt;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::laws::{ARGUMENTS, Draft, TOOLS, call, front};
use super::says;
use crate::world::{Server, World, policy};

/// An entry as the audit log writes it, as far as it is read again.
fn row(entry: &Entry) -> Map<String, Value> {
    let fields = json!({
        "caller": entry.caller.subject,
        "roles": entry.caller.roles,
        "front": entry.caller.front.as_str(),
        "server": entry.server,
        "item": entry.item,
        "kind": entry.kind.as_str(),
        "effect": entry.effect.map(capstan_model::Effect::as_str),
        "verdict": entry.verdict.map(Verdict::as_str),
        "rule": entry.rule,
        "arguments": entry.arguments,
    });
    fields.as_object().unwrap().clone()
}

/// What becomes of one call under `then`, as an entry.
fn happened(then: PolicySource, keep: Keep, call: capstan_hub::Call) -> Map<String, Value> {
    let mut world = World::new(vec![Server::new("files", TOOLS)], then);
    world.change(|hub| hub.limits.keep_arguments = keep);
    let person = Arc::new(says(Approval::Yes(Ground::Asked, Extent::Once)));
    drop(world.call(&person, call).now_or_never().unwrap());
    row(&world.entries().remove(0))
}

fn judge(row: &Map<String, Value>, now: &PolicySource) -> Judged {
    Past::read(row).unwrap().judge(&now.clone().compile(), Timestamp::UNIX_EPOCH)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn under_the_same_rules_nothing_changes(
        draft in Draft::any(),
        front in front(),
        name in select(TOOLS),
        arguments in select(ARGUMENTS),
        keep in select(vec![Keep::No, Keep::Redacted]),
    ) {
        let call = call(front, &format!("files__{name}"), arguments);
        let judged = judge(&happened(draft.policy(), keep, call), &draft.policy());
        match (judged, keep) {
            (Judged::Same, _) | (Judged::Unknown(Reason::Arguments { .. }), Keep::No) => {}
            (other, _) => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn what_is_judged_is_what_would_happen(
        then in Draft::any(),
        now in Draft::any(),
        front in front(),
        name in select(TOOLS),
        arguments in select(ARGUMENTS),
        keep in select(vec![Keep::No, Keep::Redacted]),
    ) {
        let call = call(front, &format!("files__{name}"), arguments);
        let past = happened(then.policy(), keep, call.clone());
        let again = happened(now.policy(), keep, call);
        let same = past["verdict"] == again["verdict"];
        match judge(&past, &now.policy()) {
            Judged::Same => prop_assert!(same && past["rule"] == again["rule"]),
            Judged::SameByOther(ruling) => {
                prop_assert!(same);
                prop_assert_eq!(&again["rule"], &ruling.rule);
            }
            Judged::Changed(ruling) => {
                prop_assert_eq!(&again["verdict"], ruling.verdict.as_str());
                prop_assert_eq!(&again["rule"], &ruling.rule);
            }
            Judged::Unknown(reason) => {
                let by_arguments = matches!(reason, Reason::Arguments { .. });
                prop_assert!(by_arguments && keep == Keep::No);
            }
        }
    }
}

fn past(arguments: Option<&str>) -> Map<String, Value> {
    let mut row =
        happened(policy(&[], &[], &["*"]), Keep::No, call(Front::Cli, "files__read", "{}"));
    row.insert("arguments".to_owned(), arguments.into());
    row
}

#[test]
fn a_call_is_not_judged_by_arguments_that_nobody_kept() {
    let deny = policy(&["read:x=1"], &[], &["*"]);
    let rule = "permissions.deny: read:x=1".to_owned();
    let unknown = Judged::Unknown(Reason::Arguments { rule });
    for kept in [None, Some(r#"{"x":"***"}"#), Some(r#"{"x":1,"y":"abc…"#), Some("")] {
        assert_eq!(judge(&past(kept), &deny), unknown, "{kept:?}");
        // Where no rule looks at them, they are not missed.
        assert_eq!(judge(&past(kept), &policy(&[], &[], &["*"])), Judged::Same, "{kept:?}");
    }
    let Judged::Changed(ruling) = judge(&past(Some(r#"{"x":1}"#)), &deny) else {
        unreachable!("the call is denied now")
    };
    assert_eq!(ruling.verdict, Verdict::Deny);
    assert_eq!(judge(&past(Some(r#"{"x":2}"#)), &deny), Judged::Same);
}

#[test]
fn the_address_of_a_resource_is_always_kept() {
    let mut row = past(None);
    row.insert("kind".to_owned(), "resource".into());
    row.insert("item".to_owned(), "file:///a".into());
    let read = Past::read(&row).unwrap();
    assert_eq!((read.told.kind, read.kept), (Kind::Resource, KnownArguments::Whole));
    let deny = policy(&["files:*:uri=file:///a"], &[], &["*"]);
    assert!(matches!(judge(&row, &deny), Judged::Changed(_)));
    assert_eq!(judge(&row, &policy(&["files:*:uri=file:///b"], &[], &["*"])), Judged::Same);
}

#[test]
fn a_server_that_is_gone_and_entries_that_decided_nothing_are_not_judged() {
    let gone = judge(&past(None), &PolicySource::default());
    assert_eq!(gone, Judged::Unknown(Reason::NoServer));
    for (key, value, expected) in [
        ("verdict", Value::Null, NoPast::Undecided),
        ("kind", "break".into(), NoPast::Break),
        ("kind", "spell".into(), NoPast::Unreadable),
        ("verdict", "perhaps".into(), NoPast::Unreadable),
        ("front", "window".into(), NoPast::Unreadable),
        ("front", Value::Null, NoPast::Unreadable),
        ("server", "Not A Server".into(), NoPast::Unreadable),
    ] {
        let mut row = past(None);
        row.insert(key.to_owned(), value);
        assert_eq!(Past::read(&row).unwrap_err(), expected, "{key}");
    }
}

#[test]
fn a_rule_that_was_cut_off_in_the_log_is_still_the_same() {
    let mut row = past(None);
    row.insert("rule".to_owned(), "permissions.al…".into());
    assert_eq!(judge(&row, &policy(&[], &[], &["*"])), Judged::Same);
    row.insert("rule".to_owned(), "permissions.de…".into());
    assert!(matches!(judge(&row, &policy(&[], &[], &["*"])), Judged::SameByOther(_)));
}

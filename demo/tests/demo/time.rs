//! The `time` server.

use capstan_demo::Demo;
use serde_json::{Value, json};

use crate::world::{Said, World, refused};

fn call(tool: &str, arguments: Value) -> Said {
    World::new().call(Demo::Time, tool, arguments)
}

fn convert(time: &str, from: &str, to: &str) -> Said {
    call("convert", json!({ "time": time, "from": from, "to": to }))
}

#[test]
fn the_current_time_is_told_in_any_zone() {
    for zone in ["UTC", "Asia/Kolkata", "America/New_York"] {
        let said = call("now", json!({ "zone": zone })).unwrap();
        assert_eq!(said["zone"], zone);
        let time: jiff::Timestamp = said["time"].as_str().unwrap().parse().unwrap();
        assert!(time.as_second() > 1_700_000_000, "{said}");
    }
    assert!(call("now", json!({})).unwrap()["time"].is_string());
}

#[test]
fn times_are_converted_between_zones() {
    let cases = [
        ("2026-01-15T12:00", "UTC", "Asia/Kolkata", "2026-01-15T17:30:00+05:30", "Thursday", false),
        (
            "2026-07-15T23:00",
            "Europe/Berlin",
            "Asia/Tokyo",
            "2026-07-16T06:00:00+09:00",
            "Thursday",
            false,
        ),
        (
            "2026-07-15 12:00:30",
            "utc",
            "america/new_york",
            "2026-07-15T08:00:30-04:00",
            "Wednesday",
            true,
        ),
    ];
    for (time, from, to, expected, weekday, dst) in cases {
        let said = convert(time, from, to).unwrap()["to"].clone();
        assert_eq!(
            (&said["time"], &said["weekday"], &said["dst"]),
            (&json!(expected), &json!(weekday), &json!(dst)),
            "{time}"
        );
    }
}

#[test]
fn a_time_without_a_date_is_of_today() {
    let said = convert("14:30", "UTC", "UTC").unwrap();
    assert!(said["to"]["time"].as_str().unwrap().ends_with("T14:30:00+00:00"), "{said}");
}

#[test]
fn a_time_that_clocks_skip_or_repeat_is_remarked_on() {
    let note = |time| convert(time, "Europe/Berlin", "UTC").unwrap().get("note").cloned();
    assert!(note("2026-03-29T02:30").unwrap().as_str().unwrap().contains("skip"));
    assert!(note("2026-10-25T02:30").unwrap().as_str().unwrap().contains("twice"));
    assert_eq!(note("2026-06-01T02:30"), None);
}

#[test]
fn zones_are_found_by_a_part_of_their_name() {
    let found = call("zones", json!({ "filter": "new york" })).unwrap();
    assert_eq!(found, json!({ "zones": ["America/New_York"], "total": 1 }));
    assert!(call("zones", json!({})).unwrap()["total"].as_u64().unwrap() > 300);
    let none = call("zones", json!({ "filter": "atlantis" })).unwrap();
    assert_eq!(none, json!({ "zones": [], "total": 0 }));
}

#[test]
fn a_misspelt_zone_is_refused_with_the_nearest_names() {
    refused(call("now", json!({ "zone": "Europe/Berln" })), "`Europe/Berlin`");
    refused(call("now", json!({ "zone": "new york" })), "`America/New_York`");
    refused(convert("12:00", "Tokio", "UTC"), "`Asia/Tokyo`");
    refused(convert("12:00", "UTC", "xyzzy"), "`zones` lists them");
    refused(call("now", json!({ "zone": "" })), "no time zone");
    refused(call("now", json!({ "zone": "../../etc/passwd" })), "no time zone");
}

#[test]
fn what_is_not_a_local_time_is_refused() {
    for time in ["", "noon", "25:00", "2026-02-30T12:00", "2026-13-01T00:00"] {
        refused(convert(time, "UTC", "UTC"), "is not a time");
    }
    for time in ["2026-01-01T12:00Z", "2026-01-01T12:00+02:00"] {
        refused(convert(time, "UTC", "UTC"), "offset of its own");
    }
    refused(call("convert", json!({ "time": "12:00" })), "missing field `from`");
    refused(call("now", json!({ "zone": 3 })), "invalid type");
}

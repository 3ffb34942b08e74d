//! Tests of reading and changing objects.

use proptest::prelude::*;

use super::*;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

#[test]
fn a_name_is_found_however_it_is_escaped() {
    for (text, key) in [
        (r#"{"a":0,"task":1}"#, "task"),
        (r#"{"a":0,"t\u0061sk":1}"#, "task"),
        (r#"{"a":0,"x\/y":1}"#, "x/y"),
        (r#"{"a":0,"x\"y":1}"#, "x\"y"),
        (r#"{"a":0,"x\ny":1}"#, "x\ny"),
    ] {
        let json = Json::parse(text).unwrap();
        assert_eq!(get(&json, key).as_ref().map(Json::as_str), Some("1"), "{text}");
        assert_eq!(get(&json, "other"), None, "{text}");
    }
    let inner = Json::parse(r#"{"a":"task","b":{"task":1}}"#).unwrap();
    assert_eq!(get(&inner, "task"), None);
    let unreadable = Json::parse(r#"{"task":1,"a":[2],"\ud800":3}"#).unwrap();
    assert_eq!(peek(&unreadable, ["task", "a"]), [None, None]);
}

#[test]
fn replacing_a_member_leaves_every_other_byte_of_the_values() {
    let before = json(r#"{"z": 1.000, "name":"a", "u":{"x": [1 ,2]}}"#);
    let after = with_member(&before, "name", &compose::string("b")).unwrap();
    assert_eq!(after.as_str(), r#"{"z":1.000,"name":"b","u":{"x": [1 ,2]}}"#);
}

#[test]
fn a_large_object_is_changed_in_place_when_nobody_else_has_it() {
    let rest = "y".repeat(SMALL);
    let text = format!(r#"{{"a":[ 1],"name":"s__echo","x":"{rest}"}}"#);
    let whole = |name: &str| format!(r#"{{"a":[ 1],"name":{name},"x":"{rest}"}}"#);
    let copied = |name: &str| whole(name);
    let check = |shared: bool, name: &str, expected: String, moved: bool| {
        let before = json(&text);
        let (place, other) = (before.as_bytes().as_ptr(), shared.then(|| before.clone()));
        let after = set_member(before, "name", &compose::string(name)).unwrap();
        assert!(after.as_str() == expected, "{name} {shared}");
        assert_eq!(after.as_bytes().as_ptr() != place, moved, "{name} {shared}");
        assert!(Json::parse(after.bytes().clone()).is_ok());
        assert!(other.is_none_or(|other| other.as_str() == text), "{name} {shared}");
    };
    check(false, "echo", whole(r#""echo"   "#), false);
    check(false, "s__echo", whole(r#""s__echo""#), false);
    check(true, "echo", copied(r#""echo""#), true);
    check(false, "longer__echo", copied(r#""longer__echo""#), true);
    let other = set_member(json(&text), "z", &json("1")).unwrap();
    assert!(other.as_str().ends_with(r#"","z":1}"#));
}

#[test]
fn a_member_is_cut_out_only_if_nothing_else_can_be_read_as_it() {
    for (before, after) in [
        (r#"{"a": 1.0 ,"m":{"x":[1]}, "b":2}"#, Some(r#"{"a": 1.0, "b":2}"#)),
        (r#"{ "m":{"x":1} , "b" : 2}"#, Some(r#"{ "b" : 2}"#)),
        (r#"{"a":{"x":"}"},"m":"]"}"#, Some(r#"{"a":{"x":"}"}}"#)),
        (r#"{ "m" : 1 }"#, Some("{}")),
        (r#"{"\u006d":1,"a":2}"#, Some(r#"{"a":2}"#)),
        (r#"{"m":1,"a":2,"m":3}"#, None),
        (r#"{"m":1,"a":2,"\u006d":3}"#, None),
        (r#"{"m":1,"a":{"m":3}}"#, None),
        (r#"{"m":1,"\ud800":2}"#, None),
        (r#"{"a":1}"#, None),
        ("{}", None),
        ("[]", None),
    ] {
        let found = cut_member(&json(before), "m");
        assert_eq!(found.as_ref().map(Json::as_str), after, "{before}");
        assert!(found.is_none_or(|found| Json::parse(found.bytes().clone()).is_ok()));
    }
}

#[test]
fn a_known_member_is_cut_out_where_it_is_first_or_last() {
    let known = json(r#"{"x":"}\"","y":[1.0]}"#);
    for (before, after) in [
        (r#"{"a": 1.0,"m":{"x":"}\"","y":[1.0]}}"#, Some(r#"{"a": 1.0}"#)),
        (r#"{"m":{"x":"}\"","y":[1.0]},"a":{"b":2} }"#, Some(r#"{"a":{"b":2} }"#)),
        (r#"{"m":{"x":"}\"","y":[1.0]}}"#, None),
        (r#"{"a":1,"m":{"x":"}\"","y":[1.0]},"b":2}"#, None),
        (r#"{"a":1,"m":{"x":"}\"","y":[1.00]}}"#, None),
        (r#"{"a":1,"m": {"x":"}\"","y":[1.0]}}"#, None),
        (r#"{"a":{"b":1,"m":{"x":"}\"","y":[1.0]}}}"#, None),
        (r#"{"m":2,"m":{"x":"}\"","y":[1.0]}}"#, None),
        (r#"{"\u006d":2,"m":{"x":"}\"","y":[1.0]}}"#, None),
        (r#"{"a":"\\","m":{"x":"}\"","y":[1.0]}}"#, Some(r#"{"a":"\\"}"#)),
        ("{}", None),
    ] {
        let found = cut_known(&json(before), "m", &known);
        assert_eq!(found.as_ref().map(Json::as_str), after, "{before}");
        if let Some(found) = found {
            assert_eq!(Some(found), cut_member(&json(before), "m"), "{before}");
        }
    }
    assert_eq!(cut_known(&json(r#"{"a":1,"m":2}"#), "m", &json("2")), None, "no object");
}

#[test]
fn a_member_that_is_not_there_is_added_at_the_end() {
    let after = with_member(&json(r#"{"a":1}"#), "b", &json("2")).unwrap();
    assert_eq!(after.as_str(), r#"{"a":1,"b":2}"#);
}

#[test]
fn members_of_a_member_are_removed_and_all_other_bytes_stay() {
    for (before, after) in [
        (
            r#"{"a": 1.0,"m":{"x":1,"y":{"x":2}},"b":2}"#,
            Some(r#"{"a":1.0,"m":{"y":{"x":2}},"b":2}"#),
        ),
        (r#"{"a":1,"m":{"x":1,"z":[1]},"b":2}"#, Some(r#"{"a":1,"b":2}"#)),
        (r#"{"m":{"\u0078":1}}"#, Some("{}")),
        (r#"{"m":{"x":1},"b":{"x":1}}"#, Some(r#"{"b":{"x":1}}"#)),
        (r#"{"m":{"y":1}}"#, None),
        (r#"{"m":{}}"#, None),
        (r#"{"m":["x"]}"#, None),
        (r#"{"m":{"x":1,"\ud800":2}}"#, None),
        (r#"{"x":1}"#, None),
        ("[]", None),
    ] {
        let found = without_inner(&json(before), "m", &["x", "z"]);
        assert_eq!(found.as_ref().map(Json::as_str), after, "{before}");
    }
}

#[test]
fn a_dotted_path_reaches_into_objects() {
    let args = json(r#"{"issue":{"repo":"acme/x","a.b":{"c":7}},"dotted.key":1}"#);
    assert_eq!(at_path(&args, "issue.repo"), Some(json(r#""acme/x""#)));
    assert_eq!(at_path(&args, "dotted.key"), Some(json("1")));
    assert_eq!(at_path(&args, "issue.a.b.c"), Some(json("7")));
    assert_eq!(at_path(&args, "issue.none"), None);
    assert_eq!(at_path(&json("[1]"), "0"), None);
}

#[test]
fn no_reading_of_a_path_hides_another() {
    let readings = |text: &str, path: &str| -> Vec<String> {
        let found = all_at_path(&json(text), path).unwrap();
        found.iter().map(ToString::to_string).collect()
    };
    let both = r#"{"issue.repo":"x","issue":{"repo":"y"}}"#;
    assert_eq!(readings(both, "issue.repo"), [r#""x""#, r#""y""#]);
    let turned = r#"{"issue":{"repo":"y"},"issue.repo":"x"}"#;
    assert_eq!(readings(turned, "issue.repo"), [r#""y""#, r#""x""#]);
    let dead_end = r#"{"a.b":{"x":0},"a":{"b":{"c":1},"b.c":2},"a.b.c":3}"#;
    assert_eq!(readings(dead_end, "a.b.c"), ["1", "2", "3"]);
    assert_eq!(readings(r#"{"a":1,"a":2}"#, "a"), ["1", "2"]);
    for nowhere in ["{}", r#"{"a":1}"#, r#"{"a":{"c":1}}"#, r#"{"a":[{"b":1}]}"#] {
        assert_eq!(readings(nowhere, "a.b"), [""; 0], "{nowhere}");
    }
}

#[test]
fn a_path_through_names_that_cannot_be_read_is_an_error() {
    for text in [r#"{"a":1,"\ud800":1}"#, r#"{"a":{"\udc00":1,"b":2}}"#, "[]", "1"] {
        assert!(all_at_path(&json(text), "a.b").is_err(), "{text}");
        assert_eq!(at_path(&json(text), "a.b"), None, "{text}");
    }
}

#[test]
fn what_is_no_object_has_no_members() {
    for text in ["[]", "1", "null", "\"x\""] {
        assert!(members(&json(text)).is_err());
        assert_eq!(get(&json(text), "a"), None);
        assert!(with_member(&json(text), "a", &json("1")).is_err());
    }
}

proptest! {
    #[test]
    fn any_key_survives_taking_apart_and_putting_together(key in ".*", value in any::<i64>()) {
        let object = compose::object(&[(&key, &json(&value.to_string()))]);
        prop_assert_eq!(get(&object, &key), Some(json(&value.to_string())));
        prop_assert_eq!(members(&object).unwrap().len(), 1);
    }
}

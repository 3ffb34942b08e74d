//! Tests of which schemas are usable, and of the messages about arguments that do not fit.

use super::*;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

#[track_caller]
fn said(schema: &str, arguments: &str) -> String {
    let schema = InputSchema::compile(&json(schema)).map_err(|bad| bad.to_string()).unwrap();
    schema.check(&json(arguments)).map_or_else(|misfit| misfit.to_string(), |()| "fits".to_owned())
}

#[track_caller]
fn of_x(schema: &str, value: &str) -> String {
    said(
        &format!(r#"{{"type":"object","properties":{{"x":{schema}}}}}"#),
        &format!(r#"{{"x":{value}}}"#),
    )
}

#[test]
fn a_mismatch_says_where_what_was_expected_and_what_was_given() {
    for (schema, value, expected) in [
        (r#"{"type":"integer"}"#, r#""a""#, r#"`x` must be an integer, not `"a"`"#),
        (r#"{"type":["string","null"]}"#, "[1]", "`x` must be null or text, not a list"),
        (r#"{"enum":["a",1]}"#, "true", r#"`x` must be one of `"a"`, `1`, not `true`"#),
        (r#"{"const":7}"#, "8", "`x` must be `7`, not `8`"),
        (r#"{"minimum":1}"#, "0.5", "`x` must be at least 1, not `0.5`"),
        (r#"{"maxLength":1}"#, r#""ab""#, r#"`x` must have at most 1 characters, not `"ab"`"#),
        (r#"{"pattern":"^a"}"#, r#""b""#, r#"`x` must match `^a`, which `"b"` does not"#),
        (r#"{"uniqueItems":true}"#, "[1,1]", "`x` must have no item twice, not a list"),
        (r#"{"required":["y"]}"#, "{}", "`x.y` is missing"),
        (
            r#"{"properties":{"a":{}},"additionalProperties":false}"#,
            r#"{"y":1,"z":2}"#,
            "there is no `x.y` and `x.z`",
        ),
        (r#"{"additionalProperties":false}"#, r#"{"y":1}"#, "`x` must have no members"),
        (r#"{"properties":{"y":false}}"#, r#"{"y":1}"#, "`x.y` must not be given"),
        (
            r#"{"items":{"properties":{"a":{"type":"null"}}}}"#,
            r#"[{},{"a":1}]"#,
            "`x[1].a` must be null, not `1`",
        ),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
            "{}",
            "`x` must be text or an integer, not an object",
        ),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}"#,
            "{}",
            "`x` matches none of 2 forms; for the closest one, `x.a` is missing",
        ),
        (r#"{"oneOf":[{},{}]}"#, "1", "`x` must match exactly one form, but matches several"),
        (r#"{"not":{}}"#, "1", "`x` does not match `not`"),
    ] {
        assert_eq!(of_x(schema, value), expected, "{schema}");
    }
    assert_eq!(said(r#"{"required":["a"]}"#, "{}"), "`a` is missing");
    assert_eq!(
        said(r#"{"minProperties":1}"#, "{}"),
        "the arguments must have at least 1 members, not an object"
    );
}

#[test]
fn arguments_that_fit_are_let_through() {
    for (schema, value) in [
        ("{}", "1e300"),
        ("true", "null"),
        (r#"{"type":"integer"}"#, "12345678901234567890"),
        (r#"{"type":"number"}"#, "12345678901234567890123456789.1"),
        (r#"{"type":"string","format":"email"}"#, r#""not one""#),
        (r#"{"type":"string","format":"whatever"}"#, r#""x""#),
    ] {
        assert_eq!(of_x(schema, value), "fits", "{schema}");
    }
}

#[test]
fn secrets_are_not_repeated() {
    let token = r#""ghp_0123456789abcdef""#;
    let secret = r#"{"type":"object","properties":{"api_key":{"type":"integer"}}}"#;
    assert_eq!(said(secret, r#"{"api_key":"hunter2"}"#), "`api_key` must be an integer, not ***");
    assert_eq!(of_x(r#"{"type":"integer"}"#, token), "`x` must be an integer, not ***");
    assert_eq!(
        of_x(r#"{"type":"integer"}"#, r#""https://me:pw@host""#),
        "`x` must be an integer, not ***"
    );
    let nested = r#"{"properties":{"token":{"items":{"type":"integer"}}}}"#;
    assert_eq!(said(nested, r#"{"token":["hunter2"]}"#), "`token[0]` must be an integer, not ***");
}

#[test]
fn only_so_much_is_told() {
    let members: Vec<String> = (0..20).map(|n| format!("\"k{n}\":true")).collect();
    let schema = r#"{"additionalProperties":{"type":"string"}}"#;
    let told = said(schema, &format!("{{{}}}", members.join(",")));
    assert_eq!(told.matches("must be").count(), MAX_TOLD);
    assert!(told.ends_with("; and more"), "{told}");
    let long = of_x(r#"{"type":"integer"}"#, &format!("\"{} \"", "word ".repeat(1000)));
    assert!(long.len() < 200, "{long}");
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert_eq!(said("{}", &deep), "they are nested deeper than 64 levels");
    assert!(said("{}", r#"{"x":1e999}"#).contains("out of range"));
}

#[test]
fn a_pattern_that_takes_too_long_does_not_hold_up_the_call() {
    let schema = r#"{"type":"string","pattern":"^(?=(a+)+$)(a|aa)+\\1b$"}"#;
    assert_eq!(of_x(schema, &format!("\"{}\"", "a".repeat(64))), "fits");
}

#[test]
fn schemas_of_older_drafts_are_understood_with_and_without_saying_so() {
    let tuple = r#"{"type":"array","items":[{"type":"string"}]}"#;
    assert_eq!(of_x(tuple, "[1]"), "`x[0]` must be text, not `1`");
    let draft4 = r#"{"minimum":1,"exclusiveMinimum":true}"#;
    assert_eq!(of_x(draft4, "1"), "`x` must be more than 1, not `1`");
    let seven = r##"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"null"}}}"##;
    assert_eq!(said(seven, r#"{"x":1}"#), "`x` must be null, not `1`");
    let unknown = r#"{"$schema":"https://example.com/mine","required":["x"]}"#;
    assert_eq!(said(unknown, "{}"), "`x` is missing");
}

#[test]
fn a_schema_that_cannot_be_used_says_why() {
    let large = format!(r#"{{"title":"{}"}}"#, "x".repeat(MAX_SCHEMA));
    let deep = (0..MAX_DEPTH).fold("{}".to_owned(), |inner, _| format!(r#"{{"items":{inner}}}"#));
    let bad = |text: &str| InputSchema::compile(&json(text)).err().map(|bad| bad.to_string());
    for (schema, expected) in [
        (large.as_str(), "more than"),
        (&deep, "nested deeper"),
        ("[]", "not that of an object"),
        ("true", "not that of an object"),
        (r#"{"type":"string"}"#, "not that of an object"),
        (r##"{"allOf":[{"$ref":"#"}]}"##, "refers to itself"),
        (
            r#"{"properties":{"a":{"$ref":"https://example.com/a"}}}"#,
            "refers to `https://example.com/a`, which is not in it",
        ),
        (r#"{"properties":{"a":{"type":"strng"}}}"#, "`properties.a.type`"),
        (r#"{"properties":{"a":{"pattern":"("}}}"#, "`properties.a.pattern` is not a pattern"),
        (r#"{"required":"a"}"#, "`required` must be a list, not `\"a\"`"),
        (r#"{"maximum":1e999}"#, "out of range"),
    ] {
        let said = bad(schema).unwrap_or_else(|| "used".to_owned());
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}

#[test]
fn what_is_remembered_of_schemas_is_bounded_and_right() {
    let schemas = Schemas::default();
    for _ in 0..2 {
        // Schemas that the fast path recognises are not cached.
        assert_eq!(schemas.check(&json("{}")), Ok(()));
        assert_eq!(schemas.check(&json(r#"{"type":["object"]}"#)), Ok(()));
        assert_eq!(schemas.check(&json("[]")), Err(BadSchema::NotObject));
    }
    assert_eq!(schemas.known.lock().unwrap().len(), 2);
}

#[test]
fn null_for_what_may_be_left_out_counts_as_left_out() {
    let schema = r#"{"type":"object","properties":{"x":{"type":"boolean"}},"required":["y"]}"#;
    assert_eq!(said(schema, r#"{"x":null,"y":1}"#), "fits");
    assert_eq!(said(schema, r#"{"x":1,"y":1}"#), "`x` must be true or false, not `1`");
    let strict = r#"{"type":"object","properties":{"y":{"type":"string"}},"required":["y"]}"#;
    assert_eq!(said(strict, r#"{"y":null}"#), "`y` must be text, not null");
}

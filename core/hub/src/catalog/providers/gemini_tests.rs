//! Tests of the conversion of schemas for Gemini.

use super::*;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (given, expected) in cases {
        let given = format!(r#"{{"type":"object","properties":{{"x":{given}}}}}"#);
        let expected = format!(r#"{{"type":"object","properties":{{"x":{expected}}}}}"#);
        assert_eq!(fit(&json(&given)).unwrap().as_str(), expected, "{given}");
    }
}

#[test]
fn c59_schema_additional_properties_and_defaults_within_any_of_go_wherever_they_stand() {
    let given = json(
        r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
        "properties":{
          "plain":{"type":"integer","default":1.50,"minimum":12345678901234567890},
          "either":{"anyOf":[{"type":"string","default":"a"},{"type":"object","additionalProperties":false,"properties":{"deep":{"type":"number","default":2}}}],"default":"a"},
          "nested":{"type":"object","additionalProperties":{"type":"string"},"properties":{"list":{"type":"array","items":{"$schema":"x","type":"object","additionalProperties":true}}}},
          "tree":{"$ref":"#/$defs/node"},
          "$schema":{"type":"string"},"additionalProperties":{"type":"string"},"default":{"type":"string"}
        },
        "required":["plain"],"additionalProperties":false,
        "$defs":{"node":{"type":"object","description":"A node","properties":{"next":{"$ref":"#/$defs/node"}},"additionalProperties":false}}}"##,
    );
    let expected = concat!(
        r#"{"type":"object","properties":{"#,
        r#""plain":{"type":"integer","default":1.50,"minimum":12345678901234567890},"#,
        r#""either":{"anyOf":[{"type":"string"},{"type":"object","properties":{"deep":{"type":"number"}}}]},"#,
        r#""nested":{"type":"object","properties":{"list":{"type":"array","items":{"type":"object"}}}},"#,
        r#""tree":{"type":"object","description":"A node","properties":{"next":{"type":"object","description":"A node"}}},"#,
        r#""$schema":{"type":"string"},"additionalProperties":{"type":"string"},"default":{"type":"string"}},"#,
        r#""required":["plain"]}"#,
    );
    assert_eq!(fit(&given).unwrap().as_str(), expected);
}

#[test]
fn words_that_gemini_does_not_know_are_said_in_its_own_or_left_out() {
    check(&[
        (r#"{"type":["string","null"]}"#, r#"{"type":"string","nullable":true}"#),
        (r#"{"type":["string","integer"]}"#, r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#),
        (r#"{"oneOf":[{"type":"string"},true]}"#, r#"{"anyOf":[{"type":"string"},{}]}"#),
        (r#"{"const":"a"}"#, r#"{"enum":["a"]}"#),
        (r#"{"type":"integer","enum":[1,2],"exclusiveMinimum":0}"#, r#"{"type":"integer"}"#),
        (
            r#"{"type":"string","format":"uri","pattern":"^a"}"#,
            r#"{"type":"string","pattern":"^a"}"#,
        ),
        (r#"{"type":"string","format":"date-time"}"#, r#"{"type":"string","format":"date-time"}"#),
        (r#"{"not":{},"if":{},"$comment":"c","x-any":1}"#, "{}"),
        (
            r#"{"items":[{"type":"string"}],"type":"array"}"#,
            r#"{"items":{"anyOf":[{"type":"string"}]},"type":"array"}"#,
        ),
        ("true", "{}"),
    ]);
}

#[test]
fn parts_of_one_schema_are_put_together_and_its_own_words_win() {
    check(&[
        (
            r#"{"description":"mine","allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}},"required":["b"],"description":"theirs"}]}"#,
            r#"{"description":"mine","type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a","b"]}"#,
        ),
        (
            r#"{"properties":{"a":false,"b":true},"required":["a","b"]}"#,
            r#"{"properties":{"b":{}},"required":["b"]}"#,
        ),
    ]);
    let given = json(
        r##"{"properties":{"x":{"$ref":"#/definitions/a~1b","description":"here"}},"definitions":{"a/b":{"type":"string","description":"there"}}}"##,
    );
    let expected = r#"{"type":"object","properties":{"x":{"type":"string","description":"here"}}}"#;
    assert_eq!(fit(&given).unwrap().as_str(), expected);
}

#[test]
fn cycles_of_every_kind_come_to_an_end() {
    for cycle in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"properties":{"x":{"$ref":"#/properties/x"}}}"##,
        r##"{"properties":{"x":{"$ref":"#/properties/y"},"y":{"$ref":"#/properties/x"}}}"##,
        r##"{"properties":{"x":{"anyOf":[{"$ref":"#"},{"items":{"$ref":"#/properties/x"}}]}}}"##,
    ] {
        let fitted = fit(&json(cycle)).unwrap();
        assert!(!fitted.as_str().contains("$ref"), "{fitted}");
    }
}

#[test]
fn a_schema_that_cannot_be_made_to_fit_says_why() {
    let x = |schema: &str| format!(r#"{{"properties":{{"x":{schema}}}}}"#);
    let deep = (0..MAX_DEPTH).fold("{}".to_owned(), |inner, _| format!(r#"{{"items":{inner}}}"#));
    for (given, expected) in [
        (
            x(r#"{"$ref":"https://example.com/a"}"#),
            Unfit::Reference("https://example.com/a".to_owned()),
        ),
        (x(r##"{"$ref":"#/nowhere"}"##), Unfit::Reference("#/nowhere".to_owned())),
        (x(r##"{"$ref":"#anchor"}"##), Unfit::Reference("#anchor".to_owned())),
        (x("7"), Unfit::Odd("7".to_owned())),
        (x(&deep), Unfit::TooDeep),
        (r#"{"properties":[]}"#.to_owned(), Unfit::Odd("properties".to_owned())),
        (r#"{"type":"array"}"#.to_owned(), Unfit::NotObject),
    ] {
        assert_eq!(fit(&json(&given)), Err(expected), "{given}");
    }
}

#[test]
fn references_cannot_multiply_without_bound() {
    let double = |n: usize| {
        format!(
            r##""d{n}":{{"properties":{{"a":{{"$ref":"#/$defs/d{m}"}},"b":{{"$ref":"#/$defs/d{m}"}}}}}}"##,
            m = n + 1
        )
    };
    let defs: Vec<String> = (0..30).map(double).collect();
    let bomb = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d30":{{}}}}}}"##, defs.join(","));
    assert!(matches!(fit(&json(&bomb)), Err(Unfit::TooLarge | Unfit::TooDeep)));
}

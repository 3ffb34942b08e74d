//! Tests of the expansion of each form.

use proptest::prelude::*;

use super::*;

fn lookup(name: Name<'_>) -> Option<Found> {
    let (Name::Variable(name) | Name::Place(name) | Name::Input(name)) = name;
    match name {
        "A" => Some(Found::Variable("alpha".to_owned())),
        "EMPTY" => Some(Found::Variable(String::new())),
        "LOOP" => Some(Found::Variable("${A}".to_owned())),
        "CAPSTAN_PROJECT_DIR" => Some(Found::Fixed("/project".to_owned())),
        _ => None,
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let expanded = expand(text, Forms::Braces, &lookup);
    assert_eq!(expanded.text, expected, "{text}");
    assert!(expanded.missing.is_empty() && !expanded.unclosed, "{text}: {expanded:?}");
}

#[test]
fn a_variable_is_replaced_wherever_it_stands() {
    check("${A}", "alpha");
    check("x${A}y${A}", "xalphayalpha");
    check("${CAPSTAN_PROJECT_DIR}/bin/s", "/project/bin/s");
    check("${EMPTY}", "");
}

#[test]
fn a_default_stands_in_for_a_variable_that_is_unset_or_empty() {
    check("${A:-d}", "alpha");
    check("${NONE:-d}", "d");
    check("${EMPTY:-d}", "d");
    check("${NONE:-}", "");
    check("${NONE:-a:-b}", "a:-b");
}

#[test]
fn the_default_is_literal_text() {
    check("${NONE:-${A}}", "${A}");
    check("[${A:-${A}}]", "[alpha]");
}

#[test]
fn what_a_variable_contains_is_not_expanded_again() {
    check("${LOOP}", "${A}");
}

#[test]
fn every_other_dollar_stays_as_it_is() {
    for text in
        ["$A", "$${A}", "a$", "$", "${}", "${A%x}", "${1}", "${env:A}", "%A%", "{A}", "${A B}"]
    {
        check(text, text);
    }
}

#[test]
fn what_is_missing_is_named_and_only_that() {
    let expanded = expand("${NONE} ${A} ${OTHER}", Forms::Braces, &lookup);
    assert_eq!(expanded.missing, ["NONE", "OTHER"]);
    assert!(expand("${A", Forms::Braces, &lookup).unclosed);
    assert!(expand("${NONE:-${A}", Forms::Braces, &lookup).unclosed);
    assert_eq!(expand("${env:A}", Forms::Braces, &lookup).foreign, ["${env:A}"]);
}

#[test]
fn only_a_variable_of_the_environment_makes_a_text_worth_hiding() {
    assert!(expand("${A}", Forms::Braces, &lookup).from_environment);
    assert!(!expand("${NONE:-d}", Forms::Braces, &lookup).from_environment);
    assert!(!expand("${CAPSTAN_PROJECT_DIR}", Forms::Braces, &lookup).from_environment);
}

#[track_caller]
fn check_form(forms: Forms, text: &str, expected: &str) {
    let expanded = expand(text, forms, &lookup);
    assert_eq!(expanded.text, expected, "{forms:?} {text}");
    assert_eq!(expanded.missing, Vec::<String>::new(), "{forms:?} {text}");
}

#[test]
fn every_program_has_forms_of_its_own() {
    check_form(Forms::BracesKeepingEmpty, "[${EMPTY:-d}${NONE:-d}${A}]", "[dalpha]");
    check_form(Forms::Shell, "$A/${A}/%A%/%NONE%/$1/$$A", "alpha/alpha/alpha/%NONE%/$1/$$A");
    check_form(Forms::Spaced, "$A ${A} ${ A } ${A:-d} %A%", "alpha alpha alpha ${A:-d} %A%");
    check_form(Forms::Editor, "${env:A} ${A} $A {env:A}", "alpha ${A} $A {env:A}");
    check_form(Forms::Curly, "{env:A} ${A} $A ${env:A} {A}", "alpha ${A} $A ${env:A} {A}");
    check_form(Forms::Nothing, "${A} $A ${env:A} {env:A}", "${A} $A ${env:A} {env:A}");
}

#[test]
fn forms_of_others_are_reported_and_so_is_what_nobody_can_give() {
    for (forms, text) in [
        (Forms::Braces, "${env:A}"),
        (Forms::Spaced, "${input:a}"),
        (Forms::Editor, "${A:-d}"),
        (Forms::Curly, "${A}"),
        (Forms::Nothing, "${A}"),
    ] {
        assert_eq!(expand(text, forms, &lookup).foreign, [text], "{forms:?}");
    }
    assert_eq!(expand("${input:key}", Forms::Editor, &lookup).unanswered, ["key"]);
    assert_eq!(expand("{file:a.txt}", Forms::Curly, &lookup).files, ["a.txt"]);
    assert_eq!(expand("{env:NONE}", Forms::Curly, &lookup).missing, ["NONE"]);
    assert_eq!(expand("$NONE", Forms::Shell, &lookup).missing, ["NONE"]);
}

proptest! {
    #[test]
    fn expansion_never_panics_and_leaves_text_without_dollars_alone(text in ".{0,60}") {
        let expanded = expand(&text, Forms::Braces, &lookup);
        if !text.contains('$') {
            prop_assert_eq!(expanded.text, text);
        }
    }

    #[test]
    fn expansion_never_panics_on_almost_forms(text in "[${}:%A_ENenv -]{0,40}") {
        for forms in [
            Forms::Braces,
            Forms::BracesKeepingEmpty,
            Forms::Shell,
            Forms::Spaced,
            Forms::Editor,
            Forms::Curly,
            Forms::Nothing,
        ] {
            expand(&text, forms, &lookup);
        }
    }
}

//! Tests of what patterns match.

use super::*;

fn id(server: &str, item: &str) -> ItemId {
    ItemId { server: server.parse().unwrap(), item: item.to_owned() }
}

/// True if an allow rule matches; asserts that ask and deny rules agree.
///
/// They agree for all unambiguous arguments.
fn fits(pattern: &str, arguments: &str) -> bool {
    let [allow, ask, deny] = [Verdict::Allow, Verdict::Ask, Verdict::Deny]
        .map(|verdict| fits_for(verdict, pattern, arguments));
    assert_eq!((allow, allow), (ask, deny), "{pattern} {arguments}");
    allow
}

fn fits_for(verdict: Verdict, pattern: &str, arguments: &str) -> bool {
    let pattern = Pattern::parse(pattern).unwrap();
    let arguments = Json::parse(arguments.to_owned()).unwrap();
    let names = spellings(&id("gh", "create_issue"), "GH");
    pattern.matches(&names, Arguments::These(&arguments), verdict)
}

#[test]
fn a_pattern_matches_every_spelling_of_an_id_and_the_bare_name() {
    let fitting = [
        "*",
        "gh__create_issue",
        "mcp__gh__create_*",
        "gh:create_issue",
        "gh.create_issue",
        "create_*",
        "GH__create_issue",
        "g?__create_{issue,pull}",
    ];
    for pattern in fitting {
        assert!(fits(pattern, "{}"), "{pattern}");
    }
}

#[test]
fn a_pattern_does_not_reach_further_than_it_says() {
    let others = ["gh", "gh__", "create", "issue", "gl__create_issue", "gh__create", "Create_*"];
    for pattern in others {
        assert!(!fits(pattern, "{}"), "{pattern}");
    }
}

/// Holes 2.
#[test]
fn an_argument_that_a_server_could_read_as_the_one_in_a_rule_is_in_doubt() {
    for (pattern, arguments) in [
        ("create_issue:repo=acme/*", r#"{"repo":"acme/x","Repo":"evil/x"}"#),
        ("create_issue:repo=acme/*", r#"{"REPO":"acme/x"}"#),
        ("create_issue:repo=acme/*", r#"{"repo":"acme/x","repo\u0000":"evil/x"}"#),
        ("create_issue:repo=acme/*", r#"{"repo":"acme/x","ｒｅｐｏ":"evil/x"}"#),
        ("create_issue:at.repo=acme/*", r#"{"at":{"repo":"acme/x"},"At":{"repo":"evil/x"}}"#),
        ("create_issue:at.repo=acme/*", r#"{"at":{"repo":"acme/x","rePo":"evil/x"}}"#),
        ("create_issue:at.repo=acme/*", r#"{"at":{"repo":"acme/x"},"AT.repo":"evil/x"}"#),
    ] {
        assert!(!fits_for(Verdict::Allow, pattern, arguments), "{pattern} {arguments}");
        assert!(fits_for(Verdict::Ask, pattern, arguments), "{pattern} {arguments}");
        assert!(fits_for(Verdict::Deny, pattern, arguments), "{pattern} {arguments}");
    }
    // Keys that no matcher looks at: another case, another name, another path.
    for arguments in [
        r#"{"repo":"acme/x","title":"a","Title":"b"}"#,
        r#"{"repo":"acme/x","repos":"b","re-po":"c"}"#,
        r#"{"repo":"acme/x","at":{"Repo":"evil/x"}}"#,
    ] {
        assert!(fits("create_issue:repo=acme/*", arguments), "{arguments}");
    }
}

#[test]
fn a_pattern_can_say_that_there_are_no_other_arguments() {
    let pattern = "gh__create_issue:repo=acme/*,at.n=1,!";
    assert!(fits(pattern, r#"{"repo":"acme/x","at":{"n":1}}"#));
    for other in [
        r#"{"repo":"acme/x","at":{"n":1},"force":true}"#,
        r#"{"repo":"acme/x","at":{"n":1,"m":2}}"#,
        r#"{"repo":"acme/x"}"#,
    ] {
        assert!(!fits(pattern, other), "{other}");
    }
    assert!(fits("create_issue:!", "{}") && fits("create_issue:!", "null"));
    assert!(!fits("create_issue:!", r#"{"a":1}"#));
    // Ambiguous arguments match deny rules, but not allow rules.
    for (pattern, doubtful) in [
        ("create_issue:n=1,!", r#"{"n":"1"}"#),
        ("create_issue:n=[[]1[]],!", r#"{"n":[1]}"#),
        ("create_issue:a.n=1,!", r#"{"a.n":1}"#),
    ] {
        assert!(!fits_for(Verdict::Allow, pattern, doubtful), "{pattern}");
        assert!(fits_for(Verdict::Deny, pattern, doubtful), "{pattern}");
    }
    let looks = Pattern::parse("create_issue:!").unwrap().has_matchers();
    assert!(looks, "it is not decided before the arguments are known");
    assert!(Pattern::parse("create_issue:!,a=b").is_err());
}

#[test]
fn argument_matchers_must_all_fit() {
    let pattern = "mcp__gh__create_issue:repo=acme/*,title=feat*";
    assert!(fits(pattern, r#"{"repo":"acme/x","title":"feat: y"}"#));
    assert!(!fits(pattern, r#"{"repo":"acme/x","title":"fix"}"#));
    assert!(!fits(pattern, r#"{"repo":"other/x","title":"feat"}"#));
    assert!(!fits(pattern, r#"{"title":"feat"}"#));
    assert!(!fits(pattern, "{}"));
    assert!(fits("gh:create_issue:issue.repo=acme/*", r#"{"issue":{"repo":"acme/a"}}"#));
    assert!(fits("gh:create_issue:n=1*", r#"{"n":12345678901234567890123}"#));
    assert!(fits("create_issue:n={1,2}", r#"{"n":2}"#));
    assert!(!fits("create_issue:n={1,2}", r#"{"n":3}"#));
}

#[track_caller]
fn strict_rules_alone_mean(pattern: &str, arguments: &str) {
    assert!(fits_for(Verdict::Deny, pattern, arguments), "not denied: {arguments}");
    assert!(fits_for(Verdict::Ask, pattern, arguments), "not asked about: {arguments}");
    assert!(!fits_for(Verdict::Allow, pattern, arguments), "allowed: {arguments}");
}

#[test]
fn arguments_that_cannot_be_read_are_denied_and_never_allowed() {
    let unreadable = [
        r#"{"path":"/etc/passwd","\ud800":1}"#,
        r#"{"\udfff":1,"path":"/home"}"#,
        r#"{"path":"/etc/passwd\ud800"}"#,
        r#"{"path":"\ud800"}"#,
        r#"["/etc/passwd"]"#,
        r#""{\"path\":\"/etc/passwd\"}""#,
        "1",
    ];
    for arguments in unreadable {
        strict_rules_alone_mean("create_issue:path=/etc/*", arguments);
    }
    strict_rules_alone_mean("create_issue:a.path=/etc/*", r#"{"a":{"\ud800":1,"path":"x"}}"#);
    assert!(!fits("gl__create_issue:path=*", "{}"));
    assert!(!fits("create_issue:path=*", "null"));
}

#[test]
fn a_second_reading_hides_no_first_one() {
    let pattern = "create_issue:issue.repo=acme/*";
    for arguments in [
        r#"{"issue.repo":"x","issue":{"repo":"acme/a"}}"#,
        r#"{"issue":{"repo":"acme/a"},"issue.repo":"x"}"#,
        r#"{"issue.repo":"acme/a","issue":{"repo":"x"}}"#,
    ] {
        strict_rules_alone_mean(pattern, arguments);
    }
    assert!(!fits(pattern, r#"{"issue.repo":"x","issue":{"repo":"y"}}"#));
    assert!(fits(pattern, r#"{"issue.repo":"acme/b","issue":{"repo":"acme/a"}}"#));
}

#[test]
fn while_arguments_are_unknown_only_a_matcher_that_denies_never_matches() {
    let pattern = Pattern::parse("create_issue:repo=*").unwrap();
    let names = spellings(&id("gh", "create_issue"), "gh");
    let matches = |verdict| pattern.matches(&names, Arguments::Unknown, verdict);
    assert!(!matches(Verdict::Deny));
    assert!(matches(Verdict::Ask));
    assert!(matches(Verdict::Allow));
    let bare = Pattern::parse("create_issue").unwrap();
    assert!(bare.matches(&names, Arguments::Unknown, Verdict::Deny));
}

#[test]
fn questions_of_a_server_have_patterns_of_their_own() {
    let pattern = Pattern::parse("Elicit(lin*)").unwrap();
    assert!(pattern.matches_elicitation("linear"));
    assert!(!pattern.matches_elicitation("github"));
    let names = ["linear__x".to_owned()];
    assert!(!pattern.matches(&names, Arguments::Unknown, Verdict::Allow));
    assert!(!Pattern::parse("*").unwrap().matches_elicitation("linear"));
}

#[test]
fn what_is_no_pattern_is_refused() {
    for bad in ["", "  ", "[x", "a{b", "Elicit([)", "t:key=[", "t:a=1,b"] {
        assert!(Pattern::parse(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn a_slip_of_the_pen_is_refused_instead_of_matching_nothing() {
    for text in ["s__t:", "s__t:=x", "t:", "Elicit(", "Elicit(s", "Elicit(s)x"] {
        assert!(Pattern::parse(text).is_err(), "{text}");
    }
    for text in ["s:t", "s__a:b", "f:demo://x", "s__t:k=v", "Elicit(s)"] {
        assert!(Pattern::parse(text).is_ok(), "{text}");
    }
}

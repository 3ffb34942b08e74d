//! Tests of permission rules, as tables.

use capstan_model::ItemId;
use capstan_wire::Json;
use proptest::prelude::*;

use super::*;
use crate::Reach;
use crate::pattern::{Arguments, Pattern, spellings};

/// Parses rules in short form: one `scope.list: pattern` per line.
fn permissions(text: &str) -> Permissions {
    let mut all = Permissions::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (place, pattern) = line.split_once(": ").unwrap();
        let (scope, list) = place.split_once('.').unwrap();
        let rules = match scope {
            "global" => &mut all.global,
            server => all.servers.entry(server.parse().unwrap()).or_default(),
        };
        let rule = Rule::new(Pattern::parse(pattern).unwrap(), place);
        match list {
            "allow" => rules.allow.push(rule),
            "ask" => rules.ask.push(rule),
            "deny" => rules.deny.push(rule),
            other => panic!("no list {other}"),
        }
    }
    all
}

fn table(permissions: Permissions) -> RuleTable {
    RuleTable::new(RuleList::default(), Vec::new(), permissions)
}

fn rule_on(rules: &Permissions, tool: &str, arguments: &str) -> Ruling {
    let server: ServerName = tool.split_once("__").unwrap().0.parse().unwrap();
    let id = ItemId::resolve(tool, [&server]).unwrap();
    let arguments = Json::parse(arguments.to_owned()).unwrap();
    let names = spellings(&id, server.as_str());
    let question = Question {
        server: &server,
        names: &names,
        arguments: Arguments::These(&arguments),
        effect: Effect::Unknown,
        now: Timestamp::UNIX_EPOCH,
    };
    table(rules.clone()).decide(&question, DefaultRule::Always(Verdict::Ask)).by_permissions
}

#[track_caller]
fn check(rules: &str, tool: &str, expected: (Verdict, &str)) {
    let ruling = rule_on(&permissions(rules), tool, "{}");
    assert_eq!((ruling.verdict, ruling.rule.as_str()), expected);
}

#[test]
fn a_tool_no_rule_speaks_of_is_asked_about() {
    check("", "linear__list_issues", (Verdict::Ask, "permissions.default: ask"));
}

/// Row C11 of the seed examples.
#[test]
fn c11_the_rules_of_linear_decide_as_its_page_says() {
    let rules = "
        linear.allow: read_*
        linear.allow: list_*
        linear.deny: delete_*
        linear.ask: create_*
        linear.ask: update_*
    ";
    check(rules, "linear__read_issue", (Verdict::Allow, "linear.allow: read_*"));
    check(rules, "linear__list_issues", (Verdict::Allow, "linear.allow: list_*"));
    check(rules, "linear__delete_issue", (Verdict::Deny, "linear.deny: delete_*"));
    check(rules, "linear__create_issue", (Verdict::Ask, "linear.ask: create_*"));
    check(rules, "linear__update_issue", (Verdict::Ask, "linear.ask: update_*"));
    check(rules, "linear__other", (Verdict::Ask, "permissions.default: ask"));
}

/// Row C11, second half: the merge order.
#[test]
fn c11_the_first_list_with_a_match_decides() {
    let table = [
        ("global.deny: *delete_issue\nlinear.allow: *", Verdict::Deny),
        ("global.allow: *\nlinear.deny: delete_*", Verdict::Deny),
        ("global.allow: *\nlinear.ask: delete_*", Verdict::Ask),
        ("global.ask: *\nlinear.allow: delete_*", Verdict::Allow),
        ("linear.ask: *\nlinear.allow: *", Verdict::Ask),
        ("linear.deny: *\nlinear.ask: *\nlinear.allow: *", Verdict::Deny),
        ("global.ask: *\nglobal.allow: *", Verdict::Ask),
        ("global.deny: *\nglobal.ask: *\nglobal.allow: *\nlinear.allow: *", Verdict::Deny),
        ("global.allow: *", Verdict::Allow),
    ];
    for (rules, expected) in table {
        assert_eq!(
            rule_on(&permissions(rules), "linear__delete_issue", "{}").verdict,
            expected,
            "{rules}"
        );
    }
}

#[test]
fn rules_of_one_server_do_not_reach_another() {
    let ask = (Verdict::Ask, "permissions.default: ask");
    check("linear.allow: *", "github__list_issues", ask);
    check("linear.allow: github__*", "github__list_issues", ask);
    check("linear.deny: github__*", "linear__list_issues", ask);
}

#[test]
fn a_servers_own_rules_know_its_tools_in_any_spelling() {
    for pattern in
        ["delete_*", "linear__delete_*", "mcp__linear__delete_*", "linear:delete_*", "linear.del*"]
    {
        let place = |list: &str| format!("linear.{list}: {pattern}");
        let all = "global.allow: *\n";
        let denied = (Verdict::Deny, &*place("deny"));
        check(&format!("{all}{}", place("deny")), "linear__delete_issue", denied);
        let asked = (Verdict::Ask, &*place("ask"));
        check(&format!("{all}{}", place("ask")), "linear__delete_issue", asked);
        check(&place("allow"), "linear__delete_issue", (Verdict::Allow, &*place("allow")));
        let other = (Verdict::Ask, "permissions.default: ask");
        check(&place("allow"), "linear__list_issues", other);
    }
}

#[test]
fn a_deny_by_arguments_is_not_passed_by_arguments_that_cannot_be_read() {
    let rules = permissions("global.allow: *\nglobal.deny: read:path=/etc/*");
    let verdict = |arguments: &str| rule_on(&rules, "files__read", arguments).verdict;
    for arguments in [
        r#"{"path":"/etc/passwd"}"#,
        r#"{"path":"/etc/passwd","\ud800":1}"#,
        r#"{"\ud800":1}"#,
        r#"{"path":"\ud800"}"#,
    ] {
        assert_eq!(verdict(arguments), Verdict::Deny, "{arguments}");
    }
    assert_eq!(verdict(r#"{"path":"/home"}"#), Verdict::Allow);
    assert_eq!(verdict("{}"), Verdict::Allow);
}

#[test]
fn a_rule_that_has_expired_no_longer_counts() {
    let mut rules = permissions("global.allow: *");
    rules.global.allow[0].expires_at = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(rule_on(&rules, "a__b", "{}").verdict, Verdict::Ask);
    rules.global.allow[0].expires_at = Some("2999-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(rule_on(&rules, "a__b", "{}").verdict, Verdict::Allow);
}

#[test]
fn a_rule_with_a_reach_says_nothing_of_other_servers() {
    let mut rules = permissions("global.allow: *");
    rules.global.allow[0].reach = Reach::Only(["mine".parse().unwrap()].into());
    assert_eq!(rule_on(&rules, "mine__x", "{}").verdict, Verdict::Allow);
    assert_eq!(rule_on(&rules, "other__x", "{}").verdict, Verdict::Ask);
}

#[test]
fn ask_writes_lets_only_known_reads_pass() {
    let rules = Permissions { default: Some(DefaultRule::AskWrites), ..Permissions::default() };
    let server: ServerName = "s".parse().unwrap();
    let names = ["s__t".to_owned(), "t".to_owned()];
    for (effect, expected) in [
        (Effect::Read, Verdict::Allow),
        (Effect::Write, Verdict::Ask),
        (Effect::Unknown, Verdict::Ask),
    ] {
        let question = Question {
            server: &server,
            names: &names,
            arguments: Arguments::Unknown,
            effect,
            now: Timestamp::UNIX_EPOCH,
        };
        let votes = table(rules.clone()).decide(&question, DefaultRule::Always(Verdict::Deny));
        let ruling = votes.by_permissions;
        assert_eq!(ruling.verdict, expected, "{effect:?}");
    }
}

/// Row C18 of the seed examples, the part about rules.
#[test]
fn c18_the_questions_of_a_server_are_denied_or_shown() {
    let server: ServerName = "linear".parse().unwrap();
    let verdict = |rules: &str| {
        table(permissions(rules))
            .rule_on_elicitation(&server, "Linear", Timestamp::UNIX_EPOCH)
            .map(|ruling| ruling.verdict)
    };
    assert_eq!(verdict("global.deny: Elicit(linear)"), Some(Verdict::Deny));
    assert_eq!(
        verdict("global.allow: Elicit(*)\nglobal.deny: Elicit(linear)"),
        Some(Verdict::Deny)
    );
    assert_eq!(verdict("global.allow: Elicit(linear)"), Some(Verdict::Allow));
    assert_eq!(verdict("global.deny: Elicit(Linear)"), Some(Verdict::Deny));
    assert_eq!(verdict("global.deny: Elicit(github)"), None);
    assert_eq!(verdict("global.deny: *"), None);
}

fn any_rules() -> impl Strategy<Value = String> {
    let line = (
        prop::sample::select(vec!["global", "a", "b"]),
        prop::sample::select(vec!["allow", "ask", "deny"]),
        prop::sample::select(vec!["*", "x*", "a__*", "y", "x:k=1"]),
    )
        .prop_map(|(scope, list, pattern)| format!("{scope}.{list}: {pattern}"));
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn adding_a_global_deny_never_allows_more(rules in any_rules(), tool in "[ab]__[xy]{1,2}") {
        let before = rule_on(&permissions(&rules), &tool, r#"{"k":1}"#).verdict;
        let after = rule_on(&permissions(&format!("{rules}\nglobal.deny: x*")), &tool, r#"{"k":1}"#);
        prop_assert!(after.verdict >= before);
    }

    #[test]
    fn a_global_deny_that_matches_never_loses(rules in any_rules(), tool in "[ab]__x[xy]?") {
        let ruling = rule_on(&permissions(&format!("global.deny: x*\n{rules}")), &tool, "{}");
        prop_assert_eq!(ruling.verdict, Verdict::Deny);
    }
}

//! Tests of decisions by all engines together.

use capstan_model::Front;
use proptest::prelude::*;

use super::*;
use crate::access::{AccessTable, Says};
use crate::pattern::Pattern;
use crate::rules::{Rule, RuleEffect};

fn rules(place: &str, patterns: &[&str]) -> Vec<Rule> {
    let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), place);
    patterns.iter().map(rule).collect()
}

fn policy() -> PolicySource {
    let hide = ["secret_*".to_owned()];
    let server = ServerPolicy {
        display: "Files".to_owned(),
        exposure: Exposure::new(None, &hide).unwrap(),
        ..ServerPolicy::default()
    };
    let mut policy = PolicySource::default();
    policy.servers.insert("files".parse().unwrap(), server);
    policy.tools.deny = rules("tools.policy.deny", &["files__drop"]);
    policy.tools.ask = rules("tools.policy.ask", &["files__move"]);
    policy.permissions.global.allow = rules("permissions.allow", &["*"]);
    policy.permissions.global.deny = rules("permissions.deny", &["Files:wipe"]);
    policy
}

fn explain(tool: &str) -> (Ruling, Vec<Step>) {
    explain_under(&policy(), Kind::Tool, tool)
}

fn explain_under(policy: &PolicySource, kind: Kind, item: &str) -> (Ruling, Vec<Step>) {
    let id = ItemId { server: "files".parse().unwrap(), item: item.to_owned() };
    let caller = Caller::operator(Front::Cli);
    let asked = Asked {
        caller: &caller,
        id: &id,
        kind,
        arguments: Arguments::Unknown,
        effect: Effect::Unknown,
        now: Timestamp::UNIX_EPOCH,
        fallback: DefaultRule::Always(Verdict::Ask),
    };
    let policy = policy.clone().compile();
    let (ruling, steps) = policy.explain(&asked);
    assert_eq!(policy.decide(&asked), ruling, "explaining must not change the verdict");
    (ruling, steps)
}

#[test]
fn a_sandboxed_server_gives_no_resources_and_no_prompts_whatever_a_rule_allows() {
    let expose = ["*".to_owned()];
    let with_trust = |trust| {
        let mut policy = policy();
        for server in policy.servers.values_mut() {
            server.trust = trust;
            server.exposure = Exposure::new(Some(&expose), &[]).unwrap();
        }
        policy.permissions.global.allow = rules("permissions.allow", &["*", "greet"]);
        policy
    };
    for (kind, item) in [(Kind::Resource, "file:///notes"), (Kind::Prompt, "greet")] {
        let ruling = explain_under(&with_trust(Trust::Sandboxed), kind, item).0;
        let rule = "servers.files.trust: sandboxed".to_owned();
        assert_eq!(ruling, Ruling { verdict: Verdict::Deny, rule, by: By::Rule });
        for trust in [Trust::Untrusted, Trust::Trusted] {
            let ruling = explain_under(&with_trust(trust), kind, item).0;
            assert_eq!(ruling.verdict, Verdict::Allow, "{trust:?} {kind:?}");
        }
    }
    let tool = explain_under(&with_trust(Trust::Sandboxed), Kind::Tool, "read").0;
    assert_eq!(tool.verdict, Verdict::Allow);
}

#[test]
fn what_is_hidden_by_its_full_id_stays_hidden() {
    for pattern in ["files__read", "mcp__files__read", "Files:read", "read"] {
        let mut policy = policy();
        for server in policy.servers.values_mut() {
            server.exposure = Exposure::new(None, &[pattern.to_owned()]).unwrap();
        }
        let ruling = explain_under(&policy, Kind::Tool, "read").0;
        assert_eq!(ruling.rule, format!("servers.files.hide: {pattern}"));
        assert_eq!(explain_under(&policy, Kind::Tool, "reads").0.verdict, Verdict::Allow);
    }
}

#[test]
fn the_strictest_engine_wins() {
    let table = [
        ("read", Verdict::Allow, "permissions.allow: *"),
        ("move", Verdict::Ask, "tools.policy.ask: files__move"),
        ("drop", Verdict::Deny, "tools.policy.deny: files__drop"),
        ("wipe", Verdict::Deny, "permissions.deny: Files:wipe"),
        ("secret_key", Verdict::Deny, "servers.files.hide: secret_*"),
    ];
    for (tool, verdict, rule) in table {
        let expected = Ruling { verdict, rule: rule.to_owned(), by: By::Rule };
        assert_eq!(explain(tool).0, expected, "{tool}");
    }
}

#[test]
fn every_rule_looked_at_is_told_in_order() {
    let steps: Vec<String> = explain("move")
        .1
        .iter()
        .map(|step| format!("{} {} {:?}", step.engine, step.rule, step.verdict))
        .collect();
    assert_eq!(
        steps,
        [
            "exposure servers.files: offered None",
            "tool_policy tools.policy.deny: files__drop None",
            "tool_policy tools.policy.ask: files__move Some(Ask)",
            "permissions permissions.deny: Files:wipe None",
            "permissions permissions.allow: * Some(Allow)",
        ]
    );
}

fn ordered(verdict: Verdict, pattern: &str, comment: &str) -> OrderedRule {
    let mut rule = Rule::new(Pattern::parse(pattern).unwrap(), "tools.authorization.rules[0]");
    rule.reason = Some(comment.to_owned());
    OrderedRule { verdict, rule }
}

/// Row C50 of the seed examples.
#[test]
fn c50_authorization_comes_behind_the_tool_policy_and_its_comment_is_told() {
    let mut policy = policy();
    policy.authorization = vec![
        ordered(Verdict::Allow, "read_file", "Read-only filesystem access"),
        ordered(Verdict::Deny, "shell", "not permitted in this deployment"),
        ordered(Verdict::Allow, "drop", "too late"),
        ordered(Verdict::Deny, "move", "too late as well"),
        ordered(Verdict::Allow, "shell", "too late, too"),
    ];
    let table = [
        ("read_file", Verdict::Allow, "permissions.allow: *"),
        (
            "shell",
            Verdict::Deny,
            "tools.authorization.rules[0]: shell (not permitted in this deployment)",
        ),
        ("drop", Verdict::Deny, "tools.policy.deny: files__drop"),
        ("move", Verdict::Ask, "tools.policy.ask: files__move"),
        ("other", Verdict::Allow, "permissions.allow: *"),
        ("wipe", Verdict::Deny, "permissions.deny: Files:wipe"),
    ];
    for (tool, verdict, rule) in table {
        let ruling = explain_under(&policy, Kind::Tool, tool).0;
        assert_eq!((ruling.verdict, ruling.rule.as_str()), (verdict, rule), "{tool}");
    }
}

fn with_access(table: AccessTable) -> PolicySource {
    let files: ServerName = "files".parse().unwrap();
    PolicySource { access: vec![Access::new(table, [(&files, "Files")])], ..policy() }
}

fn by(caller: &Caller, policy: &PolicySource, item: &str, effect: Effect) -> (Ruling, Vec<Step>) {
    let id = ItemId { server: "files".parse().unwrap(), item: item.to_owned() };
    let asked = Asked {
        caller,
        id: &id,
        kind: Kind::Tool,
        arguments: Arguments::Unknown,
        effect,
        now: Timestamp::UNIX_EPOCH,
        fallback: DefaultRule::Always(Verdict::Ask),
    };
    let policy = policy.clone().compile();
    let explained = policy.explain(&asked);
    assert_eq!(policy.decide(&asked), explained.0, "explaining must not change the verdict");
    explained
}

#[test]
fn access_binds_who_comes_over_the_network_and_nobody_else() {
    let policy = with_access(AccessTable { default: Says::Deny, ..AccessTable::default() });
    let remote = Caller::remote("ann", Vec::new());
    let (ruling, steps) = by(&remote, &policy, "read", Effect::Read);
    assert_eq!((ruling.verdict, ruling.rule.as_str()), (Verdict::Deny, "access.default"));
    let engines: Vec<&str> = steps.iter().map(|step| step.engine).collect();
    assert_eq!(engines, ["exposure", "access"], "a deny is final");
    assert!(policy.clone().compile().binds(&remote));
    let stdio = Caller::anonymous();
    for free in [Caller::operator(Front::Cli), Caller::operator(Front::Terminal), stdio] {
        assert!(!policy.clone().compile().binds(&free));
        let (ruling, steps) = by(&free, &policy, "read", Effect::Read);
        assert_eq!(ruling.verdict, Verdict::Allow, "{free:?}");
        assert!(steps.iter().all(|step| step.engine != "access"));
    }
    assert!(!Policy::default().binds(&remote), "without a table nobody is bound");
}

#[test]
fn what_access_allows_the_other_engines_still_look_at() {
    let remote = Caller::remote("ann", Vec::new());
    let open = with_access(AccessTable::default());
    for (tool, verdict) in [
        ("read", Verdict::Allow),
        ("move", Verdict::Ask),
        ("drop", Verdict::Deny),
        ("wipe", Verdict::Deny),
        ("secret_key", Verdict::Deny),
    ] {
        assert_eq!(by(&remote, &open, tool, Effect::Read).0.verdict, verdict, "{tool}");
    }
    let mut both = open.clone();
    let shut = AccessTable { default: Says::Deny, ..AccessTable::default() };
    let files: ServerName = "files".parse().unwrap();
    both.access.push(Access::new(shut, [(&files, "Files")]));
    let verdict = by(&remote, &both, "read", Effect::Read).0.verdict;
    assert_eq!(verdict, Verdict::Deny, "of two tables both must agree");
}

#[test]
fn a_rule_with_an_effect_speaks_of_nothing_else() {
    use Effect::{Read, Unknown, Write};
    for (effect, fitting) in
        [(RuleEffect::Read, &[Read][..]), (RuleEffect::Write, &[Write, Unknown])]
    {
        let mut policy = PolicySource::default();
        policy.permissions.global.allow = rules("permissions.allow", &["files__*"]);
        policy.permissions.global.allow[0].effect = Some(effect);
        for does in [Read, Write, Unknown] {
            let verdict = by(&Caller::anonymous(), &policy, "x", does).0.verdict;
            let expected = if fitting.contains(&does) { Verdict::Allow } else { Verdict::Ask };
            assert_eq!(verdict, expected, "{effect:?} {does:?}");
        }
    }
}

/// A generated rule: list, pattern, and an expired flag.
fn any_rule() -> impl Strategy<Value = (usize, String, bool)> {
    let name = "(\\*|x|files__|mcp__files__|y)?[xyz]{1,2}(\\*|_\\*|\\?|)(:k=(1|2|\\*))?";
    (0..10_usize, name, any::<bool>())
}

fn drawn(lines: &[(usize, String, bool)]) -> Policy {
    let mut policy = policy();
    let own = policy.permissions.servers.entry("files".parse().unwrap()).or_default();
    let mut lists = (RuleList::default(), RuleList::default(), std::mem::take(own));
    for (list, pattern, expired) in lines {
        let mut rule = Rule::new(Pattern::parse(pattern).unwrap(), format!("list{list}"));
        rule.expires_at = expired.then_some(Timestamp::UNIX_EPOCH);
        let (tools, global, own) = (&mut lists.0, &mut lists.1, &mut lists.2);
        match list {
            0 => tools.deny.push(rule),
            1 => tools.ask.push(rule),
            2 => tools.allow.push(rule),
            3 => global.deny.push(rule),
            4 => own.deny.push(rule),
            5 => own.ask.push(rule),
            6 => own.allow.push(rule),
            7 => global.ask.push(rule),
            8 => global.allow.push(rule),
            _ => {
                let verdict = if *expired { Verdict::Deny } else { Verdict::Allow };
                policy.authorization.push(OrderedRule { verdict, rule });
            }
        }
    }
    (policy.tools, policy.permissions.global) = (lists.0, lists.1);
    policy.permissions.servers.insert("files".parse().unwrap(), lists.2);
    policy.compile()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rules_that_are_looked_up_decide_what_looking_at_each_would(
        lines in prop::collection::vec(any_rule(), 0..80),
        tool in "[xyz_]{1,4}",
        arguments in prop::sample::select(vec![r#"{"k":1}"#, r#"{"k":2}"#, "{}"]),
    ) {
        let policy = drawn(&lines);
        let id = ItemId { server: "files".parse().unwrap(), item: tool };
        let arguments = Json::parse(arguments).unwrap();
        for arguments in [Arguments::These(&arguments), Arguments::Unknown] {
            let asked = Asked {
                caller: &Caller::operator(Front::Cli),
                id: &id,
                kind: Kind::Tool,
                arguments,
                effect: Effect::Unknown,
                now: Timestamp::UNIX_EPOCH,
                fallback: DefaultRule::Always(Verdict::Ask),
            };
            prop_assert_eq!(policy.decide(&asked), policy.explain(&asked).0);
        }
    }

    #[test]
    fn one_more_deny_in_any_list_never_allows_more(
        lines in prop::collection::vec(any_rule(), 0..40),
        list in prop::sample::select(vec![0, 3, 4]),
        tool in "[xyz_]{1,3}",
    ) {
        let id = ItemId { server: "files".parse().unwrap(), item: tool };
        let verdict = |lines: &[(usize, String, bool)]| {
            let arguments = Json::parse(r#"{"k":1}"#).unwrap();
            drawn(lines).decide(&Asked {
                caller: &Caller::operator(Front::Cli),
                id: &id,
                kind: Kind::Tool,
                arguments: Arguments::These(&arguments),
                effect: Effect::Unknown,
                now: Timestamp::UNIX_EPOCH,
                fallback: DefaultRule::Always(Verdict::Ask),
            }).verdict
        };
        let before = verdict(&lines);
        let mut with = lines;
        with.push((list, "x*".to_owned(), false));
        prop_assert!(verdict(&with) >= before);
    }
}

#[test]
fn what_a_rule_asks_does_not_hide_behind_a_default_that_asks_too() {
    let mut policy = policy();
    policy.permissions.global.allow.clear();
    let ruling = explain_under(&policy, Kind::Tool, "move").0;
    assert_eq!((ruling.verdict, ruling.by), (Verdict::Ask, By::Rule));
    assert_eq!(ruling.rule, "tools.policy.ask: files__move");
    assert_eq!(explain_under(&policy, Kind::Tool, "read").0.by, By::Default);
}

#[test]
fn a_tool_that_is_named_like_the_id_of_anothers_is_not_taken_for_it() {
    let mut policy = policy();
    policy.servers.insert("mail".parse().unwrap(), ServerPolicy::default());
    for allowed in ["mail__send", "mail__*", "mail:send", "mcp__mail__s*"] {
        policy.permissions.global.allow = rules("permissions.allow", &[allowed]);
        for poser in ["mail__send", "mail:send", "mail.send", "mcp__mail__send"] {
            let ruling = explain_under(&policy, Kind::Tool, poser).0;
            assert_eq!(ruling.verdict, Verdict::Ask, "{allowed} {poser}");
        }
    }
    policy.permissions.global.allow = rules("permissions.allow", &["files__mail__send", "no__id"]);
    assert_eq!(explain_under(&policy, Kind::Tool, "mail__send").0.verdict, Verdict::Allow);
    assert_eq!(explain_under(&policy, Kind::Tool, "no__id").0.verdict, Verdict::Allow);
}

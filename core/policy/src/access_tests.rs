//! Tests of access decisions, as tables of grants.

use Strictness::{Strict, Usual};
use capstan_model::{Front, ItemId};

use super::*;
use crate::glob::Glob;
use crate::pattern::spellings;

const SERVERS: [&str; 3] = ["grafana", "sentry", "db"];

/// Parses a grant in short form: `read sentry`, `deny * db tools=drop_*,wipe resources=*`.
pub(super) fn grant(text: &str) -> Grant {
    let (says, text) = match text.strip_prefix("deny ") {
        Some(rest) => (Says::Deny, rest),
        None => (Says::Allow, text),
    };
    let mut words = text.split(' ');
    let access = match words.next().unwrap() {
        "read" => AccessTo::Read,
        "write" => AccessTo::Write,
        "*" => AccessTo::All,
        other => panic!("no access {other}"),
    };
    let globs = |list: &str| list.split(',').map(Glob::stars).collect::<Vec<_>>();
    let servers = globs(words.next().unwrap());
    let rest: HashMap<&str, &str> = words.map(|word| word.split_once('=').unwrap()).collect();
    let list = |key| rest.get(key).map(|list| globs(list));
    let (tools, resources, prompts) = (list("tools"), list("resources"), list("prompts"));
    Grant { servers, access, tools, resources, prompts, says }
}

pub(super) fn grants(texts: &[&str]) -> Vec<Grant> {
    texts.iter().map(|text| grant(text)).collect()
}

/// A table with one role, `dev`, and these grants.
pub(super) fn of_dev(texts: &[&str]) -> AccessTable {
    AccessTable {
        default: Says::Deny,
        roles: vec![("dev".to_owned(), grants(texts))],
        ..AccessTable::default()
    }
}

pub(super) fn ready(table: AccessTable) -> Access {
    let servers: Vec<ServerName> = SERVERS.iter().map(|name| name.parse().unwrap()).collect();
    Access::new(table, servers.iter().map(|name| (name, name.as_str())))
}

pub(super) struct Item<'a> {
    pub(super) kind: Kind,
    pub(super) id: &'a str,
    pub(super) effect: Effect,
}

fn tool(id: &str, effect: Effect) -> Item<'_> {
    Item { kind: Kind::Tool, id, effect }
}

pub(super) fn ruling(access: &Access, caller: &Caller, item: &Item<'_>) -> Ruling {
    let (server, name) = item.id.split_once("__").unwrap();
    let id = ItemId { server: server.parse().unwrap(), item: name.to_owned() };
    let names = spellings(&id, server);
    let (kind, effect) = (item.kind, item.effect);
    let wanted = Wanted { caller, id: &id, kind, effect, names: &names };
    let ruling = access.rule_on(&wanted, &mut |_, _| {});
    let refused = (ruling.verdict == Verdict::Deny).then(|| ruling.clone());
    assert_eq!(access.refusal(&wanted), refused, "looked up, and looked at one by one");
    ruling
}

fn says(access: &Access, caller: &Caller, item: &Item<'_>) -> (Verdict, String) {
    let ruling = ruling(access, caller, item);
    (ruling.verdict, ruling.rule)
}

pub(super) fn dev() -> Caller {
    Caller::remote("someone", vec!["dev".to_owned()])
}

#[track_caller]
fn check(table: AccessTable, item: &Item<'_>, verdict: Verdict, rule: &str) {
    assert_eq!(says(&ready(table), &dev(), item), (verdict, rule.to_owned()), "{}", item.id);
}

/// Row C37 of the seed examples: three roles, three people.
fn c37() -> Access {
    let roles = [
        ("admin", &["* *"][..]),
        ("dev", &["* grafana", "read sentry", "deny write grafana tools=delete_*"]),
        ("readonly", &["read *"]),
    ];
    let subject = |roles: &[&str], extra: &[&str]| Subject {
        roles: roles.iter().map(ToString::to_string).collect(),
        extra: grants(extra),
    };
    ready(AccessTable {
        default: Says::Deny,
        roles: roles.map(|(name, texts)| (name.to_owned(), grants(texts))).into(),
        subjects: vec![
            ("alice".to_owned(), subject(&["admin"], &[])),
            ("bob".to_owned(), subject(&["dev"], &["write sentry tools=resolve_issue"])),
            ("charlie".to_owned(), subject(&["readonly"], &[])),
        ],
        ..AccessTable::default()
    })
}

#[test]
fn c37_each_of_three_people_may_do_what_their_roles_say() {
    let access = c37();
    let (read, write) = (Effect::Read, Effect::Write);
    let table = [
        ("alice", tool("grafana__query", read), Verdict::Allow, "access.roles.admin[0]"),
        ("alice", tool("grafana__delete_panel", write), Verdict::Allow, "access.roles.admin[0]"),
        ("alice", tool("sentry__resolve_issue", write), Verdict::Allow, "access.roles.admin[0]"),
        ("alice", tool("db__drop", Effect::Unknown), Verdict::Allow, "access.roles.admin[0]"),
        ("bob", tool("grafana__query", read), Verdict::Allow, "access.roles.dev[0]"),
        ("bob", tool("grafana__delete_panel", write), Verdict::Deny, "access.roles.dev[2]"),
        ("bob", tool("sentry__list_issues", read), Verdict::Allow, "access.roles.dev[1]"),
        (
            "bob",
            tool("sentry__resolve_issue", write),
            Verdict::Allow,
            "access.subjects.bob.extra[0]",
        ),
        ("bob", tool("sentry__delete_issue", write), Verdict::Deny, "access.default"),
        ("bob", tool("db__query", read), Verdict::Deny, "access.default"),
        ("charlie", tool("db__query", read), Verdict::Allow, "access.roles.readonly[0]"),
        ("charlie", tool("db__drop", write), Verdict::Deny, "access.default"),
        ("charlie", tool("db__vague", Effect::Unknown), Verdict::Deny, "access.default"),
        ("mallory", tool("db__query", read), Verdict::Deny, "access.default"),
        ("Alice", tool("db__query", read), Verdict::Deny, "access.default"),
    ];
    for (subject, item, verdict, rule) in table {
        let caller = Caller::remote(subject, Vec::new());
        let expected = (verdict, rule.to_owned());
        assert_eq!(says(&access, &caller, &item), expected, "{subject} {}", item.id);
    }
}

#[test]
fn c37_a_deny_wins_whatever_else_a_caller_has() {
    let access = c37();
    let delete = tool("grafana__delete_panel", Effect::Write);
    let roles = ["admin", "dev"].map(str::to_owned);
    for roles in [roles.to_vec(), roles.into_iter().rev().collect()] {
        let both = Caller::remote("someone", roles);
        assert_eq!(says(&access, &both, &delete), (Verdict::Deny, "access.roles.dev[2]".into()));
    }
    let alice = Caller::remote("alice", vec!["dev".to_owned()]);
    assert_eq!(ruling(&access, &alice, &delete).verdict, Verdict::Deny);
    let stranger = Caller::remote("someone", vec!["admins".to_owned(), "Admin".to_owned()]);
    assert_eq!(ruling(&access, &stranger, &delete).verdict, Verdict::Deny);
}

#[test]
fn effect_and_access_and_strictness_give_what_the_table_says() {
    use Effect::{Read, Unknown, Write};
    use Verdict::{Allow, Deny};
    // Columns: access, effect, usual, strict.
    let table = [
        ("read", Read, Allow, Allow),
        ("read", Write, Deny, Deny),
        ("read", Unknown, Deny, Deny),
        ("write", Read, Deny, Deny),
        ("write", Write, Allow, Allow),
        ("write", Unknown, Allow, Deny),
        ("*", Read, Allow, Allow),
        ("*", Write, Allow, Allow),
        ("*", Unknown, Allow, Deny),
    ];
    for (access, effect, lax, hard) in table {
        for (strictness, expected) in [(Usual, lax), (Strict, hard)] {
            let table = AccessTable { strictness, ..of_dev(&[&format!("{access} db")]) };
            let verdict = ruling(&ready(table), &dev(), &tool("db__x", effect)).verdict;
            assert_eq!(verdict, expected, "{access} {effect:?} {strictness:?}");
        }
    }
}

#[test]
fn a_deny_takes_away_the_access_that_it_names_and_under_strict_rules_all_that_is_unclear() {
    use Effect::{Read, Unknown, Write};
    use Verdict::{Allow, Deny};
    let table = [
        ("read", Read, Deny, Deny),
        ("read", Write, Allow, Allow),
        ("read", Unknown, Allow, Deny),
        ("write", Read, Allow, Allow),
        ("write", Write, Deny, Deny),
        ("write", Unknown, Deny, Deny),
        ("*", Read, Deny, Deny),
        ("*", Write, Deny, Deny),
        ("*", Unknown, Deny, Deny),
    ];
    for (access, effect, lax, hard) in table {
        for (strictness, expected) in [(Usual, lax), (Strict, hard)] {
            let deny = format!("deny {access} db");
            let table = AccessTable { strictness, ..of_dev(&["* db", &deny]) };
            let said = says(&ready(table), &dev(), &tool("db__x", effect));
            assert_eq!(said.0, expected, "{deny} {effect:?} {strictness:?}");
            if strictness == Strict && effect == Unknown {
                assert_eq!(said.1, "access.roles.dev[1]");
            }
        }
    }
}

#[test]
fn strict_rules_let_nothing_unclear_through_by_default() {
    for default in [Says::Allow, Says::Deny] {
        let lists =
            [AccessTable::default(), of_dev(&["* db"]), legacy(&[(&[], &[], "*", Says::Allow)])];
        for table in lists {
            let table = AccessTable { default, strictness: Strict, ..table };
            let rule = "access.strict: the effect of this tool is unknown";
            check(table, &tool("db__x", Effect::Unknown), Verdict::Deny, rule);
        }
    }
    let open = AccessTable { strictness: Strict, ..AccessTable::default() };
    check(open.clone(), &tool("db__x", Effect::Write), Verdict::Allow, "access.default");
    check(open, &tool("db__x", Effect::Read), Verdict::Allow, "access.default");
}

#[test]
fn resources_and_prompts_need_read_and_a_grant_that_speaks_of_them() {
    let table = [
        ("read db", true, true),
        ("* db", true, true),
        ("write db", false, false),
        ("read sentry", false, false),
        ("read db tools=get_*", false, false),
        ("* db tools=*", false, false),
        ("read db tools=get_* resources=*", true, false),
        ("read db tools=get_* prompts=*", false, true),
        ("read db resources=file:///a/*", true, true),
        ("read db resources=file:///b/*", false, true),
        ("read db prompts=GREET", true, false),
        ("read db prompts=db__gr*", true, true),
    ];
    for (text, resource, prompt) in table {
        let access = ready(of_dev(&[text]));
        let id = "db__file:///a/x?y=[1]";
        let (read, kind) = (Effect::Read, Kind::Resource);
        let verdict = ruling(&access, &dev(), &Item { kind, id, effect: read }).verdict;
        assert_eq!(verdict == Verdict::Allow, resource, "{text}");
        let (kind, id) = (Kind::Prompt, "db__greet");
        let verdict = ruling(&access, &dev(), &Item { kind, id, effect: read }).verdict;
        assert_eq!(verdict == Verdict::Allow, prompt, "{text}");
    }
}

#[test]
fn grants_match_whole_names_and_the_case_counts() {
    for (text, expected) in [
        ("read db", true),
        ("read d*", true),
        ("read *", true),
        ("read sentry,db", true),
        ("read DB", false),
        ("read d", false),
        ("read db tools=get_x", true),
        ("read db tools=get_*,other", true),
        ("read db tools=db__get_x", true),
        ("read db tools=mcp__db__get_*", true),
        ("read db tools=db:get_x", true),
        ("read db tools=sentry__get_x", false),
        ("read db tools=*db*", false),
        ("read db tools=get", false),
        ("read db tools=Get_*", false),
        ("read db tools=*_y", false),
    ] {
        let verdict = ruling(&ready(of_dev(&[text])), &dev(), &tool("db__get_x", Effect::Read));
        assert_eq!(verdict.verdict == Verdict::Allow, expected, "{text}");
    }
}

/// Columns: subjects, roles, tools, verdict.
pub(super) type Line<'a> = (&'a [&'a str], &'a [&'a str], &'a str, Says);

pub(super) fn legacy(lines: &[Line<'_>]) -> AccessTable {
    let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let rule = |(subjects, roles, tools, says): &Line<'_>| AccessRule {
        subjects: own(subjects),
        roles: own(roles),
        tools: tools.split(',').map(Glob::stars).collect(),
        says: *says,
    };
    AccessTable { rules: lines.iter().map(rule).collect(), ..AccessTable::default() }
}

/// Row C38 of the seed examples.
#[test]
fn c38_an_older_rule_speaks_where_subject_and_role_fit_and_the_first_decides() {
    let access = ready(legacy(&[(&["bob"], &["viewer"], "sentry__*", Says::Deny)]));
    let list = tool("sentry__list_issues", Effect::Read);
    for (subject, roles, verdict, rule) in [
        ("bob", &["viewer"][..], Verdict::Deny, "access.rules[0]"),
        ("bob", &["dev", "viewer"], Verdict::Deny, "access.rules[0]"),
        ("bob", &["dev"], Verdict::Allow, "access.default"),
        ("bob", &[], Verdict::Allow, "access.default"),
        ("ann", &["viewer"], Verdict::Allow, "access.default"),
        ("Bob", &["viewer"], Verdict::Allow, "access.default"),
    ] {
        let caller = Caller::remote(subject, roles.iter().map(ToString::to_string).collect());
        let expected = (verdict, rule.to_owned());
        assert_eq!(says(&access, &caller, &list), expected, "{subject} {roles:?}");
    }
    let bob = Caller::remote("bob", vec!["viewer".to_owned()]);
    let other = tool("grafana__query", Effect::Read);
    assert_eq!(ruling(&access, &bob, &other).verdict, Verdict::Allow);

    let (allow, deny) = (Says::Allow, Says::Deny);
    for (lines, expected) in [
        ([("sentry__list_*", allow), ("sentry__*", deny)], Verdict::Allow),
        ([("sentry__*", deny), ("sentry__list_*", allow)], Verdict::Deny),
        ([("list_issues", deny), ("*", allow)], Verdict::Deny),
    ] {
        let all: &[&str] = &["*"];
        let lines = lines.map(|(tools, says)| (all, all, tools, says));
        let access = ready(legacy(&lines));
        assert_eq!(ruling(&access, &bob, &list).verdict, expected, "{lines:?}");
    }
}

#[test]
fn c38_older_rules_speak_of_tools_and_the_rest_follows_the_default() {
    for (default, expected) in [(Says::Allow, Verdict::Allow), (Says::Deny, Verdict::Deny)] {
        let mut table = legacy(&[(&[], &[], "*", Says::Deny)]);
        table.default = default;
        for kind in [Kind::Resource, Kind::Prompt] {
            let item = Item { kind, id: "db__x", effect: Effect::Read };
            check(table.clone(), &item, expected, "access.default");
        }
        check(table, &tool("db__x", Effect::Read), Verdict::Deny, "access.rules[0]");
    }
}

#[test]
fn the_operator_and_the_child_of_a_client_are_not_bound() {
    for caller in
        [Caller::operator(Front::Cli), Caller::operator(Front::Terminal), Caller::anonymous()]
    {
        assert_eq!(caller.binding, capstan_model::Binding::Free);
    }
    assert_eq!(dev().binding, capstan_model::Binding::Access);
}

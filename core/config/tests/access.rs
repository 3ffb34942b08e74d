//! Access rules and ordered rules of native files, and rules that can never count.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use capstan_config::NativeFiles;
use capstan_config::{Loaded, Scope, Severity, SourceFile, Surroundings, dead_rules, load};
use capstan_model::Verdict;
use capstan_policy::RuleEffect;
use capstan_policy::access::{Says, Strictness};

fn load_files(files: &[SourceFile]) -> Loaded {
    load(files, &Surroundings { variable: &|_| None, project_dir: "/project" }, &NativeFiles)
}

fn load_text(text: &str) -> Loaded {
    load_files(&[SourceFile::new("f.toml", Scope::User, text)])
}

#[test]
fn the_table_is_read_and_each_part_of_it_is_shown() {
    let loaded = load_text(
        r#"
[access]
default = "deny"
strict = true
[access.roles]
dev = [{ server = "files", access = "read", tools = ["get_*"], resources = ["*"] }]
[access.subjects.anonymous]
roles = ["dev"]
extra = [{ server = ["a", "b"], access = "*", deny = true }]
"#,
    );
    assert_eq!(loaded.problems, []);
    let [access] = loaded.config.access.as_slice() else { panic!("{loaded:?}") };
    let table = &access.table;
    assert_eq!((table.default, table.strictness), (Says::Deny, Strictness::Strict));
    assert_eq!((table.roles.len(), table.subjects.len(), access.place.line), (1, 1, 2));
    let shown = capstan_config::show(&loaded);
    let shown: Vec<&str> =
        shown.iter().filter(|it| it.key.starts_with("access")).map(|it| it.key.as_str()).collect();
    assert_eq!(
        shown,
        ["access.default", "access.strict", "access.roles.dev", "access.subjects.anonymous"]
    );
}

#[test]
fn what_could_mean_something_else_is_refused() {
    for text in [
        "[access]\ndefault = \"ask\"",
        "[access]\nstrict = 1",
        "[access]\nrole = {}",
        "[access]\nroles = { a = [] }\nrules = []",
        "[access]\nsubjects = { a = {} }\nrules = []",
        "[access]\nsubjects = { a = { roles = [\"nobody\"] } }",
        "[access]\nroles = { a = [{ server = \"*\", access = \"read\", tools = [] }] }",
        "[access]\nroles = { a = [{ server = \"*\", access = \"READ\" }] }",
        "[access]\nroles = { a = [{ servers = \"*\", access = \"read\" }] }",
        "[access]\nrules = [{ tools = [\"*\"], effect = \"deny\" }]",
        "access = \"deny\"",
        "[permissions]\nallow = [{ pattern = \"x\", effect = \"reads\" }]",
        "[permissions]\nallow = [{ pattern = \"x\", effect = true }]",
    ] {
        assert!(load_text(text).fatal().count() > 0, "{text} was accepted");
    }
}

#[test]
fn dec12_a_project_has_no_say_in_access_and_the_gateway_does_not_start_with_it() {
    let text = "[access]\ndefault = \"allow\"";
    let loaded = load_files(&[SourceFile::new("p.toml", Scope::Project, text)]);
    assert!(loaded.config.access.is_empty());
    assert_eq!((loaded.fatal().count(), loaded.gateway.len()), (0, 1));
    assert_eq!(loaded.problems[0].severity, Severity::Warning);
    for scope in [Scope::Managed, Scope::Flag, Scope::User] {
        let loaded = load_files(&[SourceFile::new("f.toml", scope, text)]);
        assert_eq!((loaded.config.access.len(), loaded.gateway.len()), (1, 0), "{scope:?}");
    }
}

#[test]
fn dec12_the_ordered_rules_of_a_project_come_last_and_allow_only_for_its_own_servers() {
    let rules = |action: &str| {
        format!(
            "[tools.authorization]\nenabled = true\nrules = [{{ action = \"{action}\", tools = [\"x\"] }}]"
        )
    };
    let project = format!("{}\n[servers.mine]\ncommand = \"run\"", rules("allow"));
    let loaded = load_files(&[
        SourceFile::new("p.toml", Scope::Project, project),
        SourceFile::new("u.toml", Scope::User, rules("deny")),
    ]);
    let said: Vec<(Verdict, bool)> = loaded
        .config
        .tools
        .authorization
        .iter()
        .map(|it| (it.verdict, it.rule.reach.covers("u.toml")))
        .collect();
    assert_eq!(said, [(Verdict::Deny, true), (Verdict::Allow, false)]);
}

#[test]
fn a_rule_may_speak_of_reads_or_of_writes() {
    let loaded = load_text(
        "[permissions]\nallow = [{ pattern = \"files__*\", effect = \"read\" }]\n\
         ask = [{ pattern = \"*\", effect = \"write\" }, \"y\"]",
    );
    assert_eq!(loaded.problems, []);
    let rules = &loaded.config.permissions.rules;
    let effects = [&rules.allow[0], &rules.ask[0], &rules.ask[1]].map(|rule| rule.effect);
    assert_eq!(effects, [Some(RuleEffect::Read), Some(RuleEffect::Write), None]);
}

#[test]
fn c41_who_says_that_a_server_is_untrusted_is_reminded_of_listing_its_tools() {
    let warnings = |more: &str| {
        let loaded = load_text(&format!("[servers.x]\nurl = \"https://h\"\n{more}"));
        loaded.problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
    };
    let said = "`servers.x` is untrusted and offers all of its tools".to_owned();
    assert_eq!(warnings("trust = \"untrusted\""), [said]);
    for quiet in [
        "",
        "trust = \"untrusted\"\nexpose = [\"a\"]",
        "trust = \"trusted\"",
        "trust = \"sandboxed\"\nexpose = [\"a\"]",
    ] {
        assert_eq!(warnings(quiet), Vec::<String>::new(), "{quiet}");
    }
}

const SERVERS: &str =
    "[servers.linear]\nurl = \"https://h\"\n[servers.GitHub]\nurl = \"https://h\"\n";

/// The warnings about a configuration, with line and column.
fn idle(text: &str) -> Vec<String> {
    let loaded = load_text(&format!("{SERVERS}{text}"));
    assert_eq!(loaded.problems, [], "{text}");
    let problems = dead_rules(&loaded.config, "2026-01-01T00:00:00Z".parse().unwrap());
    let told = |problem: capstan_config::Problem| {
        assert_eq!(problem.severity, Severity::Warning);
        let place = problem.place.unwrap();
        let line = place.line - SERVERS.lines().count();
        format!("{line}:{} {}; {}", place.column, problem.message, problem.help.unwrap())
    };
    problems.into_iter().map(told).collect()
}

/// Rules, and what is said of them.
const IDLE: [(&str, &str); 18] = [
    (
        "[permissions]\ndeny = [\"linaer__delete_*\"]",
        "2:9 \"linaer__delete_*\" in `permissions.deny` names the server `linaer`, which does not exist; did you mean `linear`?",
    ),
    (
        "[permissions]\nallow = [\"mcp__other__x\"]",
        "2:10 \"mcp__other__x\" in `permissions.allow` names the server `other`, which does not exist; `capstan list` shows all servers",
    ),
    (
        "[permissions]\nallow = [\"linaer:x\"]",
        "2:10 \"linaer:x\" in `permissions.allow` names the server `linaer`, which does not exist; did you mean `linear`?",
    ),
    (
        "[permissions]\ndeny = [\"Elicit(linaer)\"]",
        "2:9 \"Elicit(linaer)\" in `permissions.deny` names the server `linaer`, which does not exist; did you mean `linear`?",
    ),
    (
        "[tools.policy]\nask = [\"gitub__push\"]",
        "2:8 \"gitub__push\" in `tools.policy.ask` names the server `gitub`, which does not exist; did you mean `github`?",
    ),
    (
        "[servers.linear.permissions]\nallow = [\"github__x\"]",
        "2:10 \"github__x\" in `servers.linear.permissions.allow` names the server `github`, \
             but applies only to `linear`; move it to the intended server",
    ),
    (
        "[permissions]\ndeny = [\"drop\"]\nallow = [\"drop\"]",
        "3:10 \"drop\" in `permissions.allow` is never reached: \"drop\" in \
             `permissions.deny` denies the same (f.toml:6); remove one of the two",
    ),
    (
        "[servers.linear.permissions]\ndeny = [\"*\"]\nask = [\"list_*\"]",
        "3:8 \"list_*\" in `servers.linear.permissions.ask` is never reached: \"*\" in \
             `servers.linear.permissions.deny` denies the same (f.toml:6); remove one of the two",
    ),
    (
        "[permissions]\nallow = [{ pattern = \"x\", expires_at = 2025-12-31T00:00:00Z }]",
        "2:10 { pattern = \"x\", expires_at = 2025-12-31T00:00:00Z } in `permissions.allow` \
             expired at 2025-12-31T00:00:00Z and has no effect; remove it, or give it a \
             later `expires_at`",
    ),
    (
        "[permissions]\ndeny = [\"linear__run(rm *)\"]",
        "2:9 \"linear__run(rm *)\" in `permissions.deny` matches nothing: no tool has \
             brackets in its name; name the argument: `linear__run:KEY=rm *`",
    ),
    (
        "[access]\nroles = { dev = [{ server = \"lin\", access = \"read\" }] }",
        "1:2 `access.roles.dev[0]` names the server `lin`, which does not exist; did you mean \
             `linear`?",
    ),
    (
        "[access]\nroles = { dev = [{ server = \"*\", access = \"*\", tools = [\"*__delete\"], deny = true }] }",
        "1:2 `*__delete` in `access.roles.dev[0].tools` matches nothing: grants name servers under `server`, not in patterns; write `delete`",
    ),
    (
        "[permissions]\ndeny = [\"linear__run:message\"]",
        "2:9 \"linear__run:message\" in `permissions.deny` matches nothing: no tool is called \
             `run:message`; name the value of the argument: `linear__run:message=*`",
    ),
    (
        "[permissions]\ndeny = [\"mcp__\"]",
        "2:9 \"mcp__\" in `permissions.deny` matches nothing: it does not name a tool of a server; to match all tools of the server, write `mcp__*`",
    ),
    (
        "[permissions]\ndeny = [\"linear__\"]",
        "2:9 \"linear__\" in `permissions.deny` matches nothing: it does not name a tool of a server; to match all tools of the server, write `linear__*`",
    ),
    (
        "[permissions]\ndeny = [\"a b\"]",
        "2:9 \"a b\" in `permissions.deny` matches nothing: names of tools rarely contain spaces; \
             write one rule for each tool",
    ),
    (
        "[permissions]\ndeny = [\"linear__*\"]\nallow = [\"linear__list_*\"]",
        "3:10 \"linear__list_*\" in `permissions.allow` is never reached: \"linear__*\" in \
             `permissions.deny` denies the same (f.toml:6); remove one of the two",
    ),
    (
        "[permissions]\ndeny = [\"*delete*\"]\n[servers.linear.permissions]\nallow = [\"delete_issue\"]",
        "4:10 \"delete_issue\" in `servers.linear.permissions.allow` is never reached: \
             \"*delete*\" in `permissions.deny` denies the same (f.toml:6); remove one of the two",
    ),
];

#[test]
fn rules_that_can_never_count_are_told_with_their_place() {
    for (text, expected) in IDLE {
        assert_eq!(idle(text), [expected], "{text}");
    }
}

#[test]
fn rules_that_may_count_are_left_alone() {
    for text in [
        "[permissions]\ndeny = [\"linear__x\", \"GitHub__y\", \"github:y\", \"linear.z\"]",
        "[permissions]\ndeny = [\"*__delete_*\", \"delete_*\", \"*\", \"lin*__x\", \"{linear,github}__x\"]",
        "[permissions]\ndeny = [\"admin.tools.list\", \"file:///etc/*\", \"ns:thing\"]",
        "[permissions]\nallow = [{ pattern = \"x\", expires_at = 2027-01-01T00:00:00Z }]",
        "[permissions]\ndeny = [{ pattern = \"x\", effect = \"write\" }]\nallow = [\"x\"]",
        "[permissions]\ndeny = [\"x:path=/etc/*\"]\nallow = [\"x\"]",
        "[permissions]\ndeny = [\"Elicit(linear)\", \"Elicit(*)\"]\nallow = [\"*\"]",
        "[servers.linear.permissions]\ndeny = [\"x\"]\n[servers.GitHub.permissions]\nallow = [\"x\"]",
        "[servers.linear.permissions]\nallow = [\"linear__x\", \"mcp__linear__y\"]",
        "[tools.policy]\ndeny = [\"x\"]\n[permissions]\nallow = [\"x\"]",
        "[permissions]\ndeny = [\"linear__delete_*\"]\nallow = [\"linear__*\", \"*_issue\", \"delete_x\"]",
        "[permissions]\ndeny = [\"linear__*:id=1\"]\nallow = [\"linear__list_*\"]",
        "[permissions]\ndeny = [\"linear__urn:isbn:1\", \"linear__x:1\", \"linear__file:///a b\"]",
        "[access]\nroles = { dev = [{ server = \"*\", access = \"*\", tools = [\"delete\", \"linear__x_*\", \"mcp__linear__y\"] }] }",
        "[access]\nroles = { dev = [{ server = [\"*\", \"GitHub\", \"l*\"], access = \"read\" }] }",
    ] {
        assert_eq!(idle(text), Vec::<String>::new(), "{text}");
    }
}

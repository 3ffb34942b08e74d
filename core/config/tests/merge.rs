//! Several files become one configuration, and none loosens what another forbids.

use capstan_config::NativeFiles;
use capstan_config::{AuditOnFull, Loaded, Reach, Scope, SourceFile, Surroundings, load};

fn file(scope: Scope, path: &str, text: &str) -> SourceFile {
    SourceFile::new(path, scope, text)
}

fn load_files(files: &[SourceFile]) -> Loaded {
    load(files, &Surroundings { variable: &|_| None, project_dir: "/project" }, &NativeFiles)
}

#[test]
fn the_nearer_scope_has_the_whole_entry() {
    let user = "[servers.a]\ncommand = \"user\"\nargs = [\"x\"]\n[servers.b]\ncommand = \"user\"";
    let files = [
        file(Scope::User, "user", user),
        file(Scope::Project, "project", "[servers.A]\ncommand = \"project\""),
        file(Scope::Flag, "flag", "[servers.c]\ncommand = \"flag1\""),
        file(Scope::Flag, "flag2", "[servers.c]\ncommand = \"flag2\""),
    ];
    let loaded = load_files(&files);
    let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["`a` (user:1) is not used: `A` (project:1) has the same name, `a` (user:1:1)"]
    );
    let commands: Vec<String> = loaded
        .config
        .servers
        .values()
        .map(|entry| {
            format!("{} {} {}", entry.name, entry.status.as_ref().unwrap().target, entry.origin)
        })
        .collect();
    assert_eq!(commands, ["c flag2 flag2:1", "a project project:1", "b user user:4"]);
}

/// Holes 13.
#[test]
fn two_servers_that_become_one_name_are_reported_with_both_places() {
    let (spaced, dashed) =
        ("[servers.\"My Server\"]\ncommand = \"a\"\n", "\n[servers.my-server]\ncommand = \"b\"\n");
    let long = "a-server-with-quite-a-long-names";
    let cases = [
        (
            vec![format!("{spaced}{dashed}")],
            "`my-server` is not used: `My Server` (f0:1) has the same name, `my-server` (f0:4:10)",
        ),
        (
            vec![dashed.to_owned(), spaced.to_owned()],
            "`my-server` (f0:2) is not used: `My Server` (f1:1) has the same name, `my-server` (f0:2:1)",
        ),
        (
            vec![format!("[servers.{long}1]\ncommand = 'a'\n[servers.{long}2]\ncommand = 'b'")],
            &format!(
                "`{long}2` is not used: `{long}1` (f0:1) has the same name, `{long}` (f0:3:10)"
            ),
        ),
    ];
    for (texts, expected) in cases {
        let file = |(at, text): (usize, &String)| file(Scope::User, &format!("f{at}"), text);
        let files: Vec<SourceFile> = texts.iter().enumerate().map(file).collect();
        let loaded = load_files(&files);
        let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(told, [expected]);
        let help = loaded.problems.first().unwrap().help.as_deref();
        assert_eq!(
            help,
            Some(
                "rename one of them; names that differ only in case, punctuation or after 32 \
                 characters are the same"
            )
        );
        assert_eq!(loaded.config.servers.len(), 1);
    }
}

#[test]
fn a_server_that_a_nearer_file_replaces_by_its_exact_name_is_no_collision() {
    for name in ["a", "\"My Server\""] {
        let text = format!("[servers.{name}]\ncommand = \"run\"");
        let files = [file(Scope::User, "user", &text), file(Scope::Flag, "flag", &text)];
        assert_eq!(load_files(&files).problems, []);
    }
}

#[test]
fn the_servers_of_a_file_that_is_not_approved_wait() {
    let mut project = file(Scope::Project, "p", "[servers.a]\ncommand = \"run\"");
    project.approved = false;
    let loaded = load_files(&[project]);
    let entry = loaded.config.servers.values().next().unwrap();
    assert!(entry.status.is_ok() && entry.usable().is_none());
}

#[test]
fn dec12_a_project_never_loosens() {
    let user = "
        [permissions]
        default = \"deny\"
        [tools]
        max_tool_calls_per_session = 10
        [mcp]
        allowed_commands = [\"npx\", \"uvx\"]
        elicitation_enabled = false
        elicitation_queue = 4
        [audit]
        path = \"mine\"
        [screen]
        max_answer = \"1MiB\"";
    let project = "
        [permissions]
        allow = [\"*\"]
        default = \"allow\"
        [tools]
        max_tool_calls_per_session = 99
        [mcp]
        allowed_commands = [\"npx\", \"bash\"]
        elicitation_enabled = true
        elicitation_queue = 99
        max_dynamic_servers = 99
        [audit]
        enabled = false
        path = \"theirs\"
        [screen]
        max_answer = \"1GiB\"";
    let loaded =
        load_files(&[file(Scope::User, "user", user), file(Scope::Project, "project", project)]);
    let config = loaded.config;
    assert_eq!(config.permissions.rules.allow[0].reach, Reach::ServersOf("project".to_owned()));
    assert_eq!(config.permissions.default_for("user").unwrap().as_str(), "deny");
    assert_eq!(config.permissions.default_for("project").unwrap().as_str(), "allow");
    assert_eq!(config.tools.max_tool_calls_per_session, Some(10));
    assert_eq!(config.allowed_commands("user").unwrap(), ["npx", "uvx"]);
    assert_eq!(config.allowed_commands("project").unwrap(), ["npx"]);
    assert!(!config.mcp.elicitation_enabled);
    assert_eq!((config.mcp.elicitation_queue, config.mcp.max_dynamic_servers), (4, 10));
    assert!(config.audit.enabled);
    assert_eq!(config.audit.path.as_deref(), Some("mine"));
    assert_eq!(config.screen.max_answer, 1 << 20);
    assert_eq!(loaded.problems.len(), 1, "one warning about the audit log");
}

#[test]
fn dec12_a_project_that_replaces_an_entry_keeps_what_the_user_forbids() {
    let user = "
        [servers.a]
        command = \"mine\"
        trust = \"sandboxed\"
        expose = [\"read\", \"list\"]
        hide = [\"secret\"]
        [servers.a.permissions]
        deny = [\"drop\"]
        ask = [\"move\"]
        allow = [\"read\"]";
    let project = "
        [servers.a]
        command = \"theirs\"
        trust = \"trusted\"
        expose = [\"read\", \"drop\"]
        [servers.a.permissions]
        allow = [\"*\"]";
    let loaded =
        load_files(&[file(Scope::User, "user", user), file(Scope::Project, "project", project)]);
    let server = loaded.config.servers.values().next().unwrap().status.as_ref().unwrap();
    let patterns = |rules: &[capstan_config::Rule]| -> Vec<String> {
        rules.iter().map(|rule| rule.pattern.as_str().to_owned()).collect()
    };
    assert_eq!(server.target, "theirs");
    assert_eq!(server.trust, capstan_model::Trust::Sandboxed);
    assert_eq!(server.expose.as_deref(), Some(&["read".to_owned()][..]));
    assert_eq!(server.hide, ["secret"]);
    assert_eq!(server.sandbox, Some(capstan_config::Sandbox::on()));
    assert_eq!(patterns(&server.permissions.deny), ["drop"]);
    assert_eq!(patterns(&server.permissions.ask), ["move"]);
    assert_eq!(patterns(&server.permissions.allow), ["*"]);
}

#[test]
fn a_project_cannot_loosen_a_sandbox_and_may_add_one() {
    let on = "sandbox = { read = [\"/a\"], net = [\"a.test\"] }";
    let wide = "sandbox = { read = [\"/\"], net = [\"*.test.example\"] }";
    for (user, project, read) in [
        (on, wide, Some("/a")),
        (on, "sandbox = false", Some("/a")),
        (on, "", Some("/a")),
        ("trust = \"trusted\"", on, Some("/a")),
        ("sandbox = false", on, Some("/a")),
        ("", "sandbox = false", None),
        ("", "", None),
    ] {
        let entry = |keys: &str| format!("[servers.a]\ncommand = \"run\"\n{keys}");
        let files = [
            file(Scope::User, "user", &entry(user)),
            file(Scope::Project, "project", &entry(project)),
        ];
        let loaded = load_files(&files);
        let server = loaded.config.servers.values().next().unwrap().status.as_ref().unwrap();
        let sandbox = server.confinement();
        assert_eq!(
            sandbox.map(|sandbox| sandbox.read.join(" ")).as_deref(),
            read,
            "{user} {project}"
        );
    }
}

#[test]
fn a_project_may_restrict() {
    let project = "[tools]\nmax_tool_calls_per_session = 5\n[mcp]\nelicitation_enabled = false\n[permissions]\ndeny = [\"x\"]";
    let files = [
        file(Scope::User, "u", "[tools]\nmax_tool_calls_per_session = 10"),
        file(Scope::Project, "p", project),
    ];
    let config = load_files(&files).config;
    assert_eq!(config.tools.max_tool_calls_per_session, Some(5));
    assert!(!config.mcp.elicitation_enabled);
    assert_eq!(config.permissions.rules.deny[0].reach, Reach::All);
}

#[test]
fn managed_denies_come_first() {
    let files = [
        file(Scope::User, "user", "[permissions]\ndeny = [\"u\"]"),
        file(Scope::Project, "project", "[permissions]\ndeny = [\"p\"]"),
        file(Scope::Managed, "managed", "[permissions]\ndeny = [\"m\"]\ndefault = \"deny\""),
    ];
    let config = load_files(&files).config;
    let denies = config.permissions.rules.deny.iter().map(|rule| rule.pattern.as_str());
    assert_eq!(denies.collect::<Vec<_>>(), ["m", "p", "u"]);
    assert_eq!(config.permissions.default_for("project").unwrap().as_str(), "deny");
}

#[test]
fn rates_of_all_files_add_up_also_those_of_a_project() {
    let rate = |limit: u32| format!("[[tools.rates]]\nlimit = {limit}\nevery = \"1m\"");
    let loaded = load_files(&[
        file(Scope::User, "user", &rate(10)),
        file(Scope::Project, "project", &rate(99)),
    ]);
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let limits: Vec<u32> =
        loaded.config.tools.rates.iter().map(|setting| setting.rate.limit).collect();
    assert_eq!(limits.len(), 2, "none makes way for another: {limits:?}");
}

#[test]
fn the_bounds_of_the_audit_log_are_read_and_must_make_sense() {
    let audit = |lines: &str| load_files(&[file(Scope::User, "u", &format!("[audit]\n{lines}"))]);
    let loaded = audit(
        "retention = \"30d\"\nmax_size = \"1MiB\"\nmax_total = \"4MiB\"\ndurable = true\non_full = \"refuse\"",
    );
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let kept = loaded.config.audit;
    assert_eq!((kept.max_size, kept.max_total, kept.durable), (1 << 20, 4 << 20, true));
    assert_eq!((kept.retention.as_secs(), kept.on_full), (30 * 24 * 3600, AuditOnFull::Refuse));
    for lines in [
        "retention = 90",
        "retention = \"0d\"",
        "max_size = \"1KiB\"",
        "max_size = \"2GiB\"",
        "max_total = \"1MiB\"",
        "durable = \"yes\"",
        "on_full = \"block\"",
        "keep = 8",
    ] {
        assert_eq!(audit(lines).fatal().count(), 1, "{lines}");
    }
}

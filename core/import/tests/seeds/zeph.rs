//! Zeph.

use std::time::Duration;

use capstan_config::{Search, Severity, Strategy};
use capstan_model::{Trust, Verdict};

use crate::{Ask, zeph};

#[test]
fn c40_two_servers_of_zeph_without_any_extra_key() {
    let loaded = zeph(
        r#"
[[mcp.servers]]
id = "filesystem"
command = "npx"
args = ["-y", "@anthropic/mcp-filesystem"]

[[mcp.servers]]
id = "remote-tools"
url = "http://localhost:8080/mcp"
"#,
    );
    assert_eq!(loaded.of(Severity::Error).len(), 0);
    assert_eq!(loaded.program("filesystem").args, ["-y", "@anthropic/mcp-filesystem"]);
    assert_eq!(loaded.remote("remote-tools").1.url, "http://localhost:8080/mcp");
    assert_eq!(loaded.of(Severity::Warning).len(), 2, "one for each that lists no tools");
}

#[test]
fn c41_trust_and_lists_of_zeph() {
    let loaded = zeph(
        r#"
# Operator-controlled server: all tools allowed, SSRF checks skipped
[[mcp.servers]]
id = "internal-tools"
command = "npx"
args = ["-y", "@acme/internal-mcp"]
trust_level = "trusted"
# Community server: only the listed tools are exposed
[[mcp.servers]]
id = "filesystem"
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/workspace"]
trust_level = "untrusted"
tool_allowlist = ["read_file", "list_directory", "search_files"]
# Sandboxed server: fail-closed
[[mcp.servers]]
id = "experimental"
url = "http://localhost:9000/mcp"
trust_level = "sandboxed"
tool_allowlist = ["safe_tool_a", "safe_tool_b"]
[[mcp.servers]]
id = "closed"
url = "http://localhost:9000/mcp"
trust_level = "sandboxed"
tool_allowlist = []
"#,
    );
    assert_eq!(loaded.problems, []);
    let of = |name| {
        let server = loaded.entry(name).status.as_ref().unwrap();
        (server.trust, server.expose.as_ref().map(Vec::len))
    };
    assert_eq!(of("internal-tools"), (Trust::Trusted, None));
    assert_eq!(of("filesystem"), (Trust::Untrusted, Some(3)));
    assert_eq!(of("experimental"), (Trust::Sandboxed, Some(2)));
    assert_eq!(of("closed"), (Trust::Sandboxed, Some(0)));
}

#[test]
fn c42_the_commands_of_zeph_bind() {
    let loaded = zeph(
        "[mcp]\nallowed_commands = [\"npx\", \"uvx\", \"node\", \"python\", \"python3\"]\nmax_dynamic_servers = 10",
    );
    assert_eq!(loaded.problems, []);
    let allowed = loaded.config.allowed_commands("/home/me/.config/zeph/config.toml").unwrap();
    assert_eq!(allowed, ["npx", "uvx", "node", "python", "python3"]);
    for command in ["bash", "/usr/bin/npx"] {
        assert!(!capstan_safety::command::is_allowed(command, Some(&allowed)), "{command}");
    }
}

#[test]
fn the_cap_of_descriptions_is_read_in_bytes() {
    let loaded = zeph("[mcp]\nmax_description_bytes = 4096");
    assert_eq!(loaded.problems, []);
    assert_eq!(loaded.config.screen.max_description, 4096);
    let loaded = zeph("[mcp]\nmax_description_bytes = 512");
    assert_eq!((loaded.problems.len(), loaded.config.screen.max_description), (0, 512));
    assert_eq!(zeph("[mcp]\nmax_description_bytes = \"much\"").of(Severity::Error).len(), 1);
}

#[test]
fn c45_tool_discovery_is_read_with_the_defaults_of_zeph() {
    let loaded = zeph(
        r#"
[mcp.tool_discovery]
strategy = "Embedding" # "Embedding" (default), "Llm", or "None"
top_k = 10 # Maximum tools to inject per turn (default: 10)
min_similarity = 0.30
always_include = ["read_file"]
min_tools_to_filter = 5
"#,
    );
    assert_eq!(loaded.problems, []);
    let search = &loaded.config.search;
    assert_eq!(search.always_include, ["read_file"]);
    let expected = Search { always_include: search.always_include.clone(), ..Search::default() };
    assert_eq!(*search, expected, "the other values are the defaults");
    assert_eq!((search.top_k, search.min_similarity, search.min_tools_to_filter), (10, 0.3, 5));
    let strategy = |word: &str| zeph(&format!("[mcp.tool_discovery]\nstrategy = \"{word}\""));
    assert_eq!(strategy("None").config.search.strategy, Strategy::None);
    assert_eq!(strategy("Llm").config.search.strategy, Strategy::Llm);
    assert_eq!(zeph("[mcp.tool_discovery]\nstrategy = \"Psychic\"").of(Severity::Error).len(), 1);
}

#[test]
fn c46_servers_of_zeph_ask_only_when_the_file_says_so() {
    let asks = |mcp: &str, server: &str| {
        let text =
            format!("{mcp}\n[[mcp.servers]]\nid = \"my-server\"\ncommand = \"npx\"\n{server}");
        let loaded = zeph(&text);
        assert_eq!(loaded.of(Severity::Error).len(), 0, "{text}");
        loaded.entry("my-server").status.as_ref().unwrap().elicitation
    };
    let on = "elicitation_enabled = true";
    let global = "[mcp]\nelicitation_enabled = true\nelicitation_timeout = 120\nelicitation_queue_capacity = 16\nelicitation_warn_sensitive_fields = true";
    assert_eq!(asks("", ""), Some(false));
    assert_eq!(asks(global, ""), Some(true));
    assert_eq!(asks("", on), Some(true));
    assert_eq!(asks(global, "elicitation_enabled = false"), Some(false));
    let loaded = zeph(global);
    assert_eq!(loaded.config.mcp.elicitation_timeout, Duration::from_mins(2));
    assert_eq!(loaded.config.mcp.elicitation_queue, 16);
    assert!(loaded.config.mcp.elicitation_enabled);
    assert!(
        !zeph("[mcp]\nelicitation_enabled = false\nservers = []").config.mcp.elicitation_enabled
    );
}

#[test]
fn c49_the_quota_of_zeph_binds() {
    let loaded =
        zeph("[mcp]\nservers = []\n[tools]\nmax_tool_calls_per_session = 100 # default: unlimited");
    assert_eq!(loaded.config.tools.max_tool_calls_per_session, Some(100));
}

#[test]
fn c50_the_ordered_rules_of_zeph_count_once_they_are_switched_on() {
    let rules = r#"
[[tools.authorization.rules]]
action = "allow"
tools = ["read_file", "list_directory"]
comment = "Read-only filesystem access"
[[tools.authorization.rules]]
action = "deny"
tools = ["shell"]
comment = "Shell execution not permitted in this deployment"
"#;
    let with = |enabled: &str| {
        let loaded =
            zeph(&format!("[mcp]\nservers = []\n[tools.authorization]\n{enabled}\n{rules}"));
        // Rules that are neither enabled nor disabled are reported.
        let warnings = usize::from(enabled.is_empty());
        assert_eq!((loaded.problems.len(), loaded.fatal().count()), (warnings, 0), "{enabled}");
        loaded.config.tools.authorization
    };
    assert_eq!((with("").len(), with("enabled = false").len()), (0, 0));
    let ordered = with("enabled = true");
    let said: Vec<_> = ordered
        .iter()
        .map(|it| (it.verdict, it.number, it.rule.pattern.as_str(), it.rule.origin.line))
        .collect();
    let expected = [
        (Verdict::Allow, 0, "read_file", 8),
        (Verdict::Allow, 0, "list_directory", 8),
        (Verdict::Deny, 1, "shell", 12),
    ];
    assert_eq!(said, expected);
    let comment = "Shell execution not permitted in this deployment";
    assert_eq!(ordered[2].rule.reason.as_deref(), Some(comment));
    for wrong in [
        "rules = [{ action = \"deny\" }]",
        "rules = [{ tools = [\"x\"] }]",
        "rules = [{ action = \"block\", tools = [\"x\"] }]",
        "rules = [{ action = \"deny\", tools = [\"[\"] }]",
        "rules = [{ action = \"deny\", tool = \"x\", tools = [\"x\"] }]",
        "rules = [\"x\"]",
        "rules = {}",
        "enabled = \"yes\"",
        "enable = true",
    ] {
        let text = format!("[mcp]\nservers = []\n[tools.authorization]\n{wrong}");
        assert!(zeph(&text).fatal().count() > 0, "{wrong} was accepted");
    }
}

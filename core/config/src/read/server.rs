//! The keys that every server has.

use std::ops::Range;
use std::time::Duration;

use capstan_model::{Naming, ServerName, Trust};
use capstan_policy::exposure::Exposure;
use capstan_safety::address::{BadNetwork, Network};

use crate::fields::{Fields, Words};
use crate::merge::environment::EnvSettings;
use crate::refuse::{self, In};
use crate::settings::rule::{Rules, Subject};
use crate::settings::server::{
    DEFAULT_STARTUP_TIMEOUT, DEFAULT_TIMEOUT, EffectLists, Idle, IdlePolicy, Kind, OAuth, Protocol,
    Server, Start, ToolList,
};
use crate::show;
use crate::source::Dialect;
use crate::source::problem::Problem;
use crate::source::tree::Table;
use crate::units;

use super::{kind, overrides};

/// Names that are also words of the command line; such a server is harder to talk about.
const COMMAND_WORDS: &[&str] = &[
    "acl",
    "add",
    "approvals",
    "audit",
    "auth",
    "call",
    "chat",
    "completions",
    "config",
    "disable",
    "doctor",
    "enable",
    "get",
    "help",
    "import",
    "install",
    "list",
    "login",
    "logout",
    "mcp",
    "pins",
    "policy",
    "prompt",
    "prompts",
    "read",
    "registry",
    "remove",
    "resources",
    "scan",
    "search",
    "secret",
    "serve",
    "tools",
    "trust",
    "uninstall",
    "user",
    "version",
    "why",
];

const TRUSTS: Words<Trust> = &[
    ("trusted", Trust::Trusted),
    ("untrusted", Trust::Untrusted),
    ("sandboxed", Trust::Sandboxed),
];

const STARTS: Words<Start> = &[
    ("auto", Start::Auto),
    ("eager", Start::Eager),
    ("on-list", Start::OnList),
    ("lazy", Start::Lazy),
];

const PROTOCOLS: Words<Protocol> =
    &[("auto", Protocol::Auto), ("legacy", Protocol::Legacy), ("modern", Protocol::Modern)];

const NAMINGS: Words<Naming> =
    &[("prefixed", Naming::Prefixed), ("mcp", Naming::Mcp), ("bare", Naming::Bare)];

/// Time limits of servers that set none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Limit,
    pub(crate) startup_timeout: Limit,
}

/// A time limit, and who says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) time: Duration,
    pub(crate) origin: &'static str,
}

// === impl Limits ===

impl Limits {
    pub(crate) fn from_environment(environment: &EnvSettings) -> Self {
        Self {
            timeout: Limit::new(environment.tool_timeout, DEFAULT_TIMEOUT),
            startup_timeout: Limit::new(environment.startup_timeout, DEFAULT_STARTUP_TIMEOUT),
        }
    }
}

// === impl Limit ===

impl Limit {
    fn new(from_environment: Option<Duration>, default: Duration) -> Self {
        match from_environment {
            Some(time) => Self { time, origin: show::ENVIRONMENT },
            None => Self { time: default, origin: show::DEFAULT },
        }
    }
}

/// Reads a server; `None` when it cannot be reached. Whether it may be used is for the report to
/// say: an entry with an error in it is never half used.
pub(crate) fn read(mut fields: Fields<'_, '_>, limits: Limits) -> Option<Server> {
    refuse::check(&mut fields, In::Server);
    let reached = kind::read(&mut fields);
    let enabled = enabled(&mut fields);
    let description = fields.string("description");
    let required = fields.flag("required").unwrap_or(false);
    let always_load = fields.flag("always_load").unwrap_or(false);
    let timeout = fields.limit("timeout").unwrap_or(limits.timeout.time);
    let startup_timeout = fields.limit("startup_timeout").unwrap_or(limits.startup_timeout.time);
    let start = fields.word("start", STARTS).unwrap_or_default();
    let idle = idle(&mut fields);
    let trust = fields.word("trust", TRUSTS).unwrap_or_default();
    let networks = networks(&mut fields);
    let expose = globs(&mut fields, "expose");
    let hide = globs(&mut fields, "hide").unwrap_or_default();
    let tool_list = ToolList {
        expected: fields.strings("expected_tools"),
        locked: fields.flag("lock_tool_list").unwrap_or(false),
    };
    let permissions = permissions(&mut fields);
    let effect = effect(&mut fields);
    let elicitation = fields.flag("elicitation");
    let roots = fields.strings("roots").unwrap_or_default();
    let protocol = fields.word("protocol", PROTOCOLS).unwrap_or_default();
    let naming = fields.word("naming", NAMINGS).unwrap_or_default();
    let tools = overrides::read(&mut fields);
    let oauth = oauth(&fields);
    if trust == Trust::Untrusted {
        warn_untrusted(&mut fields);
    }
    if trust == Trust::Sandboxed {
        warn_sandboxed(&mut fields, reached.as_ref().map(|reached| &reached.kind));
    }
    fields.finish();
    let kind::Reached { kind, target } = reached?;
    Some(Server {
        kind,
        target,
        enabled,
        description,
        required,
        always_load,
        timeout,
        startup_timeout,
        start,
        idle,
        trust,
        networks,
        expose,
        hide,
        tool_list,
        permissions,
        effect,
        elicitation,
        roots,
        protocol,
        oauth,
        naming,
        tools,
    })
}

/// Whether an entry is switched on, looked up without judging the rest of it.
pub(crate) fn is_enabled(table: &Table) -> bool {
    let flag = |key| table.get(key).and_then(|entry| entry.node.as_bool());
    flag("enabled").or(flag("disabled").map(|disabled| !disabled)).unwrap_or(true)
}

/// The slug of a name. A name without a letter or digit of ours gets one made from its bytes, so
/// that any name can be used.
pub fn slug(display: &str) -> Option<ServerName> {
    if display.trim().is_empty() {
        return None;
    }
    let plain = display.parse().ok();
    let made = || format!("server-{:08x}", fnv(display)).parse().ok();
    plain.or_else(|| ServerName::from_display(display)).or_else(made)
}

/// Reports names that are hard to talk about.
pub(crate) fn check_name(
    fields: &mut Fields<'_, '_>,
    display: &str,
    name: &ServerName,
    span: &Range<usize>,
) {
    let key = fields.path().to_owned();
    if COMMAND_WORDS.contains(&name.as_str()) {
        let problem = Problem::warning(format!("the server's name `{name}` is also a command"))
            .help("another name is easier to talk about");
        fields.report().add(problem, key.clone(), span);
    }
    if ServerName::from_display(display).is_none() {
        let problem = Problem::warning(format!("`{display}` is called `{name}` in rules and ids"))
            .help("use a name with letters a-z or digits to choose yourself");
        fields.report().add(problem, key, span);
    }
}

/// Whether logins are attempted. What else the key may say is refused elsewhere.
fn oauth(fields: &Fields<'_, '_>) -> OAuth {
    match fields.peek("oauth").and_then(|entry| entry.node.as_text()) {
        Some("off") => OAuth::Off,
        Some(_) | None => OAuth::Auto,
    }
}

fn enabled(fields: &mut Fields<'_, '_>) -> bool {
    let (enabled, disabled) = (fields.flag("enabled"), fields.flag("disabled"));
    if enabled.is_some() && disabled.is_some() {
        let message = format!("`{}` has both `enabled` and `disabled`", fields.path());
        fields.problem("disabled", Problem::error(message).help("keep `enabled`"));
    }
    enabled.or(disabled.map(|disabled| !disabled)).unwrap_or(true)
}

fn idle(fields: &mut Fields<'_, '_>) -> Idle {
    let default = Idle::default();
    let policy = match fields.peek("idle_timeout").and_then(|entry| entry.node.as_text()) {
        Some("adaptive") => Some(IdlePolicy::Adaptive),
        Some("never") => Some(IdlePolicy::Never),
        Some(_) | None => None,
    };
    let policy = match policy {
        Some(policy) => {
            fields.entry("idle_timeout");
            policy
        }
        None => fields.duration("idle_timeout").map(IdlePolicy::After).unwrap_or_default(),
    };
    let min = fields.duration("min_idle_timeout").unwrap_or(default.min);
    let max = fields.duration("max_idle_timeout").unwrap_or(default.max);
    if min > max {
        let (low, high) = (units::show_duration(min), units::show_duration(max));
        let message = format!(
            "`{}` is {low}, which is more than `max_idle_timeout` ({high})",
            fields.key("min_idle_timeout")
        );
        let key =
            if fields.has("min_idle_timeout") { "min_idle_timeout" } else { "max_idle_timeout" };
        fields.problem(key, Problem::error(message).help("make the minimum the smaller one"));
    }
    Idle { policy, min, max }
}

/// Patterns over bare tool names.
fn globs(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<String>> {
    let texts = fields.texts(key)?;
    let path = fields.key(key);
    let mut globs = Vec::new();
    for text in texts {
        let glob = text.value.value.clone();
        if let Err(error) = Exposure::new(None, std::slice::from_ref(&glob)) {
            let problem = Problem::error(text.value.complaint(&path, &error))
                .help("write a name or a pattern such as \"list_*\"");
            fields.report().add(problem, path.clone(), &text.span);
        }
        globs.push(glob);
    }
    Some(globs)
}

/// Networks in CIDR notation.
fn networks(fields: &mut Fields<'_, '_>) -> Vec<Network> {
    let texts = fields.texts("networks").unwrap_or_default();
    let path = fields.key("networks");
    let mut networks = Vec::new();
    for text in texts {
        match text.value.value.parse::<Network>() {
            Ok(network) => networks.push(network),
            Err(error) => {
                let help = match error {
                    BadNetwork::Shape => "write \"10.0.0.0/8\", or one address".to_owned(),
                    BadNetwork::HostBits(network) => {
                        format!("write \"{network}\", or the address without a prefix")
                    }
                };
                let message = format!("in `{path}`, `{}` {error}", text.value.shown());
                fields.report().add(Problem::error(message).help(help), path.clone(), &text.span);
            }
        }
    }
    networks
}

fn permissions(fields: &mut Fields<'_, '_>) -> Rules {
    let Some(mut nested) = fields.nested("permissions") else { return Rules::default() };
    let rules = Rules::read(&mut nested, Subject::Tools);
    nested.finish();
    rules
}

fn effect(fields: &mut Fields<'_, '_>) -> EffectLists {
    let Some(mut nested) = fields.nested("effect") else { return EffectLists::default() };
    let read = globs(&mut nested, "read").unwrap_or_default();
    let write = globs(&mut nested, "write").unwrap_or_default();
    if let Some(both) = read.iter().find(|pattern| write.contains(pattern)) {
        let message = format!("`{}` has `{both}` under both `read` and `write`", nested.path());
        nested.problem("write", Problem::error(message).help("keep it in one of the lists"));
    }
    nested.finish();
    EffectLists { read, write }
}

/// Reminds whoever says that a server is not to be believed of listing what it is used for. Where
/// nothing is said, nothing is reminded of: it is how every server begins.
fn warn_untrusted(fields: &mut Fields<'_, '_>) {
    let ours = fields.report().file.dialect == Some(Dialect::Native);
    let said = fields.peek("trust").and_then(|entry| entry.node.as_text());
    if ours && said == Some("untrusted") && !fields.has("expose") {
        let message = format!("`{}` is untrusted and offers all of its tools", fields.path());
        let help = "list those that you use: `expose = [\"…\"]`";
        fields.problem("trust", Problem::warning(message).help(help));
    }
}

/// Says what the word does not do, so that nobody relies on it.
fn warn_sandboxed(fields: &mut Fields<'_, '_>, kind: Option<&Kind>) {
    if !fields.has("expose") {
        let message = format!("`{}` is sandboxed and exposes no tools", fields.path());
        let help = "list the tools it may offer: `expose = [\"…\"]`";
        fields.problem("trust", Problem::warning(message).help(help));
    }
    if matches!(kind, Some(Kind::Stdio(_) | Kind::Cli(_))) {
        let message = format!(
            "`{}` limits the server's tools and questions; this version does not confine its process",
            fields.key("trust")
        );
        let help = "start it through a sandbox of your own if it must not read your files";
        fields.problem("trust", Problem::warning(message).help(help));
    }
}

/// A small hash that will be the same tomorrow (FNV-1a).
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_has_a_slug_and_only_an_empty_one_has_none() {
        let slug = |display| slug(display).map(|name| name.as_str().to_owned());
        assert_eq!(slug("linear"), Some("linear".to_owned()));
        assert_eq!(slug("My Server"), Some("my-server".to_owned()));
        assert_eq!(slug("数据库").map(|name| name.len()), Some("server-".len() + 8));
        assert_ne!(slug("数据库"), slug("文件"));
        assert_eq!(slug(""), None);
        assert_eq!(slug("  "), None);
    }
}

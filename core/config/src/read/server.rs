//! Reads the keys that every server has.

use std::ops::Range;
use std::time::Duration;

use capstan_model::ServerName;

use super::kind;
use crate::fields::Fields;
use crate::merge::environment::EnvSettings;
use crate::settings::server::{
    DEFAULT_STARTUP_TIMEOUT, DEFAULT_TIMEOUT, Idle, Kind, References, Server, ToolList,
};
use crate::settings::server::{oauth, sandbox};
use crate::show;
use crate::source::Dialect;
use crate::source::problem::Problem;
use crate::source::tree::Table;

/// Words of the command line; a server of that name is confusing, so it gets a warning.
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
    "edit",
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
    "record",
    "registry",
    "remove",
    "replay",
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

/// Time limits for servers that set none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Limit,
    pub(crate) startup_timeout: Limit,
}

/// A time limit and its origin.
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

    /// Sets the limits that the server's own entry does not set.
    fn apply(self, fields: &Fields<'_, '_>, server: &mut Server) {
        if !fields.has("timeout") {
            server.timeout = self.timeout.time;
        }
        if !fields.has("startup_timeout") {
            server.startup_timeout = self.startup_timeout.time;
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

/// Reads a server; `None` if its kind or target cannot be determined.
///
/// The caller must check the report: a server whose entry has an error is never used.
pub(crate) fn read(mut fields: Fields<'_, '_>, limits: Limits) -> Option<Server> {
    let reached = kind::read(&mut fields);
    let (kind, target) = reached.map(|kind::Reached { kind, target }| (kind, target)).unzip();
    match fields.peek("trust").and_then(|entry| entry.node.as_text()) {
        Some("untrusted") => warn_untrusted(&mut fields),
        Some("sandboxed") => warn_sandboxed(&mut fields, kind.as_ref()),
        Some(_) | None => {}
    }
    oauth::check(&mut fields);
    let enabled = enabled(&mut fields);
    let idle = Idle::read(&mut fields);
    let tool_list = ToolList {
        expected: fields.strings("expected_tools"),
        locked: fields.flag("lock_tool_list").unwrap_or(false),
    };
    let references = match fields.report().file.dialect {
        Some(Dialect::Native) => Some(References::Resolved),
        Some(_) | None => Some(References::Literal),
    };
    let mut server = Server::read(
        &mut fields,
        kind,
        target,
        Some(enabled),
        Some(idle),
        Some(tool_list),
        references,
    );
    if let Some(server) = &mut server {
        limits.apply(&fields, server);
        check_networks(&mut fields, server);
        // Other programs' files mean the tools only by this word.
        if server.sandbox.is_none() && server.references == References::Resolved {
            server.sandbox = sandbox::by_trust(server.trust, &server.kind);
        }
    }
    fields.finish();
    server
}

/// Refuses networks of a program that has no way to them.
fn check_networks(fields: &mut Fields<'_, '_>, server: &Server) {
    let is_program = matches!(server.kind, Kind::Stdio(_) | Kind::Cli(_));
    let has_hosts = server.confinement().is_some_and(|sandbox| !sandbox.net.is_empty());
    if is_program && fields.has("networks") && !has_hosts {
        let message = format!(
            "`{}` is only for servers with an address, and for hosts of a sandbox",
            fields.key("networks")
        );
        let help = "remove it, or list hosts: `sandbox = { net = [\"…\"] }`";
        fields.problem("networks", Problem::error(message).help(help));
    }
}

/// True if an entry is enabled; the rest of it is not checked.
pub(crate) fn is_enabled(table: &Table) -> bool {
    let flag = |key| table.get(key).and_then(|entry| entry.node.as_bool());
    flag("enabled").or(flag("disabled").map(|disabled| !disabled)).unwrap_or(true)
}

/// Returns the slug of a name; `None` if the name is blank.
///
/// A name without an ASCII letter or digit gets a slug made from a hash of its bytes, so that any
/// name can be used.
pub fn slug(display: &str) -> Option<ServerName> {
    if display.trim().is_empty() {
        return None;
    }
    let plain = display.parse().ok();
    let made = || format!("server-{:08x}", fnv(display)).parse().ok();
    plain.or_else(|| ServerName::from_display(display)).or_else(made)
}

/// Warns about names that are also commands, and names whose slug is generated.
pub(crate) fn check_name(
    fields: &mut Fields<'_, '_>,
    display: &str,
    name: &ServerName,
    span: &Range<usize>,
) {
    let key = fields.path().to_owned();
    if COMMAND_WORDS.contains(&name.as_str()) {
        let problem = Problem::warning(format!("the server's name `{name}` is also a command"))
            .help("choose another name to avoid confusion");
        fields.report().add(problem, key.clone(), span);
    }
    if ServerName::from_display(display).is_none() {
        let problem = Problem::warning(format!("`{display}` is called `{name}` in rules and ids"))
            .help("to choose the name, use letters a-z and digits");
        fields.report().add(problem, key, span);
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

/// Warns if a server is explicitly untrusted and its used tools are not listed.
///
/// A server without `trust` gets no warning, although it is untrusted too: that is the default.
fn warn_untrusted(fields: &mut Fields<'_, '_>) {
    let ours = fields.report().file.dialect == Some(Dialect::Native);
    if ours && !fields.has("expose") {
        let message = format!("`{}` is untrusted and offers all of its tools", fields.path());
        let help = "list the tools that you use: `expose = [\"…\"]`";
        fields.problem("trust", Problem::warning(message).help(help));
    }
}

/// Warns about what `sandboxed` does not do, so that operators do not rely on it.
fn warn_sandboxed(fields: &mut Fields<'_, '_>, kind: Option<&Kind>) {
    if !fields.has("expose") {
        let message = format!("`{}` is sandboxed and exposes no tools", fields.path());
        let help = "list the tools it may offer: `expose = [\"…\"]`";
        fields.problem("trust", Problem::warning(message).help(help));
    }
    let is_native = fields.report().file.dialect == Some(Dialect::Native);
    let is_on = fields.peek("sandbox").and_then(|entry| entry.node.as_bool());
    if is_native && is_on != Some(false) {
        return;
    }
    if matches!(kind, Some(Kind::Stdio(_) | Kind::Cli(_))) {
        let message = format!(
            "`{}` limits the server's tools and questions here; its process is not confined",
            fields.key("trust")
        );
        let help = if is_native {
            "remove `sandbox = false` to run it in a sandbox"
        } else {
            "to run it in a sandbox, import it (`capstan import`) and set `sandbox = true`"
        };
        fields.problem("trust", Problem::warning(message).help(help));
    }
}

/// A small hash that is stable across versions (FNV-1a).
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

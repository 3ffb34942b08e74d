//! The key `sandbox`: what the process of a server may reach.

use std::fmt;
use std::str::FromStr;

use capstan_model::Trust;
use schemars::JsonSchema;
use serde_json::Value as Json;

use super::Kind;
use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::form::{Form, Size, Table};
use crate::source::problem::Problem;

/// The fewest files that programs need to have open.
const LEAST_OPEN_FILES: u32 = 64;

/// The fewest processes and threads that programs need.
const LEAST_PROCESSES: u32 = 16;

/// The least memory that programs need, in bytes.
const LEAST_MEMORY: u64 = 16 << 20;

keys! {
    /// The sandbox of a server's process.
    pub table Sandbox
    keys {
        /// Confine the process.
        enabled: bool = true;
        /// Files and folders that the server may read, beside the system's programs and its own folder. `~/` is your home folder; a relative path is resolved against the project.
        read: Vec<String> = Vec::new();
        /// Files and folders that it may also change.
        write: Vec<String> = Vec::new();
        /// Hosts that it may connect to, through Capstan's proxy: `"api.github.com:443"`, or `"*.github.com"`. Without a port, 443 is meant.
        net: Vec<NetHost> as NetHosts = Vec::new();
        /// The maximum number of processes and threads. Without the key, 512; root's are not counted.
        processes: u32;
        /// The maximum memory that one process may write to. Without the key, 4 GiB.
        memory: u64 as Size;
        /// The maximum number of files that one process may have open. Without the key, 4096.
        open_files: u32;
        /// The maximum size of a file that it writes. Without the key, 2 GiB.
        file_size: u64 as Size;
    }
}

/// A host that a server may connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NetHost {
    /// The name, in lower case, or the address. With `subdomains`, the part behind `*.`.
    pub name: String,
    /// True if all names below `name` are meant, and not the name itself.
    pub subdomains: bool,
    /// The port.
    pub port: u16,
}

/// The port that is meant if none is given.
const HTTPS: u16 = 443;

/// The form of a list of hosts.
pub(crate) struct NetHosts;

/// The form of the key: a flag or a table.
pub(crate) struct SandboxForm;

/// The schema of the key.
#[derive(JsonSchema)]
#[schemars(untagged, title = "boolean or table")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum SandboxSchema {
    /// On, with nothing but what every program needs; or off.
    Flag(bool),
    /// On, with these files, hosts and limits.
    Table(Box<<Sandbox as Table>::Keys>),
}

/// Reads the key. It is on by default for `trust = "sandboxed"`.
pub(crate) fn by_trust(trust: Trust, kind: &Kind) -> Option<Sandbox> {
    let is_program = matches!(kind, Kind::Stdio(_) | Kind::Cli(_));
    (trust == Trust::Sandboxed && is_program).then(Sandbox::on)
}

// === impl Sandbox ===

impl Sandbox {
    /// A sandbox with nothing but what every program needs.
    pub fn on() -> Self {
        Self::default()
    }

    /// Refuses limits that no program can live with.
    fn check(&self, fields: &mut Fields<'_, '_>) {
        let few = |value: Option<u32>, least: u32| value.is_some_and(|value| value < least);
        for (key, is_low, least) in [
            ("processes", few(self.processes, LEAST_PROCESSES), LEAST_PROCESSES.to_string()),
            ("open_files", few(self.open_files, LEAST_OPEN_FILES), LEAST_OPEN_FILES.to_string()),
            (
                "memory",
                self.memory.is_some_and(|memory| memory < LEAST_MEMORY),
                "\"16MiB\"".to_owned(),
            ),
        ] {
            if is_low {
                let message = format!("`{}` is too low for any program", fields.key(key));
                let help = format!("use at least {least}");
                fields.problem(key, Problem::error(message).help(help));
            }
        }
    }
}

// === impl NetHost ===

impl FromStr for NetHost {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, port) = match text.rsplit_once(':') {
            // An address of IPv6 is in brackets.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, port.parse().map_err(drop)?)
            }
            Some(_) if !text.ends_with(']') => return Err(()),
            Some(_) | None => (text, HTTPS),
        };
        let (name, subdomains) = match host.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (host, false),
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let is_address = |text: &str| text.parse::<core::net::IpAddr>().is_ok();
        let named = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let labels =
            |name: &str| name.split('.').all(|label| !label.is_empty() && label.chars().all(named));
        let is_valid = match bare {
            Some(bare) => is_address(bare) && !subdomains,
            None => labels(name) && !(subdomains && (is_address(name) || !name.contains('.'))),
        };
        let name = bare.unwrap_or(name).to_ascii_lowercase();
        if is_valid && port != 0 { Ok(Self { name, subdomains, port }) } else { Err(()) }
    }
}

impl fmt::Display for NetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.subdomains { "*." } else { "" };
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{star}{}:{}", self.name, self.port)
        }
    }
}

// === impl NetHosts ===

impl Form for NetHosts {
    type Value = Vec<NetHost>;
    type Schema = Vec<String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<NetHost>> {
        let texts = fields.texts(key)?;
        let path = fields.key(key);
        let mut hosts = Vec::new();
        for text in texts {
            if let Ok(host) = text.value.value.parse() {
                hosts.push(host);
                continue;
            }
            let message = format!("in `{path}`, `{}` is not a host", text.value.shown());
            let help = "write \"api.example.com:443\", or \"*.example.com\", without `https://`";
            fields.report().add(Problem::error(message).help(help), path.clone(), &text.span);
        }
        Some(hosts)
    }

    fn write(value: &Vec<NetHost>) -> Json {
        value.iter().map(NetHost::to_string).collect()
    }
}

// === impl SandboxForm ===

impl Form for SandboxForm {
    type Value = Sandbox;
    type Schema = SandboxSchema;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Sandbox> {
        if let Some(enabled) = fields.peek(key)?.node.as_bool() {
            fields.entry(key);
            return Some(Sandbox { enabled, ..Sandbox::default() });
        }
        let mut nested = fields.nested(key)?;
        let sandbox = Sandbox::read(&mut nested);
        sandbox.check(&mut nested);
        nested.finish();
        Some(sandbox)
    }

    fn write(_: &Sandbox) -> Json {
        Json::Null
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_and_written_and_addresses_of_other_kinds_refused() {
        for (text, written) in [
            ("api.github.com:443", "api.github.com:443"),
            ("API.github.com", "api.github.com:443"),
            ("*.github.com:8443", "*.github.com:8443"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("[::1]", "[::1]:443"),
            ("localhost:9", "localhost:9"),
        ] {
            assert_eq!(
                text.parse::<NetHost>().map(|host| host.to_string()),
                Ok(written.to_owned())
            );
        }
        for text in [
            "",
            "*",
            "*:443",
            "*.com",
            "*.1.2.3.4",
            "https://api.github.com",
            "api.github.com/path",
            "api.github.com:",
            "api.github.com:0",
            "api.github.com:99999",
            "a..b",
            "a b",
            "::1",
            "[::1",
            "user@host",
        ] {
            assert_eq!(text.parse::<NetHost>(), Err(()), "{text}");
        }
    }
}

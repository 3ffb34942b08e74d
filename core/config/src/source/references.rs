//! References to secrets: where they may stand in a native file.
//!
//! They are resolved when a server connects, and stay in the settings as they were written. A
//! reference must be in the file itself: the value of a variable never becomes one.

use std::ops::Range;

use capstan_model::{BadSecretName, SecretReference};

use super::Dialect;
use super::problem::{Problem, Report};
use crate::fields::Fields;

/// The names of the table of servers.
const SERVERS: [&str; 3] = ["servers", "mcpServers", "mcp_servers"];

/// The keys of a server that hold credentials: the output of a program may stand there.
const CREDENTIALS: [&str; 4] = ["env", "headers", "openapi.auth", "oauth_config"];

/// The other keys of a server that may refer to stored secrets.
const OTHERS: [&str; 5] = ["args", "cwd", "url", "openapi", "auth_provider"];

/// The kinds of references that a key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permitted {
    All,
    Keyring,
    None,
}

/// True if the file of a table is native, so that its strings may refer to secrets.
pub(crate) fn is_native(fields: &mut Fields<'_, '_>) -> bool {
    fields.report().file.dialect == Some(Dialect::Native)
}

/// Reports references that cannot be used: as `written` in the file, and `expanded` with variables.
pub(crate) fn check(
    written: &str,
    expanded: &str,
    key: &str,
    span: &Range<usize>,
    report: &mut Report<'_>,
) {
    if report.file.dialect != Some(Dialect::Native) {
        return;
    }
    if let Some(problem) = problem(written, expanded, key) {
        report.add(problem, key, span);
    }
}

fn problem(written: &str, expanded: &str, key: &str) -> Option<Problem> {
    let bad = |BadSecretName(name)| {
        Problem::error(format!("`{key}` refers to a secret by the name `{name}`"))
            .help("a name has letters, digits and the characters `-`, `_`, `.`, `/`")
    };
    let in_file = match SecretReference::pieces(written) {
        Ok(_) => SecretReference::all(written),
        Err(name) => return Some(bad(name)),
    };
    // A name that comes from a variable is refused below, without repeating it.
    let used = SecretReference::all(expanded);
    if SecretReference::pieces(expanded).is_err() || used.iter().any(|one| !in_file.contains(one)) {
        let message = format!("`{key}` gets a reference to a secret from a variable");
        let help = "write the whole reference in the file, such as `${keyring:NAME}`";
        return Some(Problem::error(message).help(help));
    }
    let permitted = permitted(key);
    for reference in &used {
        match (reference, permitted) {
            (_, Permitted::All) | (SecretReference::Keyring(_), Permitted::Keyring) => {}
            // A whole text that begins so is an ordinary text in all other places.
            (SecretReference::Command(_), _) if !written.contains("${command:") => {}
            (SecretReference::Command(_), _) => {
                let message = format!("`{key}` cannot have the output of a command");
                let help = "only `env`, `headers` and credentials can; store the secret with \
                            `capstan secret set NAME`, and write `${keyring:NAME}`";
                return Some(Problem::error(message).help(help));
            }
            (SecretReference::Keyring(_), Permitted::None) => {
                let message = format!("`{key}` cannot refer to a secret");
                let help = "`args`, `env`, `cwd`, `url`, `headers` and credentials of a server can";
                return Some(Problem::error(message).help(help));
            }
        }
    }
    None
}

/// The references that a key may have, by its dotted path.
fn permitted(path: &str) -> Permitted {
    let Some(key) = server_key(path) else { return Permitted::None };
    let is_in = |table: &&str| {
        key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if CREDENTIALS.iter().any(&is_in) {
        Permitted::All
    } else if OTHERS.iter().any(is_in) {
        Permitted::Keyring
    } else {
        Permitted::None
    }
}

/// The path of a key within the entry of its server.
fn server_key(path: &str) -> Option<&str> {
    let (table, rest) = path.split_once('.')?;
    if !SERVERS.contains(&table) {
        return None;
    }
    let Some(quoted) = rest.strip_prefix('"') else { return Some(rest.split_once('.')?.1) };
    let mut is_escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return quoted.get(at + 1..)?.strip_prefix('.'),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stand_where_they_can_be_resolved_and_nowhere_else() {
        for (key, keyring, command) in [
            ("servers.a.env.TOKEN", true, true),
            ("mcpServers.a.env.TOKEN", true, true),
            ("servers.\"a.b \\\" c\".headers.\"X-Key\"", true, true),
            ("servers.a.openapi.auth.key.token", true, true),
            ("servers.a.oauth_config.client_secret", true, true),
            ("servers.a.args", true, false),
            ("servers.a.url", true, false),
            ("servers.a.cwd", true, false),
            ("servers.a.openapi.base_url", true, false),
            ("servers.a.command", false, false),
            ("servers.a.description", false, false),
            ("servers.a.environment", false, false),
            ("servers.env.description", false, false),
            ("gateway.listen", false, false),
            ("description", false, false),
        ] {
            for (text, is_fine) in [("x${keyring:a}", keyring), ("x${command:op read a}", command)]
            {
                assert_eq!(problem(text, text, key).is_none(), is_fine, "{key} {text}");
            }
            assert!(problem("plain", "plain", key).is_none(), "{key}");
        }
        assert!(problem("command:build", "command:build", "servers.a.args").is_none());
    }

    #[test]
    fn a_variable_never_becomes_a_reference() {
        let key = "servers.a.env.TOKEN";
        for (written, expanded) in [
            ("${VAR}", "keyring:a"),
            ("${VAR}", "x${keyring:a}"),
            ("${VAR}", "command:rm -r /"),
            ("${VAR}", "keyring:not a name"),
            ("command:op read ${VAR}", "command:op read op://x"),
            ("${keyring:a}${VAR}", "${keyring:a}${keyring:b}"),
            ("${VAR:-keyring:a}", "keyring:a"),
        ] {
            let found = problem(written, expanded, key).map(|problem| problem.message);
            let expected = "`servers.a.env.TOKEN` gets a reference to a secret from a variable";
            assert_eq!(found.as_deref(), Some(expected), "{written} {expanded}");
        }
        for (written, expanded) in [
            ("${VAR}", "plain"),
            ("Bearer ${keyring:a}", "Bearer ${keyring:a}"),
            ("${VAR}:${keyring:a}", "me:${keyring:a}"),
            ("${VAR:-${keyring:a}}", "${keyring:a}"),
            ("${VAR:-${keyring:a}}", "set"),
        ] {
            assert!(problem(written, expanded, key).is_none(), "{written} {expanded}");
        }
        let bad = problem("keyring:a b", "keyring:a b", key).unwrap();
        assert!(bad.message.contains("by the name `a b`"), "{bad}");
    }
}

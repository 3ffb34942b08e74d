//! The digest by which configurations of different processes are compared.

use capstan_config::SourceFile;
use capstan_hub::approvals::policy_version;

use crate::{Environment, Selection};

/// Prefixes of variables that configurations may depend on without naming them.
const OUR_VARIABLES: [&str; 3] = ["CAPSTAN_", "CALIBAN_", "MCP_"];

/// Variables of ours that do not affect servers or rules.
const UNRELATED: [&str; 1] = ["CAPSTAN_REGISTRY"];

/// A variable that the shell sets to a different value for every command.
const LAST_COMMAND: &str = "_";

/// The digest of a configuration.
///
/// Two configurations with equal digests start the same servers with the same rules.
pub(crate) fn digest(
    environment: &Environment,
    selection: &Selection,
    files: &[SourceFile],
) -> String {
    let mut texts = vec![
        environment.workspace().display().to_string(),
        format!("{} {} {}", selection.demo, selection.no_mcp, selection.trust_project),
    ];
    for file in files {
        let SourceFile { path, scope, text, approved, .. } = file;
        texts.push(format!("{} {approved} {path}", scope.as_str()));
        texts.push(text.clone());
    }
    for (name, value) in &environment.variables {
        // A file that refers to a variable contains its name, in whatever syntax.
        let named = || files.iter().any(|file| file.text.contains(name.as_str()));
        let ours = OUR_VARIABLES.iter().any(|prefix| name.starts_with(prefix))
            && !UNRELATED.contains(&name.as_str());
        if name != LAST_COMMAND && (ours || named()) {
            texts.push(format!("{name}={value}"));
        }
    }
    policy_version(texts.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use capstan_config::Scope;

    use super::*;
    use crate::fakes::{FakeFiles, environment};

    /// The digest of one file, with one variable.
    fn digest_of(text: &str, scope: Scope, variable: (&str, &str)) -> String {
        let mut here = environment(FakeFiles::default());
        here.variables.insert(variable.0.to_owned(), variable.1.to_owned());
        let file = SourceFile::new("c.toml", scope, text);
        digest(&here, &Selection::default(), &[file])
    }

    #[test]
    fn only_what_can_change_servers_or_rules_changes_the_digest() {
        let first = digest_of("a = \"${A}\"", Scope::User, ("A", "1"));
        assert_eq!(first, digest_of("a = \"${A}\"", Scope::User, ("A", "1")));
        for (text, scope, variable) in [
            ("a = \"${A}\"", Scope::User, ("A", "2")),
            ("a = \"${A}\"", Scope::Flag, ("A", "1")),
            ("a = \"${A}\" ", Scope::User, ("A", "1")),
        ] {
            assert_ne!(first, digest_of(text, scope, variable), "{text} {scope:?}");
        }
        let plain = digest_of("a = 1", Scope::User, ("HOME", "/"));
        for unrelated in [("_", "/bin/ls"), ("CAPSTAN_REGISTRY", "https://h"), ("TERM", "vt100")] {
            assert_eq!(plain, digest_of("a = 1", Scope::User, unrelated), "{}", unrelated.0);
        }
        assert_ne!(plain, digest_of("a = 1", Scope::User, ("MCP_TIMEOUT", "1")));
    }
}

//! Settings from environment variables.
//!
//! Our own names come first, then those of Caliban, then the two that Claude Code shares with
//! others. `MAX_MCP_OUTPUT_TOKENS` is read only with a prefix, because servers use the bare name
//! for themselves.

use std::time::Duration;

use crate::source::problem::Problem;
use crate::units;

/// Settings from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvSettings {
    /// True if no server is used at all.
    pub no_mcp: bool,
    /// The time limit of the start, for servers whose entries set none.
    pub startup_timeout: Option<Duration>,
    /// The time limit of calls, for servers whose entries set none.
    pub tool_timeout: Option<Duration>,
    /// The maximum length of an answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// The port of the login's callback.
    pub oauth_port: Option<u16>,
}

/// Looks up a variable.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads the settings and reports values that cannot be read.
///
/// With one of our own names such a value is an error; with a name that other programs use too it
/// is skipped with a warning.
pub fn settings(variable: Variable<'_>) -> (EnvSettings, Vec<Problem>) {
    let mut reader = Reader { variable, problems: Vec::new() };
    let settings = EnvSettings {
        no_mcp: reader.first(&["CAPSTAN_NO_MCP", "CALIBAN_NO_MCP"], switch).unwrap_or(false),
        startup_timeout: reader
            .first(&["CAPSTAN_MCP_TIMEOUT", "CALIBAN_MCP_TIMEOUT", "MCP_TIMEOUT"], time),
        tool_timeout: reader.first(
            &["CAPSTAN_MCP_TOOL_TIMEOUT", "CALIBAN_MCP_TOOL_TIMEOUT", "MCP_TOOL_TIMEOUT"],
            time,
        ),
        max_output_tokens: reader
            .first(&["CAPSTAN_MAX_MCP_OUTPUT_TOKENS", "CALIBAN_MAX_MCP_OUTPUT_TOKENS"], positive),
        oauth_port: reader
            .first(&["CAPSTAN_MCP_OAUTH_PORT", "CALIBAN_MCP_OAUTH_PORT"], |_, text| {
                text.parse().map_err(|_| "a port from 0 to 65535")
            }),
    };
    (settings, reader.problems)
}

struct Reader<'a> {
    variable: Variable<'a>,
    problems: Vec<Problem>,
}

/// Parses the value of a variable; the error names what was expected.
type Read<T> = fn(name: &str, text: &str) -> Result<T, &'static str>;

// === impl Reader ===

impl Reader<'_> {
    /// Returns the value of the first variable that is set and valid; an empty one counts as unset.
    fn first<T>(&mut self, names: &[&str], read: Read<T>) -> Option<T> {
        for name in names {
            let Some(text) = (self.variable)(name).filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            match read(name, text.trim()) {
                Ok(value) => return Some(value),
                Err(expected) => {
                    let message = format!("the environment variable `{name}` is not {expected}");
                    let problem = if name.starts_with("CAPSTAN_") {
                        Problem::error(message)
                    } else {
                        Problem::warning(message)
                    };
                    let help = format!("unset `{name}`, or give it {expected}");
                    self.problems
                        .push(Problem { key: Some((*name).to_owned()), ..problem }.help(help));
                }
            }
        }
        None
    }
}

fn switch(_: &str, text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("`1` or `0`"),
    }
}

/// Parses milliseconds; under a name of our own also a duration with a unit.
fn time(name: &str, text: &str) -> Result<Duration, &'static str> {
    match text.parse::<u64>() {
        Ok(0) => Err("a time above zero"),
        Ok(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        Err(_) if name.starts_with("CAPSTAN_") => {
            units::duration(text).map_err(|_| "a duration such as `30s`, or milliseconds")
        }
        Err(_) => Err("a number of milliseconds"),
    }
}

fn positive(_: &str, text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|tokens| *tokens > 0).ok_or("a number of tokens above zero")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::problem::Severity;

    fn with(variables: &[(&str, &str)]) -> (EnvSettings, Vec<Problem>) {
        settings(&|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_changes_nothing() {
        assert_eq!(with(&[]), (EnvSettings::default(), Vec::new()));
    }

    #[test]
    fn the_shared_names_are_milliseconds_and_ours_come_first() {
        let (shared, _) = with(&[("MCP_TIMEOUT", "2000"), ("MCP_TOOL_TIMEOUT", "3000")]);
        assert_eq!(shared.startup_timeout, Some(Duration::from_secs(2)));
        assert_eq!(shared.tool_timeout, Some(Duration::from_secs(3)));
        let (ours, _) = with(&[
            ("MCP_TIMEOUT", "2000"),
            ("CALIBAN_MCP_TIMEOUT", "3000"),
            ("CAPSTAN_MCP_TIMEOUT", "5s"),
        ]);
        assert_eq!(ours.startup_timeout, Some(Duration::from_secs(5)));
        let (bare, _) = with(&[("CAPSTAN_MCP_TOOL_TIMEOUT", "1500")]);
        assert_eq!(bare.tool_timeout, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let (settings, _) = with(&[("CAPSTAN_MCP_TIMEOUT", ""), ("MCP_TIMEOUT", "2000")]);
        assert_eq!(settings.startup_timeout, Some(Duration::from_secs(2)));
    }

    #[test]
    fn the_output_limit_is_read_only_with_a_prefix() {
        assert_eq!(with(&[("MAX_MCP_OUTPUT_TOKENS", "1")]).0.max_output_tokens, None);
        let (settings, _) = with(&[("CAPSTAN_MAX_MCP_OUTPUT_TOKENS", "9")]);
        assert_eq!(settings.max_output_tokens, Some(9));
    }

    #[test]
    fn servers_can_be_switched_off_by_either_name() {
        for (name, value, expected) in [
            ("CAPSTAN_NO_MCP", "1", true),
            ("CALIBAN_NO_MCP", "true", true),
            ("CAPSTAN_NO_MCP", "0", false),
            ("NO_MCP", "1", false),
        ] {
            assert_eq!(with(&[(name, value)]).0.no_mcp, expected, "{name}={value}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_an_error_only_under_a_name_of_ours() {
        let severities = |name, value| {
            let (settings, problems) = with(&[(name, value)]);
            assert_eq!(settings, EnvSettings::default(), "{name}={value}");
            problems.into_iter().map(|problem| problem.severity).collect::<Vec<_>>()
        };
        assert_eq!(severities("CAPSTAN_MCP_TIMEOUT", "soon"), [Severity::Error]);
        assert_eq!(severities("CAPSTAN_MCP_TIMEOUT", "0"), [Severity::Error]);
        assert_eq!(severities("CAPSTAN_NO_MCP", "perhaps"), [Severity::Error]);
        assert_eq!(severities("CAPSTAN_MCP_OAUTH_PORT", "70000"), [Severity::Error]);
        assert_eq!(severities("CAPSTAN_MAX_MCP_OUTPUT_TOKENS", "0"), [Severity::Error]);
        assert_eq!(severities("MCP_TIMEOUT", "5s"), [Severity::Warning]);
        assert_eq!(severities("CALIBAN_MCP_TOOL_TIMEOUT", "x"), [Severity::Warning]);
    }
}

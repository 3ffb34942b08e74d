//! The keys of `[[tools.rates]]`: limits on the number of calls in a time window.

use std::time::Duration;

use capstan_policy::{Pattern, Rate, RateBy};
use serde_json::Value as Json;

use super::define::keys;
use super::form::{Form, OneOf, Time};
use crate::fields::{Fields, Words};
use crate::show;
use crate::source::Origin;
use crate::source::problem::{Problem, Report};
use crate::source::tree::{Node, Value};

keys! {
    /// A limit on the number of calls in a period.
    pub(crate) table RateKeys: "rate"
    keys {
        /// The maximum number of calls; at least 1.
        limit: u32;
        /// The period.
        every: Duration as Time;
        /// The calls that are counted together: those of one caller, to one server, to one tool, or all.
        by: RateBy = RateBy::All;
        /// Patterns of tools, as in `[permissions]`. Default: all tools, resources and prompts.
        tools: Vec<Pattern> as Patterns;
        /// The text for callers that are refused.
        reason: String;
    }
}

/// A rate with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSetting {
    /// The rate.
    pub rate: Rate,
    /// Its position.
    pub origin: Origin,
    /// The rate as `config show` prints it.
    pub(crate) shown: String,
}

/// The form of a list of tool patterns; the list must not be empty.
struct Patterns;

const KEY: &str = "rates";

const EXAMPLE: &str = "write `[[tools.rates]]` with `limit = 100` and `every = \"1m\"`";

/// Reads the rates; `fields` is `[tools]`.
pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Vec<RateSetting> {
    let Some(entry) = fields.entry(KEY) else { return Vec::new() };
    let key = fields.key(KEY);
    let Value::List(nodes) = &entry.node.value else {
        let what = entry.node.value.what();
        let problem = Problem::error(format!("`{key}` must be a list of tables, not {what}"));
        fields.problem(KEY, problem.help(EXAMPLE));
        return Vec::new();
    };
    nodes.iter().filter_map(|node| RateSetting::read(fields.report(), &key, node)).collect()
}

// === impl RateSetting ===

impl RateSetting {
    /// Reads a rate; `None` if a part of it is missing or wrong.
    fn read<'t>(report: &mut Report<'t>, key: &str, node: &'t Node) -> Option<Self> {
        let Some(table) = node.as_table() else {
            let what = node.value.what();
            let problem = Problem::error(format!("`{key}` contains {what}, which is not a rate"));
            report.add(problem.help(EXAMPLE), key, &node.span);
            return None;
        };
        let mut fields = Fields::new(table, key, &node.span, report);
        let RateKeys { limit, every, by, tools, reason } = RateKeys::read(&mut fields);
        for needed in ["limit", "every"] {
            if !fields.has(needed) {
                let problem = Problem::error(format!("a rate in `{key}` has no `{needed}`"));
                fields.table_problem(problem.help(EXAMPLE));
            }
        }
        if limit == Some(0) {
            let problem = Problem::error(format!("`{key}.limit` must not be 0"))
                .help("to forbid calls, deny them under `[permissions]`");
            fields.problem("limit", problem);
        }
        let tools = if fields.has("tools") { tools } else { Some(Vec::new()) };
        fields.finish();
        let origin = report.file.origin(&node.span);
        let limit = limit.filter(|limit| *limit > 0)?;
        let rate = Rate { limit, every: every?, by, tools: tools?, reason };
        Some(Self { rate, origin, shown: show::leaf(KEY, node) })
    }
}

// === impl Patterns ===

impl Form for Patterns {
    type Value = Vec<Pattern>;
    type Schema = Vec<String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<Pattern>> {
        let texts = fields.texts(key)?;
        let path = fields.key(key);
        if texts.is_empty() {
            let problem =
                Problem::error(format!("`{path}` is empty")).help("remove it to mean all calls");
            fields.problem(key, problem);
            return None;
        }
        let mut patterns = Vec::new();
        for text in &texts {
            let problem = match Pattern::parse(&text.value.value) {
                Ok(_) if text.value.value.trim_start().starts_with("Elicit(") => {
                    Problem::error(format!("`{path}` matches tools, not questions"))
                        .help("to limit questions, set `elicitation_queue` under `[mcp]`")
                }
                Ok(pattern) => {
                    patterns.push(pattern);
                    continue;
                }
                Err(error) => Problem::error(text.value.complaint(&path, &error))
                    .help("write a pattern such as \"delete_*\" or \"github__create_issue\""),
            };
            fields.report().add(problem, path.clone(), &text.span);
        }
        (patterns.len() == texts.len()).then_some(patterns)
    }

    fn write(value: &Vec<Pattern>) -> Json {
        value.iter().map(Pattern::as_str).collect()
    }
}

// === impl RateBy ===

impl OneOf for RateBy {
    const WORDS: Words<Self> = &[
        ("caller", Self::Caller),
        ("server", Self::Server),
        ("tool", Self::Tool),
        ("all", Self::All),
    ];
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use capstan_policy::{Pattern, Rate, RateBy};

    use crate::source::reader::NativeFiles;
    use crate::source::{Scope, SourceFile, Surroundings};
    use crate::{Loaded, load};

    fn loaded(text: &str) -> Loaded {
        let file = SourceFile::new("f.toml", Scope::User, text);
        load(&[file], &Surroundings { variable: &|_| None, project_dir: "" }, &NativeFiles)
    }

    #[test]
    fn rates_are_read_with_all_their_words() {
        let text = "[[tools.rates]]\nlimit = 100\nevery = \"1m\"\nby = \"caller\"\n\
                    [[tools.rates]]\nlimit = 2\nevery = \"1h\"\ntools = [\"delete_*\"]\nreason = \"slowly\"";
        let loaded = loaded(text);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let [first, second] = loaded.config.tools.rates.as_slice() else { panic!("not two") };
        let every = Duration::from_mins(1);
        let calls = Rate { limit: 100, every, by: RateBy::Caller, tools: Vec::new(), reason: None };
        assert_eq!(first.rate, calls);
        let (every, tools) = (Duration::from_hours(1), vec![Pattern::parse("delete_*").unwrap()]);
        let reason = Some("slowly".to_owned());
        assert_eq!(second.rate, Rate { limit: 2, every, by: RateBy::All, tools, reason });
        assert_eq!(second.origin.line, 5);
        let shown: Vec<String> = crate::show(&loaded)
            .into_iter()
            .filter(|line| line.key == "tools.rates")
            .map(|line| line.value)
            .collect();
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert!(shown[1].contains("slowly"), "{shown:?}");
    }

    #[test]
    fn what_is_no_rate_is_an_error_and_does_not_become_one() {
        for text in [
            "[tools]\nrates = 5",
            "[tools]\nrates = [5]",
            "[[tools.rates]]\nevery = \"1m\"",
            "[[tools.rates]]\nlimit = 5",
            "[[tools.rates]]\nlimit = 0\nevery = \"1m\"",
            "[[tools.rates]]\nlimit = -1\nevery = \"1m\"",
            "[[tools.rates]]\nlimit = 5\nevery = 60",
            "[[tools.rates]]\nlimit = 5\nevery = \"0s\"",
            "[[tools.rates]]\nlimit = 5\nevery = \"1m\"\nby = \"user\"",
            "[[tools.rates]]\nlimit = 5\nevery = \"1m\"\ntools = []",
            "[[tools.rates]]\nlimit = 5\nevery = \"1m\"\ntools = [\"[\"]",
            "[[tools.rates]]\nlimit = 5\nevery = \"1m\"\ntools = [\"Elicit(x)\"]",
            "[[tools.rates]]\nlimit = 5\nevery = \"1m\"\nburst = 9",
        ] {
            let loaded = loaded(text);
            let messages: Vec<&str> =
                loaded.fatal().map(|problem| problem.message.as_str()).collect();
            assert_eq!(messages.len(), 1, "{text}: {messages:?}");
        }
    }
}

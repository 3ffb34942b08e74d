//! The rates of a file: how many calls there may be in some time.

use capstan_model::RateBy;
use capstan_policy::Pattern;

use crate::fields::{Fields, Words};
use crate::settings::Rate;
use crate::show;
use crate::source::problem::{Problem, Report};
use crate::source::tree::{Node, Value};

const KEY: &str = "rates";

const BY: Words<RateBy> = &[
    ("caller", RateBy::Caller),
    ("server", RateBy::Server),
    ("tool", RateBy::Tool),
    ("all", RateBy::All),
];

const EXAMPLE: &str = "write `[[tools.rates]]` with `limit = 100` and `every = \"1m\"`";

/// Reads the rates; `fields` is `[tools]`.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Vec<Rate> {
    let Some(entry) = fields.entry(KEY) else { return Vec::new() };
    let key = fields.key(KEY);
    let Value::List(nodes) = &entry.node.value else {
        let what = entry.node.value.what();
        let problem = Problem::error(format!("`{key}` must be a list of tables, not {what}"));
        fields.problem(KEY, problem.help(EXAMPLE));
        return Vec::new();
    };
    nodes.iter().filter_map(|node| rate(fields.report(), &key, node)).collect()
}

fn rate<'t>(report: &mut Report<'t>, key: &str, node: &'t Node) -> Option<Rate> {
    let Some(table) = node.as_table() else {
        let what = node.value.what();
        let problem = Problem::error(format!("`{key}` holds {what}, which is no rate"));
        report.add(problem.help(EXAMPLE), key, &node.span);
        return None;
    };
    let mut fields = Fields::new(table, key, &node.span, report);
    let limit = fields.count("limit");
    let every = fields.duration("every");
    let by = fields.word("by", BY);
    let tools = patterns(&mut fields);
    let reason = fields.string("reason");
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
    fields.finish();
    let origin = report.file.origin(&node.span);
    let (by, tools) = (by.unwrap_or(RateBy::All), tools?);
    let shown = show::leaf(KEY, node);
    Some(Rate {
        limit: limit.filter(|limit| *limit > 0)?,
        every: every?,
        by,
        tools,
        reason,
        origin,
        shown,
    })
}

/// The patterns of the tools that are meant; `None` when one of them cannot be read, or when there
/// is a list and nothing in it.
fn patterns(fields: &mut Fields<'_, '_>) -> Option<Vec<Pattern>> {
    if fields.entry("tools").is_none() {
        return Some(Vec::new());
    }
    let key = fields.key("tools");
    let texts = fields.texts("tools")?;
    if texts.is_empty() {
        let problem = Problem::error(format!("`{key}` is empty"))
            .help("remove it to mean everything that can be called");
        fields.problem("tools", problem);
        return None;
    }
    let mut patterns = Vec::new();
    for text in &texts {
        let problem = match Pattern::parse(&text.value.value) {
            Ok(_) if text.value.value.trim_start().starts_with("Elicit(") => {
                Problem::error(format!("`{key}` speaks of tools, not of questions"))
                    .help("questions have a bound of their own: `elicitation_queue` under `[mcp]`")
            }
            Ok(pattern) => {
                patterns.push(pattern);
                continue;
            }
            Err(error) => Problem::error(text.value.complaint(&key, &error))
                .help("write a pattern such as \"delete_*\" or \"github__create_issue\""),
        };
        fields.report().add(problem, key.clone(), &text.span);
    }
    (patterns.len() == texts.len()).then_some(patterns)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        assert_eq!(
            (first.limit, first.every, first.by.as_str()),
            (100, Duration::from_mins(1), "caller")
        );
        assert_eq!((second.by.as_str(), second.reason.as_deref()), ("all", Some("slowly")));
        assert_eq!((second.tools[0].as_str(), second.origin.line), ("delete_*", 5));
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

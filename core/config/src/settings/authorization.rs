//! The keys of `[tools.authorization]`: ordered rules for tools; the first match decides.

use capstan_model::Verdict;

use self::rule::RuleKeys;
use super::define::keys;
use super::form::{OneOf, Table};
use crate::fields::{Fields, Words};
use crate::settings::rule::{List, OrderedRule, Reach, Subject};
use crate::source::problem::{Problem, Report};
use crate::source::tree::{Node, Value};

/// The `[tools.authorization]` table of one file.
#[derive(Debug, Default)]
pub(crate) struct AuthorizationPart {
    /// The rules; empty unless the table is enabled.
    pub(crate) rules: Vec<OrderedRule>,
}

keys! {
    /// Ordered rules that apply if `tools.policy` has no verdict: the first rule that matches a tool decides.
    pub(crate) table AuthorizationKeys
    keys {
        /// Apply the rules.
        enabled: bool = false;
    }
    by_hand {
        /// The rules. Each has an `action` (`allow`, `ask`, `deny`), `tools`, and a `comment` for callers that are refused.
        rules: Vec<<RuleKeys as Table>::Keys> as "list of rules";
    }
}

mod rule {
    use super::{Verdict, keys};

    keys! {
        /// An ordered rule.
        pub(crate) table RuleKeys
        keys {
            /// The verdict.
            action: Verdict;
        }
        by_hand {
            /// The tools that it matches, as patterns.
            tools: Vec<String>;
        }
        keys {
            /// The text for callers that are refused.
            comment: String;
        }
    }
}

// === impl AuthorizationPart ===

impl AuthorizationPart {
    /// Reads the table. A disabled table is checked too, so that enabling it reveals no new errors.
    pub(crate) fn read(mut fields: Fields<'_, '_>) -> Self {
        let AuthorizationKeys { enabled } = AuthorizationKeys::read(&mut fields);
        let mut rules = Vec::new();
        if let Some(entry) = fields.entry("rules") {
            let path = fields.key("rules");
            let report = fields.report();
            if let Some(nodes) = entry.node.as_list() {
                for (number, node) in nodes.iter().enumerate() {
                    rules.extend(rule(report, &path, number, node));
                }
            } else {
                let what = entry.node.value.what();
                let message = format!("`{path}` must be a list of rules, not {what}");
                let help = "write each rule as `[[tools.authorization.rules]]`";
                report.add(Problem::error(message).help(help), path, &entry.node.span);
            }
        }
        if !rules.is_empty() && !fields.has("enabled") {
            let message = format!("`{}` has rules, but is not enabled", fields.path());
            let help =
                "add `enabled = true` to apply them, or `enabled = false` to hide this warning";
            fields.problem("rules", Problem::warning(message).help(help));
        }
        fields.finish();
        if !enabled {
            rules.clear();
        }
        Self { rules }
    }
}

/// Reads one entry into a rule for each of its patterns.
fn rule<'t>(
    report: &mut Report<'t>,
    path: &str,
    number: usize,
    node: &'t Node,
) -> Vec<OrderedRule> {
    let path = format!("{path}[{number}]");
    let Some(table) = node.as_table() else {
        let message = format!("`{path}` must be a table, not {}", node.value.what());
        let help = "write { action = \"deny\", tools = [\"…\"] }";
        report.add(Problem::error(message).help(help), path, &node.span);
        return Vec::new();
    };
    let mut fields = Fields::new(table, path, &node.span, report);
    let RuleKeys { action, comment } = RuleKeys::read(&mut fields);
    let key = fields.key("tools");
    let tools = fields.texts("tools").unwrap_or_default();
    for key in ["action", "tools"] {
        if !fields.has(key) {
            let message = format!("`{}` has no `{key}`", fields.path());
            let help = "a rule needs an `action` and `tools`";
            fields.table_problem(Problem::error(message).help(help));
        }
    }
    let reach = match action {
        Some(Verdict::Allow) => fields.report().file.reach(),
        Some(Verdict::Ask | Verdict::Deny) | None => Reach::All,
    };
    let list = List { key, reach, subject: Subject::Tools };
    let mut rules = Vec::new();
    for tool in tools {
        let node = Node { value: Value::Text(tool.value.clone()), span: tool.span.clone() };
        let plain = list.plain(fields.report(), &node, tool.value);
        rules.extend(plain.map(|mut rule| {
            // A caller that is refused gets the comment as the reason.
            rule.reason.clone_from(&comment);
            rule.comment.clone_from(&comment);
            OrderedRule { verdict: action.unwrap_or(Verdict::Deny), number, rule }
        }));
    }
    fields.finish();
    rules
}

// === impl Verdict ===

impl OneOf for Verdict {
    const WORDS: Words<Self> = &[("allow", Self::Allow), ("ask", Self::Ask), ("deny", Self::Deny)];
}

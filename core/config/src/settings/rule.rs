//! Permission rules, with their position and reach.

use capstan_model::{ServerName, Verdict};
use capstan_policy::{Pattern, RuleEffect};
use jiff::Timestamp;
use serde_json::Value as Json;

use crate::fields::{Fields, Words};
use crate::settings::define::keys;
use crate::settings::file::RuleLists;
use crate::settings::form::{Form, OneOf};
use crate::show;
use crate::source::problem::{Problem, Report};
use crate::source::reader::AutoAllow;
use crate::source::tree::{Node, Text, Value};
use crate::source::{FilePosition, Origin, Scope};

keys! {
    /// A pattern with conditions.
    pub(crate) table Conditions
    by_hand {
        /// The calls that the rule matches: `github__delete_*`, `delete_*`, `gh__create_issue:repo=acme/*`, `Elicit(linear)`.
        pattern: String;
    }
    keys {
        /// A note for readers of the file.
        comment: String;
        /// The text for callers that are refused or asked.
        reason: String;
        /// The time at which the rule expires, with its zone: `2030-01-31T18:00:00Z`.
        expires_at: Timestamp as Moment;
        /// Match only tools with this effect: `read`, or `write`, which includes unknown effects.
        effect: RuleEffect;
    }
}

/// Three lists of rules, ordered by the precedence of their files; a managed file comes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Rules that allow.
    pub allow: Vec<Rule>,
    /// Rules that ask.
    pub ask: Vec<Rule>,
    /// Rules that deny.
    pub deny: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The calls that it matches.
    pub pattern: Pattern,
    /// A note for readers of the file.
    pub comment: Option<String>,
    /// The text for the caller.
    pub reason: Option<String>,
    /// The time at which it expires.
    pub expires_at: Option<Timestamp>,
    /// The effect that a tool must have for the rule to match.
    pub effect: Option<RuleEffect>,
    /// Its file and line.
    pub origin: Origin,
    /// The exact position in the file.
    pub place: FilePosition,
    /// The servers that it applies to.
    pub reach: Reach,
    /// The rule as `config show` prints it.
    pub(crate) shown: String,
}

/// A rule in an ordered list, where the first match decides.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedRule {
    /// The verdict.
    pub verdict: Verdict,
    /// The index of its entry in the file, from zero.
    pub number: usize,
    /// The rule.
    pub rule: Rule,
}

/// The servers that a rule or a default applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All servers.
    #[default]
    All,
    /// Only servers that come from this file: a project file, or a file of another program, cannot
    /// loosen anything for servers of other files.
    ServersOf(String),
    /// Only this server; its rules never apply to a tool of another server, whatever its name.
    Server {
        /// The file that it comes from.
        file: String,
        /// The server.
        name: ServerName,
    },
}

/// The form of a server's key `permissions`.
pub(super) struct ServerRules;

/// The form of a point in time.
struct Moment;

/// A list being read.
pub(crate) struct List {
    /// Its dotted key.
    pub(crate) key: String,
    pub(crate) reach: Reach,
    pub(crate) subject: Subject,
}

/// The kinds of patterns that a list accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Tools of all servers, and their questions.
    ToolsAndQuestions,
    /// Tools only.
    Tools,
}

// === impl Rules ===

impl Rules {
    /// Returns the list of a verdict.
    pub fn list(&self, verdict: Verdict) -> &[Rule] {
        match verdict {
            Verdict::Allow => &self.allow,
            Verdict::Ask => &self.ask,
            Verdict::Deny => &self.deny,
        }
    }

    fn list_mut(&mut self, verdict: Verdict) -> &mut Vec<Rule> {
        match verdict {
            Verdict::Allow => &mut self.allow,
            Verdict::Ask => &mut self.ask,
            Verdict::Deny => &mut self.deny,
        }
    }

    /// Adds the rules of a file that comes later in precedence.
    pub(crate) fn append(&mut self, mut later: Self) {
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
            self.list_mut(verdict).append(later.list_mut(verdict));
        }
    }

    /// Adds a rule for tools that a dialect lets run without asking.
    pub(crate) fn auto_allow(&mut self, allowed: &AutoAllow, report: &mut Report<'_>) {
        let reach = Reach::Server { file: report.file.path.clone(), name: allowed.server.clone() };
        let rules = List { key: allowed.path.clone(), reach, subject: Subject::Tools };
        let node = Node::text(&allowed.pattern, allowed.span.clone());
        self.allow.extend(rules.plain(report, &node, &Text::plain(&allowed.pattern)));
    }

    /// Reads the three lists of a table.
    pub(crate) fn read(fields: &mut Fields<'_, '_>, subject: Subject) -> Self {
        let mut rules = Self::default();
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
            *rules.list_mut(verdict) = List::read(fields, verdict, subject);
        }
        rules
    }
}

// === impl ServerRules ===

impl Form for ServerRules {
    type Value = Rules;
    type Schema = RuleLists;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Rules> {
        let mut nested = fields.nested(key)?;
        let rules = Rules::read(&mut nested, Subject::Tools);
        nested.finish();
        Some(rules)
    }

    fn write(_: &Rules) -> Json {
        Json::Null
    }
}

// === impl Reach ===

impl Reach {
    /// True if servers of that file are in reach.
    pub fn covers(&self, file: &str) -> bool {
        match self {
            Self::All => true,
            Self::ServersOf(own) | Self::Server { file: own, .. } => own == file,
        }
    }

    /// Returns the reach of a list of commands in a file of this scope.
    pub(crate) fn of_commands(scope: Scope, file: &str) -> Self {
        match scope {
            Scope::Managed | Scope::Flag | Scope::User => Self::All,
            Scope::Project => Self::ServersOf(file.to_owned()),
        }
    }
}

// === impl List ===

impl List {
    fn read(fields: &mut Fields<'_, '_>, verdict: Verdict, subject: Subject) -> Vec<Rule> {
        let word = verdict.as_str();
        let Some(entry) = fields.entry(word) else { return Vec::new() };
        let key = fields.key(word);
        let Value::List(nodes) = &entry.node.value else {
            let what = entry.node.value.what();
            let problem = Problem::error(format!("`{key}` must be a list of patterns, not {what}"))
                .help(format!("write `{word} = [\"…\"]`"));
            fields.problem(word, problem);
            return Vec::new();
        };
        let file = fields.report().file;
        let reach = match verdict {
            Verdict::Allow => file.reach(),
            Verdict::Ask | Verdict::Deny => Reach::All,
        };
        let list = Self { key, reach, subject };
        nodes.iter().filter_map(|node| list.rule(fields.report(), node)).collect()
    }

    fn rule<'t>(&self, report: &mut Report<'t>, node: &'t Node) -> Option<Rule> {
        match &node.value {
            Value::Text(text) => self.plain(report, node, text),
            Value::Table(table) => {
                let mut fields = Fields::new(table, self.key.clone(), &node.span, report);
                let Conditions { comment, reason, expires_at, effect } =
                    Conditions::read(&mut fields);
                // A rule whose condition cannot be read must not match more than it was meant to.
                let unread = effect.is_none() && fields.has("effect");
                let pattern = fields.text("pattern");
                fields.finish();
                let Some(pattern) = pattern else {
                    let problem =
                        Problem::error(format!("a rule in `{}` has no pattern", self.key))
                            .help("write { pattern = \"…\", reason = \"…\" }");
                    report.add(problem, self.key.clone(), &node.span);
                    return None;
                };
                let plain = self.plain(report, node, pattern).filter(|_| !unread)?;
                Some(Rule { comment, reason, expires_at, effect, ..plain })
            }
            Value::Number(_) | Value::Bool(_) | Value::Moment(_) | Value::Null | Value::List(_) => {
                let what = node.value.what();
                let problem = Problem::error(format!(
                    "`{}` contains {what}, which is not a pattern",
                    self.key
                ))
                .help("write \"…\" or { pattern = \"…\", reason = \"…\" }");
                report.add(problem, self.key.clone(), &node.span);
                None
            }
        }
    }

    /// Reads a rule that is only a pattern.
    pub(crate) fn plain(&self, report: &mut Report<'_>, node: &Node, text: &Text) -> Option<Rule> {
        let problem = match (Pattern::parse(&text.value), self.subject) {
            (Ok(_), Subject::Tools) if text.value.trim_start().starts_with("Elicit(") => {
                Problem::error(format!("`{}` matches tools, not questions", self.key))
                    .help("put `Elicit(…)` into the lists of `[permissions]`")
            }
            (Ok(pattern), Subject::Tools | Subject::ToolsAndQuestions) => {
                let origin = report.file.origin(&node.span);
                let reach = self.reach.clone();
                let place = report.file.place(&node.span);
                let shown = show::leaf("pattern", node);
                return Some(Rule {
                    pattern,
                    comment: None,
                    reason: None,
                    expires_at: None,
                    effect: None,
                    origin,
                    place,
                    reach,
                    shown,
                });
            }
            (Err(error), _) => Problem::error(text.complaint(&self.key, &error))
                .help("write a pattern such as \"delete_*\" or \"github__create_issue\""),
        };
        report.add(problem, self.key.clone(), &node.span);
        None
    }
}

// === impl Moment ===

impl Form for Moment {
    type Value = Timestamp;
    type Schema = String;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Timestamp> {
        let entry = fields.entry(key)?;
        let read = match &entry.node.value {
            Value::Text(text) => text.value.parse().ok(),
            Value::Moment(moment) => moment.parse().ok(),
            Value::Number(_) | Value::Bool(_) | Value::Null | Value::List(_) | Value::Table(_) => {
                None
            }
        };
        if read.is_none() {
            let message = format!("`{}` is not a point in time", fields.key(key));
            let help = "write a date, a time and a zone: `expires_at = 2030-01-31T18:00:00Z`";
            fields.problem(key, Problem::error(message).help(help));
        }
        read
    }

    fn write(value: &Timestamp) -> Json {
        Json::from(value.to_string())
    }
}

// === impl RuleEffect ===

impl OneOf for RuleEffect {
    const WORDS: Words<Self> = &[("read", Self::Read), ("write", Self::Write)];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Dialect;
    use crate::source::SourceFile;
    use crate::source::syntax::Syntax;
    use crate::source::tree::Table;

    fn read(scope: Scope, text: &str) -> (Rules, Vec<String>) {
        let mut file = SourceFile::new("f.toml", scope, text);
        file.dialect = Some(Dialect::Native);
        let tree: Table = Syntax::Toml.read("f.toml", text).unwrap().table;
        let mut report = Report::new(&file);
        let mut fields = Fields::new(&tree, "permissions", &(0..0), &mut report);
        let rules = Rules::read(&mut fields, Subject::ToolsAndQuestions);
        fields.finish();
        (rules, report.problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn rules_keep_their_words_and_their_line() {
        let (rules, problems) = read(
            Scope::User,
            "allow = [\"list_*\"]\ndeny = [\n  { pattern = \"delete_*\", reason = \"no\", \
             comment = \"c\", expires_at = 2030-01-01T00:00:00Z },\n]\nask = [\"Elicit(x)\"]",
        );
        assert_eq!(problems, Vec::<String>::new());
        let [deny] = rules.deny.as_slice() else { panic!("{rules:?}") };
        assert_eq!((deny.pattern.as_str(), deny.origin.line), ("delete_*", 3));
        assert_eq!((deny.reason.as_deref(), deny.comment.as_deref()), (Some("no"), Some("c")));
        assert_eq!(deny.expires_at, Some("2030-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!((rules.allow.len(), rules.ask.len()), (1, 1));
    }

    #[test]
    fn a_project_allows_only_for_its_own_servers_but_asks_and_denies_for_all() {
        let text = "allow = [\"a\"]\nask = [\"b\"]\ndeny = [\"c\"]";
        let reach = |scope| {
            let (rules, _) = read(scope, text);
            [rules.allow, rules.ask, rules.deny].map(|list| list[0].reach.clone())
        };
        let own = Reach::ServersOf("f.toml".to_owned());
        assert!(own.covers("f.toml") && !own.covers("other.toml"));
        assert_eq!(reach(Scope::Project), [own, Reach::All, Reach::All]);
        for scope in [Scope::Managed, Scope::Flag, Scope::User] {
            assert_eq!(reach(scope), [Reach::All, Reach::All, Reach::All], "{scope:?}");
        }
    }

    #[test]
    fn what_is_no_rule_is_reported_and_does_not_become_one() {
        let broken = [
            "deny = \"x\"",
            "deny = [1]",
            "deny = [\"\"]",
            "deny = [\"[\"]",
            "deny = [{ reason = \"r\" }]",
            "deny = [{ pattern = \"x\", until = \"y\" }]",
            "deny = [{ pattern = \"x\", expires_at = \"tomorrow\" }]",
            "deny = [{ pattern = \"x\", expires_at = 2030-01-01 }]",
            "dney = [\"x\"]",
        ];
        for text in broken {
            let (_, problems) = read(Scope::User, text);
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        }
    }
}

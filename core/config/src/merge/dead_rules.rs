//! Finds dead rules: expired, without a matching server or tool, or shadowed by an earlier rule.
//!
//! They do no harm by themselves, so each is only a warning. But their author relies on them.

use capstan_model::{ServerName, Verdict};
use capstan_policy::Glob;
use capstan_policy::access::Grant;
use capstan_policy::pattern::PatternSubject;
use capstan_policy::rules::{Engine, ORDER, RuleGroup, Scope};
use jiff::Timestamp;

use crate::fields::nearest;
use crate::settings::Config;
use crate::settings::rule::{Reach, Rule, Rules};
use crate::source::FilePosition;
use crate::source::problem::Problem;

/// The separators between a server and a tool in a pattern.
const SEPARATORS: [&str; 3] = ["__", ":", "."];

/// A rule with the list that it is in.
struct Standing<'a> {
    rule: &'a Rule,
    /// The list it is in, for example `permissions.deny`.
    list: String,
    verdict: Verdict,
    /// The server that the list belongs to, if any.
    server: Option<&'a ServerName>,
}

/// The names of all servers: the display name and the slug of each.
struct Servers<'a>(Vec<[&'a str; 2]>);

/// Returns a warning for each dead rule of a configuration.
pub fn dead_rules(config: &Config, now: Timestamp) -> Vec<Problem> {
    let known = config.servers.values();
    let known = Servers(known.map(|it| [it.display.as_str(), it.name.as_str()]).collect());
    let all = standing(config);
    let mut problems = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let before = all.get(..at).unwrap_or_default();
        let complaint = one
            .expired(now)
            .or_else(|| one.calls_arguments_names())
            .or_else(|| one.is_no_name(&known))
            .or_else(|| one.names_unknown_server(&known))
            .or_else(|| one.names_another(config))
            .or_else(|| one.comes_too_late(before));
        if let Some(complaint) = complaint {
            let (place, key) = (Some(one.rule.place.clone()), Some(one.list.clone()));
            problems.push(Problem { place, key, ..complaint });
        }
    }
    for access in &config.access {
        for (path, grant) in grants(&access.table) {
            problems.extend(unserved(&known, &access.place, &path, grant));
            problems.extend(unnamed(&known, &access.place, &path, grant));
        }
    }
    problems
}

/// Returns every rule, in the order of evaluation.
fn standing(config: &Config) -> Vec<Standing<'_>> {
    let mut all = Vec::new();
    for RuleGroup { engine, scope, verdict } in ORDER {
        match (engine, scope, verdict) {
            (Engine::ToolPolicy, _, Some(verdict)) => {
                all.extend(of_list("tools.policy", &config.tools.policy, verdict, None));
            }
            (Engine::Permissions, Scope::AllServers, Some(verdict)) => {
                all.extend(of_list("permissions", &config.permissions.rules, verdict, None));
            }
            (Engine::Permissions, Scope::OneServer, Some(verdict)) => {
                for entry in config.servers.values() {
                    let Ok(server) = &entry.status else { continue };
                    let path = format!("servers.{}.permissions", entry.name);
                    all.extend(of_list(&path, &server.permissions, verdict, Some(&entry.name)));
                }
            }
            (_, _, None) | (Engine::Authorization, ..) => {
                all.extend(config.tools.authorization.iter().map(|ordered| Standing {
                    rule: &ordered.rule,
                    list: format!("tools.authorization.rules[{}]", ordered.number),
                    verdict: ordered.verdict,
                    server: None,
                }));
            }
        }
    }
    all
}

fn of_list<'a>(
    path: &str,
    rules: &'a Rules,
    verdict: Verdict,
    server: Option<&'a ServerName>,
) -> impl Iterator<Item = Standing<'a>> {
    let list = format!("{path}.{}", verdict.as_str());
    let of = move |rule| Standing { rule, list: list.clone(), verdict, server };
    rules.list(verdict).iter().map(of)
}

// === impl Standing ===

impl Standing<'_> {
    /// The rule and its list, for a message.
    fn named(&self) -> String {
        format!("{} in `{}`", self.rule.shown, self.list)
    }

    fn expired(&self, now: Timestamp) -> Option<Problem> {
        let end = self.rule.expires_at.filter(|end| *end <= now)?;
        let message = format!("{} expired at {end} and has no effect", self.named());
        Some(Problem::warning(message).help("remove it, or give it a later `expires_at`"))
    }

    /// Reports a pattern with an argument in brackets, as other programs write it.
    ///
    /// Here the brackets would be part of the tool's name.
    fn calls_arguments_names(&self) -> Option<Problem> {
        let PatternSubject::Item(glob) = self.rule.pattern.subject() else { return None };
        let (tool, rest) = glob.as_str().split_once('(')?;
        let argument = rest.strip_suffix(')')?;
        let message = format!("{} matches nothing: no tool has brackets in its name", self.named());
        let help = format!("name the argument: `{tool}:KEY={argument}`");
        Some(Problem::warning(message).help(help))
    }

    /// Reports a pattern that matches no name.
    ///
    /// That is a server without a tool, a name with blanks, or an argument without a value.
    fn is_no_name(&self, known: &Servers<'_>) -> Option<Problem> {
        let PatternSubject::Item(glob) = self.rule.pattern.subject() else { return None };
        let text = glob.as_str();
        let nothing = |why: String| format!("{} matches nothing: {why}", self.named());
        if text.ends_with("__") {
            let message = nothing("it does not name a tool of a server".to_owned());
            return Some(
                Problem::warning(message)
                    .help(format!("to match all tools of the server, write `{text}*`")),
            );
        }
        if text.contains(char::is_whitespace) && !text.contains("://") {
            let message = nothing("names of tools rarely contain spaces".to_owned());
            return Some(Problem::warning(message).help("write one rule for each tool"));
        }
        let (server, _) = server_in(glob).filter(|(server, _)| known.have(server))?;
        let (_, rest) = text.split_once(server)?;
        let (tool, argument) = rest.trim_start_matches(['_', ':', '.']).split_once(':')?;
        let is_word = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-');
        if tool.is_empty() || argument.is_empty() || !argument.chars().all(is_word) {
            return None;
        }
        let why = format!("no tool is called `{tool}:{argument}`");
        let help = format!("name the value of the argument: `{text}=*`");
        Some(Problem::warning(nothing(why)).help(help))
    }

    fn names_unknown_server(&self, known: &Servers<'_>) -> Option<Problem> {
        if known.0.is_empty() {
            return None;
        }
        let (server, surely) = match self.rule.pattern.subject() {
            PatternSubject::Elicit(glob) => (glob.as_str(), true),
            PatternSubject::Item(glob) => server_in(glob)?,
        };
        if known.have(server) {
            return None;
        }
        let near = known.near(server);
        if near.is_none() && !surely {
            return None;
        }
        let message = format!("{} names the server `{server}`, which does not exist", self.named());
        Some(Problem::warning(message).help(help_for(near)))
    }

    fn names_another(&self, config: &Config) -> Option<Problem> {
        let own = self.server?;
        let PatternSubject::Item(glob) = self.rule.pattern.subject() else { return None };
        let (named, _) = server_in(glob)?;
        let glob = Glob::stars(named);
        let entry = config.servers.get(own)?;
        let is_own = [own.as_str(), entry.display.as_str()].iter().any(|name| glob.is_match(name));
        let others = config.servers.values().filter(|entry| entry.name != *own);
        let mut others = others.flat_map(|entry| [entry.name.as_str(), entry.display.as_str()]);
        if is_own || !others.any(|name| glob.is_match(name)) {
            return None;
        }
        let message =
            format!("{} names the server `{named}`, but applies only to `{own}`", self.named());
        Some(Problem::warning(message).help("move it to the intended server"))
    }

    /// Reports a rule that an earlier deny rule shadows.
    ///
    /// A deny rule that is shadowed changes nothing, so it is not reported.
    fn comes_too_late(&self, before: &[Standing<'_>]) -> Option<Problem> {
        if self.verdict == Verdict::Deny {
            return None;
        }
        let first = before.iter().find(|other| other.covers(self))?;
        let message = format!(
            "{} is never reached: {} denies the same ({}:{})",
            self.named(),
            first.named(),
            first.rule.place.file,
            first.rule.place.line
        );
        Some(Problem::warning(message).help("remove one of the two"))
    }

    /// True if this rule denies everything that the other rule matches.
    fn covers(&self, other: &Standing<'_>) -> bool {
        let (mine, theirs) =
            (self.rule.pattern.as_str().trim(), other.rule.pattern.as_str().trim());
        let same_engine = self.list.starts_with("tools.") == other.list.starts_with("tools.");
        let unconditional = self.rule.expires_at.is_none()
            && self.rule.effect.is_none()
            && self.rule.reach == Reach::All;
        let of_items = matches!(other.rule.pattern.subject(), PatternSubject::Item(_));
        self.verdict == Verdict::Deny
            && same_engine
            && unconditional
            && (self.server.is_none() || self.server == other.server)
            && (mine == theirs || (of_items && self.is_wider(other)))
    }

    /// True if this pattern matches every name that the other one matches, for any arguments.
    fn is_wider(&self, other: &Standing<'_>) -> bool {
        let (PatternSubject::Item(mine), PatternSubject::Item(theirs)) =
            (self.rule.pattern.subject(), other.rule.pattern.subject())
        else {
            return false;
        };
        if self.rule.pattern.has_matchers() || theirs.as_str().contains(['?', '[', '{', '\\']) {
            return false;
        }
        // The sample has a character that only a star can match, in place of each star.
        let sample = theirs.as_str().replace('*', "\u{1}");
        let mut samples = vec![sample.clone()];
        if let Some((server, _)) = server_in(theirs)
            && let Some((_, rest)) = sample.split_once(server)
        {
            let bare = rest.trim_start_matches("__").trim_start_matches([':', '.']);
            samples.extend([bare.to_owned(), format!("{server}__{bare}")]);
        }
        samples.extend(other.server.map(|server| format!("{server}__{sample}")));
        samples.iter().any(|sample| mine.is_match(sample))
    }
}

// === impl Servers ===

impl Servers<'_> {
    /// True if a name, or a glob without stars, matches one of the servers.
    fn have(&self, name: &str) -> bool {
        let glob = Glob::parse(name);
        let means = |known: &&str| glob.as_ref().is_ok_and(|glob| glob.is_match(known));
        self.0.iter().flatten().any(means)
    }

    fn near(&self, name: &str) -> Option<&str> {
        nearest(name, self.0.iter().flatten().copied())
    }
}

/// The server that a pattern names, if any, and true if no other reading is possible.
///
/// A star may match any part of a name, including the separator.
fn server_in(glob: &Glob) -> Option<(&str, bool)> {
    let text = glob.as_str();
    let text = text.strip_prefix("mcp__").unwrap_or(text);
    let (at, separator) = SEPARATORS
        .iter()
        .filter_map(|separator| Some((text.find(separator)?, *separator)))
        .min_by_key(|(at, separator)| (*separator != "__", *at))?;
    let server = text.get(..at)?;
    let rest = text.get(at + separator.len()..)?;
    // The scheme of a resource address, as in `file://`, is not a server.
    let plain = !server.is_empty() && !server.contains('*') && !rest.starts_with("//");
    // Tools may have dots and colons in their own names.
    plain.then_some((server, separator == "__"))
}

fn help_for(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`capstan list` shows all servers".to_owned(),
    }
}

/// Every grant of a table, with its path.
fn grants(table: &capstan_policy::AccessTable) -> Vec<(String, &Grant)> {
    let of_roles = table.roles.iter().map(|(name, list)| (format!("access.roles.{name}"), list));
    let of_subjects = table.subjects.iter();
    let of_subjects =
        of_subjects.map(|(name, it)| (format!("access.subjects.{name}.extra"), &it.extra));
    let lists = of_roles.chain(of_subjects);
    lists
        .flat_map(|(path, list)| {
            let numbered = list.iter().enumerate();
            numbered.map(move |(at, grant)| (format!("{path}[{at}]"), grant))
        })
        .collect()
}

/// Reports patterns of a grant that match nothing.
///
/// Its lists contain bare names, or ids that begin with their server; a pattern with a star before
/// `__` is neither.
fn unnamed(known: &Servers<'_>, place: &FilePosition, path: &str, grant: &Grant) -> Vec<Problem> {
    let begins = |text: &str| {
        let text = text.strip_prefix("mcp__").unwrap_or(text);
        let server = text.split_once("__").map(|(server, _)| server);
        server.is_none_or(|server| !server.contains('*') || known.0.is_empty())
    };
    let lists = [("tools", &grant.tools), ("prompts", &grant.prompts)];
    let all = lists.into_iter().flat_map(|(key, list)| {
        let globs = list.iter().flatten().map(Glob::as_str);
        globs.filter(|text| !begins(text)).map(move |text| (key, text))
    });
    let complaint = |(key, text): (&str, &str)| {
        let path = format!("{path}.{key}");
        let message = format!(
            "`{text}` in `{path}` matches nothing: grants name servers under `server`, not in patterns"
        );
        let bare = text.split_once("__").map_or(text, |(_, bare)| bare);
        let (place, key) = (Some(place.clone()), Some(path));
        Problem { place, key, ..Problem::warning(message).help(format!("write `{bare}`")) }
    };
    all.map(complaint).collect()
}

fn unserved(known: &Servers<'_>, place: &FilePosition, path: &str, grant: &Grant) -> Vec<Problem> {
    let unknown = grant.servers.iter().filter(|glob| {
        let meant = known.0.iter().flatten().any(|name| glob.is_match(name));
        !known.0.is_empty() && !meant
    });
    let complaint = |glob: &Glob| {
        let message =
            format!("`{path}` names the server `{}`, which does not exist", glob.as_str());
        let (place, key) = (Some(place.clone()), Some(path.to_owned()));
        Problem {
            place,
            key,
            ..Problem::warning(message).help(help_for(known.near(glob.as_str())))
        }
    };
    unknown.map(complaint).collect()
}

//! `capstan policy replay`: finds past calls that would be decided differently. Starts nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_app::hub_settings::policy;
use capstan_app::{AppError, AuditQuery, AuditRow, Setup};
use capstan_config::Rules;
use capstan_hub::replay::{Judged, NoPast, Past, Reason};
use capstan_model::{Kind, Ruling, Verdict};
use capstan_text::clean::one_line;
use serde::Serialize;
use serde_json::Value;

use crate::args::PolicyReplayArgs;
use crate::commands::audit::moment;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::counted;

/// The result, as `--json` prints it.
#[derive(Default, Serialize)]
struct Report {
    /// Number of calls that were evaluated.
    calls: usize,
    /// Number of calls with the same verdict.
    same: usize,
    /// Number of calls with the same verdict from another rule.
    same_by_other_rule: usize,
    /// Calls with a different verdict.
    changed: Vec<Change>,
    /// Calls that cannot be evaluated.
    unjudged: Unjudged,
    /// Number of calls that ended before the rules were evaluated.
    undecided: usize,
}

#[derive(Default, Serialize)]
struct Unjudged {
    /// A rule depends on arguments that were not kept: number of calls by rule.
    arguments: BTreeMap<String, usize>,
    /// A rule about flows decided by what the conversation had read: number of calls by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    conversation: BTreeMap<String, usize>,
    /// The server is no longer configured: number of calls by server.
    no_server: BTreeMap<String, usize>,
    /// Number of entries with words that this version does not support.
    unreadable: usize,
}

/// A call that would be decided differently.
#[derive(Serialize)]
struct Change {
    seq: Value,
    time: Value,
    caller: String,
    front: &'static str,
    kind: Kind,
    item: String,
    was: Decided,
    now: Decided,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Decided {
    verdict: Verdict,
    rule: String,
}

/// Calls with the same change, shown to people as one row.
type Alike<'a> = (&'a str, &'a str, &'a str, &'a Decided, &'a Decided);

pub(super) fn run(context: &Context, args: &PolicyReplayArgs) -> Result<Exit, AppError> {
    let since = moment(&args.since)?;
    let mut rules = if args.alone { context.setup_alone()? } else { context.setup()? };
    // The location of the log does not depend on the rules that are tested.
    let log =
        if args.alone { context.app.configs.load(&context.selection)? } else { rules.clone() };
    if args.alone {
        lend_servers(&mut rules, &log);
    }
    let policy = policy(&rules.loaded.config)?;
    let now = context.app.configs.now();
    let query = AuditQuery { since: Some(since), limit: args.limit, ..AuditQuery::default() };
    let rows = context.app.audit.query(&log, &query)?;
    let mut report = Report::default();
    for row in &rows {
        match Past::read(row) {
            Ok(past) => report.add(row, &past, past.judge(&policy, now)),
            Err(NoPast::Break) => {}
            Err(NoPast::Undecided) => {
                report.calls += 1;
                report.undecided += 1;
            }
            Err(NoPast::Unreadable) => {
                report.calls += 1;
                report.unjudged.unreadable += 1;
            }
        }
    }
    if context.print.wants_json() {
        context.print.json(&report);
    } else {
        show(context, &report);
    }
    if rows.len() >= args.limit {
        context
            .print
            .note(&format!("only the newest {} calls; raise `--limit` for more", args.limit));
    }
    if !context.selection.config.is_empty() && !args.alone {
        context.print.note("the rules of your own files apply too; `--alone` leaves them out");
    }
    Ok(Exit::Ok)
}

/// Adds the servers that a file of rules does not have, without their own rules, so that past calls
/// to them can be evaluated.
fn lend_servers(rules: &mut Setup, log: &Setup) {
    let known = &mut Arc::make_mut(&mut rules.loaded).config.servers;
    for (name, entry) in &log.loaded.config.servers {
        if !known.contains_key(name) {
            let mut entry = entry.clone();
            if let Ok(server) = &mut entry.status {
                server.permissions = Rules::default();
            }
            known.insert(name.clone(), entry);
        }
    }
}

fn show(context: &Context, report: &Report) {
    let mut alike: BTreeMap<Alike<'_>, usize> = BTreeMap::new();
    for change in &report.changed {
        let Change { caller, front, item, was, now, .. } = change;
        *alike.entry((item, caller, front, was, now)).or_default() += 1;
    }
    if !alike.is_empty() {
        let cells: Vec<Vec<String>> = alike
            .iter()
            .map(|((item, caller, front, was, now), count)| {
                let words = [*item, *caller, *front].map(ToOwned::to_owned);
                let count = count.to_string();
                [&words[..], &[count, was.to_string(), now.to_string()]].concat()
            })
            .collect();
        let headers = ["ITEM", "CALLER", "FRONT", "CALLS", "WAS", "NOW"];
        context.print.table(&headers, &cells);
    }
    let other = match report.same_by_other_rule {
        0 => String::new(),
        count => format!(" ({count} of them by another rule)"),
    };
    let same = report.same + report.same_by_other_rule;
    let (changed, gap) = (report.changed.len(), if alike.is_empty() { "" } else { "\n" });
    context.print.data(&format!("{gap}{changed} decided differently, {same} the same{other}"));
    report.unjudged.tell(context);
    if report.undecided > 0 {
        let calls = counted_calls(report.undecided);
        context.print.note(&format!("{calls} failed before the rules were checked"));
    }
}

fn counted_calls(count: usize) -> String {
    counted(u64::try_from(count).unwrap_or(u64::MAX), "call", "calls")
}

// === impl Report ===

impl Report {
    fn add(&mut self, row: &AuditRow, past: &Past, judged: Judged) {
        self.calls += 1;
        match judged {
            Judged::Same => self.same += 1,
            Judged::SameByOther(_) => self.same_by_other_rule += 1,
            Judged::Changed(ruling) => self.changed.push(Change::new(row, past, ruling)),
            Judged::Unknown(Reason::Arguments { rule }) => {
                *self.unjudged.arguments.entry(rule).or_default() += 1;
            }
            Judged::Unknown(Reason::Conversation { rule }) => {
                let key = rule.split_once(':').map_or(rule.as_str(), |(key, _)| key);
                *self.unjudged.conversation.entry(key.to_owned()).or_default() += 1;
            }
            Judged::Unknown(Reason::NoServer) => {
                let server = past.told.id.server.to_string();
                *self.unjudged.no_server.entry(server).or_default() += 1;
            }
        }
    }
}

// === impl Unjudged ===

impl Unjudged {
    fn tell(&self, context: &Context) {
        for (rule, count) in &self.arguments {
            let (calls, rule) = (counted_calls(*count), one_line(rule, usize::MAX));
            context.print.warning(&format!(
                "{calls} cannot be judged: `{rule}` matches arguments, which were not logged completely"
            ));
        }
        if !self.arguments.is_empty() {
            context.print.hint("`[audit] arguments = \"redacted\"` logs those of future calls");
        }
        for (rule, count) in &self.conversation {
            let calls = counted_calls(*count);
            context.print.warning(&format!(
                "{calls} cannot be judged: `{rule}` depends on what the conversation had read"
            ));
        }
        for (server, count) in &self.no_server {
            let calls = counted_calls(*count);
            context.print.warning(&format!(
                "{calls} cannot be judged: server `{server}` is not configured, or its entry is broken"
            ));
        }
        if self.unreadable > 0 {
            let calls = counted_calls(self.unreadable);
            context
                .print
                .warning(&format!("{calls} cannot be judged: their entries cannot be parsed"));
        }
    }
}

// === impl Change ===

impl Change {
    fn new(row: &AuditRow, past: &Past, ruling: Ruling) -> Self {
        let field = |key: &str| row.get(key).cloned().unwrap_or_default();
        Self {
            seq: field("seq"),
            time: field("time"),
            caller: past.told.caller.subject.clone(),
            front: past.told.caller.front.as_str(),
            kind: past.told.kind,
            item: past.told.id.to_string(),
            was: Decided { verdict: past.verdict, rule: past.rule.clone() },
            now: Decided { verdict: ruling.verdict, rule: ruling.rule },
        }
    }
}

// === impl Decided ===

impl std::fmt::Display for Decided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by `{}`", self.verdict.as_str(), self.rule)
    }
}

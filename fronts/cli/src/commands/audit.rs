//! `capstan audit`: shows the calls, their callers and their outcomes.

use std::time::Duration;

use capstan_app::{AppError, AuditMark, AuditQuery, AuditRow, AuditWhole, Errors, Setup};
use capstan_text::clean::one_line;
use jiff::Timestamp;
use serde_json::Value;

use crate::args::{AuditArgs, AuditKind};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::counted;

use super::audit_csv as csv;

/// Interval at which the log is read when it is followed.
const POLL: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &Context, args: &AuditArgs) -> Result<Exit, AppError> {
    let setup = context.setup_untold()?;
    // Problems of servers do not concern the log.
    context.tell_problems(&setup, |problem| problem.server.is_none());
    let show = match (args.csv, context.print.wants_json()) {
        (true, true) => return Err(AppError::usage("`--csv` and `--json` exclude each other")),
        (true, false) => Show::Csv,
        (false, true) => Show::Json,
        (false, false) => Show::Table,
    };
    if args.verify {
        let whole = context.app.audit.verify(&setup)?;
        context.print.note(&in_words(&whole));
        if context.print.wants_json() {
            let AuditWhole { first, entries, breaks, unclosed } = whole;
            let whole = serde_json::json!({
                "entries": entries, "whole": true, "first": first, "breaks": breaks,
                "unclosed": unclosed,
            });
            context.print.json(&whole);
        }
        return Ok(Exit::Ok);
    }
    let query = query(args)?;
    if show == Show::Csv {
        context.print.raw(csv::header().as_bytes());
    }
    if args.follow {
        return follow(context, &setup, &query, show).await;
    }
    let rows = context.app.audit.query(&setup, &query)?;
    match show {
        Show::Json => context.print.json(&rows),
        Show::Csv => rows.iter().for_each(|row| context.print.raw(csv::line(row).as_bytes())),
        Show::Table if rows.is_empty() && is_narrow(&query) => {
            context.print.note("no call in the log matches");
        }
        Show::Table if rows.is_empty() => context.print.note("no calls so far"),
        Show::Table => {
            let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
            context.print.table(&HEADERS, &cells);
        }
    }
    Ok(Exit::Ok)
}

const HEADERS: [&str; 7] = ["TIME", "CALLER", "FRONT", "ITEM", "VERDICT", "RESULT", "MS"];

/// The output format of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    Table,
    Json,
    Csv,
}

async fn follow(
    context: &Context,
    setup: &Setup,
    query: &AuditQuery,
    show: Show,
) -> Result<Exit, AppError> {
    let mut mark = AuditMark::default();
    loop {
        for row in context.app.audit.follow(setup, &mut mark)? {
            if !fits(&row, query) {
                continue;
            }
            match show {
                Show::Json => context.print.exactly(&Value::Object(row).to_string()),
                Show::Csv => context.print.raw(csv::line(&row).as_bytes()),
                Show::Table => {
                    let cells = cells(&row);
                    let cells = cells.iter().map(|cell| one_line(cell, usize::MAX));
                    context.print.data(&cells.collect::<Vec<_>>().join("  "));
                }
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// True if the query has a filter.
fn is_narrow(query: &AuditQuery) -> bool {
    let all = AuditQuery { limit: query.limit, ..AuditQuery::default() };
    *query != all
}

fn fits(row: &AuditRow, query: &AuditQuery) -> bool {
    let is = |key: &str, wanted: Option<&str>| wanted.is_none_or(|wanted| text(row, key) == wanted);
    let failed = text(row, "outcome") != "answered";
    is("server", query.server.as_deref())
        && is("item", query.item.as_deref())
        && is("caller", query.caller.as_deref())
        && match query.front.as_deref() {
            // Matches the log's own definition: gateway callers that are not bound by access rules.
            Some("stdio") => {
                text(row, "front") == "gateway" && row.get("bound") != Some(&Value::Bool(true))
            }
            front => is("front", front),
        }
        && is("kind", query.kind)
        && (query.errors == Errors::All || failed)
}

fn in_words(whole: &AuditWhole) -> String {
    let AuditWhole { first, entries, breaks, unclosed } = *whole;
    let counted = counted(entries, "entry", "entries");
    let dropped = match first {
        0 | 1 => String::new(),
        first => format!("; starts at entry {first}, older ones removed by retention"),
    };
    let told = match breaks {
        0 => String::new(),
        1 => "; 1 of them reports a crash or lost entries".to_owned(),
        many => format!("; {many} of them report a crash or lost entries"),
    };
    let killed = match unclosed {
        0 => String::new(),
        1 => "; 1 process ended without closing the log, and its last entries may be missing"
            .to_owned(),
        many => format!(
            "; {many} processes ended without closing the log, and their last entries may be missing"
        ),
    };
    format!("{counted}, none changed, removed or reordered{dropped}{told}{killed}")
}

/// A time without its fraction, which no reader of a table needs: `2026-11-18 12:09:33Z`.
fn short_time(time: &str) -> String {
    let (whole, _) = time.split_once('.').unwrap_or((time.trim_end_matches('Z'), ""));
    format!("{}Z", whole.replacen('T', " ", 1))
}

fn cells(row: &AuditRow) -> Vec<String> {
    let server = text(row, "server");
    let item = match server.as_str() {
        "" => text(row, "item"),
        server => format!("{server}__{}", text(row, "item")),
    };
    let result = match text(row, "code").as_str() {
        "" => text(row, "outcome"),
        code => code.to_owned(),
    };
    let verdict = match text(row, "approval").as_str() {
        "" => text(row, "verdict"),
        ground => format!("{} ({ground})", text(row, "verdict")),
    };
    vec![
        short_time(&text(row, "time")),
        text(row, "caller"),
        text(row, "front"),
        item,
        verdict,
        result,
        text(row, "duration_ms"),
    ]
}

pub(super) fn text(row: &AuditRow, key: &str) -> String {
    match row.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn query(args: &AuditArgs) -> Result<AuditQuery, AppError> {
    let (server, item) = match &args.tool {
        Some(tool) => match tool.split_once("__").or_else(|| tool.split_once(':')) {
            Some((server, item)) => (Some(server.to_owned()), Some(item.to_owned())),
            None => (None, Some(tool.clone())),
        },
        None => (None, None),
    };
    Ok(AuditQuery {
        server: args.server.clone().or(server),
        item,
        caller: args.caller.clone(),
        front: args.front.clone(),
        kind: args.kind.map(AuditKind::as_str),
        errors: if args.errors { Errors::Only } else { Errors::All },
        since: args.since.as_deref().map(moment).transpose()?,
        until: args.until.as_deref().map(moment).transpose()?,
        limit: args.limit,
    })
}

/// Parses a point in time: a duration ago (`2h`), or a timestamp.
pub(super) fn moment(text: &str) -> Result<Timestamp, AppError> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let bad = || {
        AppError::usage(format!("`{text}` is neither a duration nor a time"))
            .hint("write `2h`, `7d` or `2026-11-15T08:00:00Z`")
    };
    let ago = humantime::parse_duration(text).map_err(|_| bad())?;
    let now = Timestamp::try_from(std::time::SystemTime::now()).map_err(|_| bad())?;
    now.checked_sub(ago).map_err(|_| bad())
}

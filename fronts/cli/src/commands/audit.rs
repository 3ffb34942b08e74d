//! `capstan audit`: what was called, by whom, and what became of it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::args::AuditArgs;
use crate::clean::one_line;
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::host::{AuditMark, AuditQuery, AuditRow, Errors, Setup};
use crate::print::{counted, width};
use crate::table::table;

/// How often the log is looked at when it is followed.
const POLL: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &Context, args: &AuditArgs) -> Result<Exit, Failure> {
    let setup = context.setup()?;
    if args.verify {
        let entries = context.host.verify_audit(&setup)?;
        let counted = counted(entries, "entry", "entries");
        context.print.note(&format!("{counted}, none changed, removed or reordered"));
        if context.print.wants_json() {
            context.print.json(&serde_json::json!({ "entries": entries, "whole": true }));
        }
        return Ok(Exit::Ok);
    }
    let query = query(args)?;
    if args.follow {
        return follow(context, &setup, &query).await;
    }
    let rows = context.host.audit(&setup, &query)?;
    if context.print.wants_json() {
        context.print.json(&rows);
    } else if rows.is_empty() {
        context.print.note("no calls so far");
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        context.print.data(&table(&HEADERS, &cells, width()));
    }
    Ok(Exit::Ok)
}

const HEADERS: [&str; 7] = ["TIME", "CALLER", "FRONT", "ITEM", "VERDICT", "RESULT", "MS"];

async fn follow(context: &Context, setup: &Setup, query: &AuditQuery) -> Result<Exit, Failure> {
    let mut mark = AuditMark::default();
    loop {
        for row in context.host.audit_since(setup, &mut mark)? {
            if !fits(&row, query) {
                continue;
            }
            if context.print.wants_json() {
                context.print.exactly(&Value::Object(row).to_string());
            } else {
                let cells = cells(&row);
                let cells = cells.iter().map(|cell| one_line(cell, usize::MAX));
                context.print.data(&cells.collect::<Vec<_>>().join("  "));
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

fn fits(row: &AuditRow, query: &AuditQuery) -> bool {
    let is = |key: &str, wanted: &Option<String>| {
        wanted.as_ref().is_none_or(|wanted| text(row, key) == *wanted)
    };
    let failed = text(row, "outcome") != "answered";
    is("server", &query.server)
        && is("item", &query.item)
        && is("caller", &query.caller)
        && (query.errors == Errors::All || failed)
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
    vec![
        text(row, "time"),
        text(row, "caller"),
        text(row, "front"),
        item,
        text(row, "verdict"),
        result,
        text(row, "duration_ms"),
    ]
}

fn text(row: &AuditRow, key: &str) -> String {
    match row.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn query(args: &AuditArgs) -> Result<AuditQuery, Failure> {
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
        errors: if args.errors { Errors::Only } else { Errors::All },
        since: args.since.as_deref().map(since).transpose()?,
        limit: args.limit,
    })
}

/// A moment: `2h` ago, or a time.
pub(super) fn since(text: &str) -> Result<Timestamp, Failure> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let bad = || {
        Failure::usage(format!("`{text}` is neither a duration nor a time"))
            .hint("write `2h`, `7d` or `2026-11-15T08:00:00Z`")
    };
    let ago = humantime::parse_duration(text).map_err(|_| bad())?;
    let now = Timestamp::try_from(std::time::SystemTime::now()).map_err(|_| bad())?;
    now.checked_sub(ago).map_err(|_| bad())
}

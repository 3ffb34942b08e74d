//! `capstan list`: lists the servers with their states.

use capstan_app::api::{ListServers, ServerRow, configured_servers};
use capstan_app::{AppError, ErrorKind};

use super::{age, tell_saved};
use crate::args::ReadingArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;
use crate::print::counted;

pub(crate) async fn run(context: &Context, args: &ReadingArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "waiting for the servers");
    let list = ListServers { reading: context.reading(args) };
    let listed = match context.run(list, person).await {
        Err(error) if error.kind == ErrorKind::Config => return Err(despite(context, error)),
        listed => listed?,
    };
    if context.print.wants_json() {
        context.print.json(&listed.rows);
    } else if let Some(none) = listed.none {
        context.say_no_servers(none);
    } else {
        show(context, &listed.rows);
        tell_saved(&context.print, listed.rows.iter().filter_map(|row| row.provenance.seen));
    }
    if let Some(trouble) = &listed.trouble {
        context.print.warning(&format!("the gateway does not use the current files: {trouble}"));
    }
    Ok(context.exit_without(listed.required.as_ref()))
}

/// Shows the servers of the files that can be read although the configuration has errors; nothing
/// is started.
fn despite(context: &Context, error: AppError) -> AppError {
    let Ok(setup) = context.app.configs.load(&context.selection) else { return error };
    let rows = configured_servers(&setup);
    if !context.print.wants_json() && !rows.is_empty() {
        show(context, &rows);
    }
    error
}

/// Formats a time in the largest unit that divides it.
fn time(seconds: u64) -> String {
    match seconds {
        0 => "0s".to_owned(),
        whole if whole.is_multiple_of(3600) => format!("{}h", whole / 3600),
        whole if whole.is_multiple_of(60) => format!("{}m", whole / 60),
        other => format!("{other}s"),
    }
}

/// The state of a server, with the age of its lists if they are saved ones.
fn state(row: &ServerRow) -> String {
    match row.provenance.seen {
        Some(seen) => format!("{}, {} ago", row.state.as_str(), age(seen)),
        None => row.state.as_str().to_owned(),
    }
}

fn show(context: &Context, rows: &[ServerRow]) {
    let number = |count: Option<usize>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                format!("{} {}", row.state.glyph().as_str(), row.shown_name()),
                state(row),
                number(row.tools),
                number(row.tokens),
                row.calls_per_hour.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
                row.stops_after.map_or_else(|| "-".to_owned(), time),
                row.scope.clone(),
                row.target.clone(),
            ]
        })
        .collect();
    let headers = ["SERVER", "STATE", "TOOLS", "TOKENS", "CALLS/H", "STOPS", "SCOPE", "TARGET"];
    context.print.table(&headers, &cells);
    for row in rows {
        if let Some(error) = &row.error {
            let (glyph, name) = (row.state.glyph().as_str(), row.shown_name());
            context.print.note(&format!("{glyph} {name}: {error}"));
        }
        if let Some(hidden) = row.hidden {
            let tools = counted(hidden, "tool", "tools");
            context.print.note(&format!("`{}` hides {tools} from you", row.shown_name()));
        }
        if let Some(advice) = &row.advice {
            context.print.hint(&format!("`{}`: {advice}", row.name));
        }
    }
}

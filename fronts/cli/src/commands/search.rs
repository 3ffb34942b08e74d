//! `capstan search`: finds tools by what they do.

use capstan_app::AppError;
use capstan_app::api::{FoundRow, FoundTools, SearchTools};
use capstan_model::ServerName;
use jiff::Timestamp;

use super::{tell_missing, tell_saved};
use crate::args::SearchArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

pub(crate) async fn run(context: &Context, args: &SearchArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "searching");
    let search = SearchTools {
        queries: queries(&args.words),
        limit: args.limit,
        server: args.server.clone(),
        reading: context.reading(&args.reading),
    };
    let found = context.run(search, person).await?;
    if context.print.wants_json() {
        context.print.json(&found.tools);
    } else {
        show(context, &found);
    }
    tell_saved(&context.print, seen(&found.tools));
    tell_missing(&context.print, &found.missing);
    if let Some(none) = found.none {
        context.say_no_servers(none);
    }
    Ok(Exit::Ok)
}

/// Words are one query; arguments with spaces are one query each.
fn queries(words: &[String]) -> Vec<String> {
    if words.iter().any(|word| word.trim().contains(char::is_whitespace)) {
        words.to_vec()
    } else {
        vec![words.join(" ")]
    }
}

fn show(context: &Context, found: &FoundTools) {
    let cells: Vec<Vec<String>> = found.tools.iter().map(cells).collect();
    if !cells.is_empty() {
        context.print.table(&["TOOL", "SCORE", "DESCRIPTION"], &cells);
    } else if found.searched > 0 {
        context.print.note(&format!("none of {} tools fits", found.searched));
        context.print.hint("use other words, or lower `search.min_similarity`");
    }
    if found.pending > 0 && found.searched > 0 {
        let (pending, searched) = (found.pending, found.searched);
        context.print.note(&format!(
            "{pending} of {searched} tools were searched by their words only; the next search knows more of them"
        ));
    }
}

fn cells(tool: &FoundRow) -> Vec<String> {
    let first = tool.description.lines().next().unwrap_or_default();
    let description = match tool.alternatives.as_slice() {
        [] => first.to_owned(),
        others => format!("{first} (also {})", others.join(", ")),
    };
    vec![tool.id.clone(), format!("{:.2}", tool.score), description]
}

/// The times at which the servers of saved tools were last seen.
fn seen(tools: &[FoundRow]) -> impl Iterator<Item = Timestamp> {
    let mut times: Vec<(&ServerName, Timestamp)> =
        tools.iter().filter_map(|tool| Some((&tool.server, tool.provenance.seen?))).collect();
    times.sort();
    times.dedup();
    times.into_iter().map(|(_, time)| time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_query_and_arguments_with_spaces_one_each() {
        let of =
            |words: &[&str]| queries(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&["read", "a", "file"]), ["read a file"]);
        assert_eq!(of(&["read a file", "time"]), ["read a file", "time"]);
        assert_eq!(of(&["time"]), ["time"]);
    }
}

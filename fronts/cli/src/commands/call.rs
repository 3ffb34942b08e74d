//! `capstan call`: runs one tool.

use std::io::{self, Read};
use std::sync::Mutex;

use capstan_app::AppError;
use capstan_app::api::CallTool;
use capstan_model::Kind;
use capstan_text::answer;
use capstan_text::arguments::{self, ArgumentError};
use capstan_text::form::Elicit;
use capstan_text::screen::has_person;
use capstan_wire::Json;

use crate::args::{AskArgs, CallArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::{Confirm, Manner, Person, Typed};

pub(crate) async fn run(context: &Context, args: &CallArgs) -> Result<Exit, AppError> {
    let manner = manner(args.elicit.as_deref(), args.ask)?;
    let stdin = read_stdin(&args.arguments).await;
    let typed = Typed::Arguments(args.arguments.clone(), Mutex::new(Some(stdin)));
    let message = format!("calling `{}`", args.tool);
    let person = Person::new(&context.print, manner, typed, &message);
    let called = context.run(CallTool { name: args.tool.clone() }, person).await?;
    if context.print.wants_json() {
        context.print.bytes(called.result.as_bytes());
    } else {
        context.print.data(&answer::text(Kind::Tool, &called.result));
    }
    if called.is_error {
        context.print.error(&format!("`{}` reported an error", called.id));
        return Ok(Exit::ToolError);
    }
    Ok(Exit::Ok)
}

/// Parses the arguments for a tool without looking up its schema.
pub(super) async fn read_arguments(words: &[String], tool: &str) -> Result<Json, AppError> {
    let anything = Json::empty_object();
    let stdin = read_stdin(words).await;
    arguments::build(words, || stdin, &anything).map_err(|error| bad_arguments(tool, &error))
}

fn bad_arguments(tool: &str, error: &ArgumentError) -> AppError {
    let usual = || format!("`capstan tools {tool}` shows its arguments");
    AppError::usage(format!("invalid arguments for `{tool}`: {error}"))
        .hint(error.hint().unwrap_or_else(usual))
}

/// The way in which the person who typed the command is asked.
pub(super) fn manner(choice: Option<&str>, ask: AskArgs) -> Result<Manner, AppError> {
    Ok(Manner { elicit: elicit(choice)?, confirm: Confirm::of(ask) })
}

/// The way in which questions of the server are answered: by a person if there is one, else
/// declined.
fn elicit(choice: Option<&str>) -> Result<Elicit, AppError> {
    let person = has_person();
    match choice {
        None | Some("ask") if person => Ok(Elicit::Ask),
        None | Some("decline") => Ok(Elicit::Decline),
        Some("defaults") => Ok(Elicit::Defaults),
        Some("ask") => Err(AppError::usage("`--elicit ask` needs a terminal")),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| AppError::usage(format!("cannot read `{path}`: {error}")))?;
            let values = Json::parse(text)
                .map_err(|_| AppError::usage(format!("`{path}` is not valid JSON")))?;
            Ok(Elicit::File(values))
        }
    }
}

/// Reads stdin to its end, if a word refers to it.
///
/// It runs before anything is started and in its own thread, so that signals are handled and no
/// server waits.
async fn read_stdin(words: &[String]) -> io::Result<String> {
    if !words.iter().any(|word| word == "-") {
        return Ok(String::new());
    }
    let read = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        // One byte more than allowed, so that input that is too large is detected.
        let limit = u64::try_from(arguments::MAX_STDIN).unwrap_or(u64::MAX).saturating_add(1);
        io::stdin().take(limit).read_to_string(&mut text).map(|_| text)
    });
    read.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

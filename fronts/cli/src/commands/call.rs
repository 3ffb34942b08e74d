//! `capstan call`: runs one tool.

use std::io::Read;
use std::sync::Arc;

use capstan_hub::Call;
use capstan_model::{Caller, Front, Kind, Target};
use capstan_wire::Json;

use super::tools::find_tool;
use crate::answer;
use crate::args::CallArgs;
use crate::arguments::{self, ArgumentError};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::form::Elicit;
use crate::operator::Person;
use crate::print::{stderr_is_terminal, stdin_is_terminal};
use crate::waiting::Waiting;

pub(crate) async fn run(context: &Context, args: &CallArgs) -> Result<Exit, Failure> {
    let elicit = elicit(args)?;
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let tool = find_tool(context, hub, &args.tool).await?;
    let arguments = read_arguments(&args.arguments, &tool.input_schema(), &args.tool)?;

    let caller = Caller::operator(Front::Cli);
    let call = Call::new(caller, Target::tool(tool.id.to_string()), Some(&arguments));
    let waiting = Waiting::new(context.print, &format!("calling `{}`", tool.id));
    let person = Arc::new(Person::new(context.print, elicit, waiting));
    let screened = hub.call(&hub.session(), call, person).await?;

    if context.print.wants_json() {
        context.print.bytes(screened.result().as_bytes());
    } else {
        context.print.data(&answer::text(Kind::Tool, screened.result()));
    }
    if screened.is_error() {
        context.print.error(&format!("`{}` says that it failed", tool.id));
        return Ok(Exit::ToolError);
    }
    Ok(Exit::Ok)
}

/// The arguments that were typed, by the tool's schema.
pub(super) fn read_arguments(words: &[String], schema: &Json, tool: &str) -> Result<Json, Failure> {
    arguments::build(words, read_stdin, schema).map_err(|error: ArgumentError| {
        Failure::usage(format!("invalid arguments for `{tool}`: {error}")).hint(
            error.hint().unwrap_or_else(|| format!("`capstan tools {tool}` shows what it takes")),
        )
    })
}

fn read_stdin() -> std::io::Result<String> {
    let mut text = String::new();
    // One byte more than is allowed, so that what is too large is seen to be.
    let limit = u64::try_from(arguments::MAX_STDIN).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().take(limit).read_to_string(&mut text)?;
    Ok(text)
}

/// How questions of the server are answered: by a person if there is one, else no.
fn elicit(args: &CallArgs) -> Result<Elicit, Failure> {
    let person = stdin_is_terminal() && stderr_is_terminal();
    match args.elicit.as_deref() {
        None | Some("ask") if person => Ok(Elicit::Ask),
        None | Some("decline") => Ok(Elicit::Decline),
        Some("defaults") => Ok(Elicit::Defaults),
        Some("ask") => Err(Failure::usage("`--elicit ask` needs a terminal")),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read `{path}`: {error}")))?;
            let values = Json::parse(text)
                .map_err(|_| Failure::usage(format!("`{path}` is not valid JSON")))?;
            Ok(Elicit::File(values))
        }
    }
}

//! `capstan call`: runs one tool.

use std::io::Read;
use std::sync::Arc;

use capstan_hub::Call;
use capstan_model::{CallError, Caller, Front, Kind, Target};
use capstan_wire::Json;

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
    let elicit = elicit(args.elicit.as_deref())?;
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let caller = Caller::operator(Front::Cli);
    let asked = Call::new(caller.clone(), Target::tool(&args.tool), None);
    let waiting = Waiting::new(context.print, &format!("starting the server of `{}`", args.tool));
    let tool = hub.find_tool(&caller, &args.tool).await;
    let tool = tool.map_err(|error| hub.refuse(&asked, error))?;
    let arguments = arguments::build(&args.arguments, read_stdin, &tool.input_schema());
    let arguments = arguments.map_err(|error| {
        let failure = bad_arguments(&args.tool, &error);
        let (item, problem) = (args.tool.clone(), error.to_string());
        drop(hub.refuse(&asked, CallError::InvalidArguments { item, problem }));
        failure
    })?;

    waiting.say(&format!("calling `{}`", tool.id));
    let call = Call::new(caller, Target::tool(tool.id.to_string()), Some(&arguments));
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

/// The arguments that were typed, for a tool that is not looked up.
pub(super) fn read_arguments(words: &[String], tool: &str) -> Result<Json, Failure> {
    let anything = Json::empty_object();
    arguments::build(words, read_stdin, &anything).map_err(|error| bad_arguments(tool, &error))
}

fn bad_arguments(tool: &str, error: &ArgumentError) -> Failure {
    let usual = || format!("`capstan tools {tool}` shows what it takes");
    Failure::usage(format!("invalid arguments for `{tool}`: {error}"))
        .hint(error.hint().unwrap_or_else(usual))
}

fn read_stdin() -> std::io::Result<String> {
    let mut text = String::new();
    // One byte more than is allowed, so that what is too large is seen to be.
    let limit = u64::try_from(arguments::MAX_STDIN).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().take(limit).read_to_string(&mut text)?;
    Ok(text)
}

/// How questions of the server are answered: by a person if there is one, else no.
pub(super) fn elicit(choice: Option<&str>) -> Result<Elicit, Failure> {
    let person = stdin_is_terminal() && stderr_is_terminal();
    match choice {
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

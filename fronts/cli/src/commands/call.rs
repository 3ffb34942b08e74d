//! `capstan call`: runs one tool.

use std::io::{self, Read};
use std::sync::{Arc, PoisonError};

use capstan_app::{AppError, Setup};
use capstan_hub::Call;
use capstan_model::{CallError, Caller, Front, Kind, ServerName, Target};
use capstan_text::answer;
use capstan_text::arguments::{self, ArgumentError};
use capstan_text::form::Elicit;
use capstan_wire::Json;

use crate::args::{AskArgs, CallArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::operator::{Confirm, Manner, Person};
use crate::print::Printer;
use crate::waiting::Waiting;

/// What came on stdin, if the words ask for it.
pub(super) struct Stdin(pub(super) io::Result<String>);

pub(crate) async fn run(context: &Context, args: &CallArgs) -> Result<Exit, AppError> {
    let manner = manner(&context.print, args.elicit.as_deref(), args.ask)?;
    let stdin = Stdin::read(context, &args.arguments).await;
    let setup = context.setup_untold()?;
    context.tell_problems(&setup, |problem| problem.server.is_none());
    let hub = context.hub(&setup)?;
    let caller = Caller::operator(Front::Cli);
    let attempt = hub.begin(&Call::new(caller.clone(), Target::tool(&args.tool), None));
    let waiting = Waiting::new(&context.print, &format!("starting the server of `{}`", args.tool));
    let tool = match hub.find_tool(&caller, &args.tool).await {
        Ok(tool) => tool,
        Err(error) => {
            drop(waiting);
            let named = named(&setup, &args.tool);
            context.tell_problems(&setup, |problem| match (&problem.server, &named) {
                (Some(server), Some(named)) => server == *named,
                // Any of them may be the one that was meant.
                (Some(_), None) => true,
                (None, _) => false,
            });
            return Err(attempt.refuse(error).into());
        }
    };
    context.tell_problems(&setup, |problem| problem.server.as_ref() == Some(&tool.id.server));
    let arguments = match arguments::build(&args.arguments, || stdin.0, &tool.input_schema()) {
        Ok(arguments) => arguments,
        Err(error) => {
            let (item, problem) = (args.tool.clone(), error.to_string());
            drop(attempt.refuse(CallError::InvalidArguments { item, problem }));
            return Err(bad_arguments(&args.tool, &error));
        }
    };

    if let Err(error) = tool.check(&arguments) {
        return Err(attempt.refuse(error).into());
    }

    waiting.say(&format!("calling `{}`", tool.id));
    let call = Call::new(caller, Target::tool(tool.id.to_string()), Some(&arguments));
    let person = Arc::new(Person::new(context.print.clone(), manner, waiting));
    let screened = attempt.call(&hub.session(), call, person).await?;

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

/// The server that the name of a tool begins with.
fn named<'a>(setup: &'a Setup, tool: &str) -> Option<&'a ServerName> {
    let begins = |server: &&ServerName| {
        let rest = tool.strip_prefix(server.as_str());
        rest.is_some_and(|rest| rest.starts_with("__") || rest.starts_with([':', '.']))
    };
    setup.loaded.config.servers.keys().filter(begins).max_by_key(|server| server.as_str().len())
}

/// The arguments that were typed, for a tool that is not looked up.
pub(super) async fn read_arguments(
    context: &Context,
    words: &[String],
    tool: &str,
) -> Result<Json, AppError> {
    let anything = Json::empty_object();
    let stdin = Stdin::read(context, words).await;
    arguments::build(words, || stdin.0, &anything).map_err(|error| bad_arguments(tool, &error))
}

fn bad_arguments(tool: &str, error: &ArgumentError) -> AppError {
    let usual = || format!("`capstan tools {tool}` shows what it takes");
    AppError::usage(format!("invalid arguments for `{tool}`: {error}"))
        .hint(error.hint().unwrap_or_else(usual))
}

/// How whoever typed the command is asked.
pub(super) fn manner(
    print: &Printer,
    choice: Option<&str>,
    ask: AskArgs,
) -> Result<Manner, AppError> {
    Ok(Manner { elicit: elicit(print, choice)?, confirm: Confirm::of(print, ask) })
}

/// How questions of the server are answered: by a person if there is one, else no.
fn elicit(print: &Printer, choice: Option<&str>) -> Result<Elicit, AppError> {
    let person = print.has_person();
    match choice {
        None | Some("ask") if person => Ok(Elicit::Ask),
        None | Some("decline") => Ok(Elicit::Decline),
        Some("defaults") => Ok(Elicit::Defaults),
        Some("ask") => Err(AppError::usage("`--elicit ask` needs a terminal")),
        Some(path) => {
            let text = std::fs::read_to_string(print.file(path.as_ref()))
                .map_err(|error| AppError::usage(format!("cannot read `{path}`: {error}")))?;
            let values = Json::parse(text)
                .map_err(|_| AppError::usage(format!("`{path}` is not valid JSON")))?;
            Ok(Elicit::File(values))
        }
    }
}

// === impl Stdin ===

impl Stdin {
    /// Reads stdin to its end, before anything is started and in a thread of its own: until
    /// whoever writes is done, signals must be heard and no server need wait.
    pub(super) async fn read(context: &Context, words: &[String]) -> Self {
        if !words.iter().any(|word| word == "-") {
            return Self(Ok(String::new()));
        }
        let read = context.stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(read) = read {
            return Self(read);
        }
        let read = tokio::task::spawn_blocking(|| {
            let mut text = String::new();
            // One byte more than is allowed, so that what is too large is seen to be.
            let limit = u64::try_from(arguments::MAX_STDIN).unwrap_or(u64::MAX).saturating_add(1);
            io::stdin().take(limit).read_to_string(&mut text).map(|_| text)
        });
        Self(read.await.unwrap_or_else(|error| Err(io::Error::other(error))))
    }
}

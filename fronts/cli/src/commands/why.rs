//! `capstan why`: explains the decision about a call, and the rule it comes from.

use capstan_app::{AppError, HubPurpose};
use capstan_hub::{Call, EntryPoint, Explanation, Hub};
use capstan_model::name::SEPARATOR;
use capstan_model::{CallError, Caller, Kind, Target, Verdict};
use capstan_text::clean::one_line;
use capstan_wire::Json;
use serde::Serialize;

use super::call::read_arguments;
use super::explained::{self, Decision, STEP_HEADERS};
use crate::args::WhyArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::spinner::Spinner;

/// The verdict, as `--json` prints it.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    decision: Decision<'a>,
    caller: &'a str,
    front: &'static str,
}

pub(crate) async fn run(context: &Context, args: &WhyArgs) -> Result<Exit, AppError> {
    let arguments = read_arguments(&args.arguments, &args.tool).await?;
    let door = args.who.door();
    let caller = door.caller(args.who.caller.as_deref(), args.who.role.clone());
    let setup = context.setup_untold()?;
    let named = args.tool.trim_start_matches('@').split_once(SEPARATOR).map(|(server, _)| server);
    context.tell_problems(&setup, |problem| match (&problem.server, named) {
        (Some(server), Some(named)) => server.as_str() == named,
        // No server is named, so any server with a problem may be the intended one.
        (Some(_), None) | (None, _) => true,
    });
    let hub = context.hub(&setup, HubPurpose::Calls)?;
    explained::tell_unknown_roles(&context.print, &setup, &args.who.role);
    let waiting = Spinner::new(&context.print, "starting the server");
    let explained = explain(hub, &caller, &args.tool, &arguments).await;
    drop(waiting);
    let mut explained = match explained {
        Err(CallError::Unknown { .. }) if setup.server(&args.tool).is_ok() => {
            let server = &args.tool;
            return Err(AppError::usage(format!("`{server}` is a server, not a tool")).hint(
                format!(
                    "`capstan why {server}__TOOL` explains a tool; `capstan tools {server}` lists \
                     them"
                ),
            ));
        }
        explained => explained?,
    };
    if !args.arguments.is_empty() {
        // Arguments were given, so other arguments do not matter.
        explained.by_arguments.clear();
    }
    if context.print.wants_json() {
        let decision = Decision::of(&explained);
        let shown = Shown { decision, caller: &caller.subject, front: door.as_str() };
        context.print.json(&shown);
    } else {
        show(context, &args.tool, &explained);
        tell_what_follows(context, door, &explained);
    }
    let denied = explained.ruling.verdict == Verdict::Deny;
    Ok(if denied { Exit::Denied } else { Exit::Ok })
}

/// Explains the decision about the resource, tool or prompt that was typed.
async fn explain(
    hub: &Hub,
    caller: &Caller,
    typed: &str,
    arguments: &Json,
) -> Result<Explanation, CallError> {
    let call = |target| Call::new(caller.clone(), target, Some(arguments));
    let item = typed.strip_prefix('@').unwrap_or(typed);
    let is_resource = item != typed || hub.id_of(item).is_some_and(|id| id.item.contains("://"));
    if is_resource {
        let call = Call::new(caller.clone(), Target::resource(item), None);
        return hub.explain(call).await;
    }
    match hub.explain(call(Target::tool(item))).await {
        Err(unknown @ CallError::Unknown { .. }) => {
            // A name that is no tool may be a prompt; if it is neither, the error with the nearest
            // tool is more useful.
            hub.explain(call(Target::prompt(item))).await.map_err(|_| unknown)
        }
        result => result,
    }
}

fn show(context: &Context, tool: &str, explained: &Explanation) {
    context.print.table(&STEP_HEADERS, &explained::steps(&explained.steps));
    let verdict = explained.ruling.verdict.as_str();
    let (tool, rule) = (one_line(tool, usize::MAX), one_line(&explained.ruling.rule, usize::MAX));
    context.print.data(&format!("\n{tool}: {verdict} by `{rule}`"));
    explained::tell_by_arguments(&context.print, &explained.by_arguments);
    explained::tell_flows(&context.print, explained.tags, &explained.by_flows);
}

/// Prints what the verdict means for the caller.
fn tell_what_follows(context: &Context, door: EntryPoint, explained: &Explanation) {
    let what = match explained.kind {
        Kind::Tool => "tool",
        Kind::Resource => "resource",
        Kind::Prompt => "prompt",
    };
    match (explained.ruling.verdict, door) {
        (Verdict::Allow, _) | (Verdict::Deny, EntryPoint::Cli | EntryPoint::Terminal) => {}
        (Verdict::Ask, EntryPoint::Cli) => {
            context.print.note("on the command line, entering the call approves it");
        }
        (Verdict::Ask, EntryPoint::Terminal) => context.print.note("you are asked before it runs"),
        (Verdict::Ask, EntryPoint::Gateway | EntryPoint::Stdio) => {
            context
                .print
                .note("it runs if it is approved; it is refused if approval cannot be requested");
        }
        (Verdict::Deny, EntryPoint::Gateway | EntryPoint::Stdio) => {
            context.print.note(&format!("the caller gets the error that there is no such {what}"));
        }
    }
}

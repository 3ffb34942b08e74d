//! `capstan why`: what would be decided about a call, and by which rule.

use capstan_hub::{Call, Hub};
use capstan_model::{CallError, Caller, Front, Ruling, Target, Verdict};
use capstan_policy::Step;
use capstan_wire::Json;
use serde::Serialize;

use super::call::read_arguments;
use crate::args::WhyArgs;
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::print::width;
use crate::table::table;
use crate::waiting::Waiting;

/// The verdict, as `--json` prints it.
#[derive(Serialize)]
struct Explained {
    verdict: Verdict,
    rule: String,
    steps: Vec<Step>,
}

pub(crate) async fn run(context: &Context, args: &WhyArgs) -> Result<Exit, Failure> {
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let arguments = read_arguments(&args.arguments, &args.tool)?;
    let waiting = Waiting::new(context.print, "starting the server");
    let (ruling, steps) = explain(hub, &args.tool, &arguments).await?;
    drop(waiting);
    let verdict = ruling.verdict;
    let explained = Explained { verdict, rule: ruling.rule, steps };
    if context.print.wants_json() {
        context.print.json(&explained);
    } else {
        show(context, &args.tool, &explained);
    }
    Ok(if verdict == Verdict::Deny { Exit::Denied } else { Exit::Ok })
}

/// What is decided about the resource, tool or prompt that was typed.
async fn explain(
    hub: &Hub,
    typed: &str,
    arguments: &Json,
) -> Result<(Ruling, Vec<Step>), CallError> {
    let call = |target| Call::new(Caller::operator(Front::Cli), target, Some(arguments));
    let item = typed.strip_prefix('@').unwrap_or(typed);
    let is_resource = item != typed || hub.id_of(item).is_some_and(|id| id.item.contains("://"));
    if is_resource {
        let call = Call::new(Caller::operator(Front::Cli), Target::resource(item), None);
        return hub.explain(call).await;
    }
    match hub.explain(call(Target::tool(item))).await {
        Err(unknown @ CallError::Unknown { .. }) => {
            // What is no tool may be a prompt; if not, the nearest tool is the better hint.
            hub.explain(call(Target::prompt(item))).await.map_err(|_| unknown)
        }
        result => result,
    }
}

fn show(context: &Context, tool: &str, explained: &Explained) {
    let cells: Vec<Vec<String>> = explained
        .steps
        .iter()
        .map(|step| {
            let said = step.verdict.map_or("-", Verdict::as_str);
            vec![step.engine.to_owned(), said.to_owned(), step.rule.clone()]
        })
        .collect();
    context.print.data(&table(&["ENGINE", "SAYS", "RULE"], &cells, width()));
    let verdict = explained.verdict.as_str();
    context.print.data(&format!("\n{tool}: {verdict} by `{}`", explained.rule));
    if explained.verdict == Verdict::Ask {
        context.print.note("on the command line, typing the call is the approval");
    }
}

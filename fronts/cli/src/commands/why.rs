//! `capstan why`: what would be decided about a call, and by which rule.

use capstan_hub::Call;
use capstan_model::{Caller, Front, Target, Verdict};
use capstan_policy::Step;
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
    let caller = Caller::operator(Front::Cli);
    let call = Call::new(caller, Target::tool(args.tool.clone()), Some(&arguments));
    let waiting = Waiting::new(context.print, "starting the server");
    let (ruling, steps) = hub.explain(call).await?;
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

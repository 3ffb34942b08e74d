//! `capstan pins`: shows tools that differ from their approved definitions, and approves them.

use std::sync::Arc;

use capstan_app::AppError;
use capstan_app::api::Missing;
use capstan_hub::catalog::Gathered;
use capstan_hub::ports::{Item, Listing, StoreError};
use capstan_hub::{Hub, Review, Standing};
use capstan_model::ServerName;
use capstan_safety::clean::clean;
use capstan_text::clean::one_line;
use capstan_text::panel;
use capstan_text::screen::width;
use capstan_text::table::table;
use serde::Serialize;
use similar::TextDiff;

use super::tell_missing;
use crate::args::PinsArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

/// One tool, as `--json` prints it.
#[derive(Serialize)]
struct Row {
    server: String,
    tool: String,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    now: String,
}

pub(crate) async fn run(context: &Context, args: &PinsArgs) -> Result<Exit, AppError> {
    let local = context.local()?;
    let hub = &*local.hub;
    let person = Person::watching(&context.print, "waiting for the servers");
    local.tell_problems(&person, |_| true);
    let gathered = match &args.server {
        Some(name) => local.gather_one(&person, Listing::Tools, name).await?,
        None => local.gather(&person, Listing::Tools, Context::patience(&args.wait)).await,
    };
    drop(person);
    let mut reviews = Vec::new();
    for (server, items) in &gathered.lists {
        let all = hub.pins().review(server, items).await.map_err(|error| broken(&error))?;
        reviews.extend(all.into_iter().map(|review| (server.clone(), review)));
    }
    refuse_unknown(args, &reviews)?;
    let is_named = |tool: &String| args.tool.is_empty() || args.tool.contains(tool);
    reviews.retain(|(_, review)| {
        is_named(&review.tool) && (args.all || review.standing != Standing::Approved)
    });
    show(context, args, &reviews);
    if args.approve {
        approve(context, hub, &gathered, &reviews).await?;
        if args.server.is_some() {
            return Ok(Exit::Ok);
        }
        if hub.pins().end_loss().await.map_err(|error| broken(&error))? {
            context.print.note(
                "pins had been lost; servers that you add from now on are pinned when \
                 they are first seen",
            );
        }
    }
    tell_missing(&context.print, &Missing::of(hub, &gathered));
    Ok(context.exit_without(local.required(gathered.failed.keys()).as_ref()))
}

fn refuse_unknown(args: &PinsArgs, reviews: &[(ServerName, Review)]) -> Result<(), AppError> {
    let is_there = |tool: &&String| reviews.iter().any(|(_, review)| review.tool == **tool);
    match args.tool.iter().find(|tool| !is_there(tool)) {
        None => Ok(()),
        Some(tool) => {
            let server = args.server.as_deref().unwrap_or_default();
            let failure = AppError::not_found(format!("`{server}` has no tool `{tool}`"));
            Err(failure.hint(format!("`capstan pins {server} --all` shows its tools")))
        }
    }
}

/// Approves the definitions that were shown, not those that the servers have by now.
async fn approve(
    context: &Context,
    hub: &Hub,
    gathered: &Gathered,
    reviews: &[(ServerName, Review)],
) -> Result<(), AppError> {
    for (server, items) in &gathered.lists {
        let of_server = |item: &&Item| {
            reviews.iter().any(|(whose, review)| whose == server && review.tool == item.name)
        };
        let items: &Arc<[Item]> = items;
        let chosen: Vec<&Item> = items.iter().filter(of_server).collect();
        hub.pins().approve(server, chosen).await.map_err(|error| broken(&error))?;
    }
    for (server, review) in reviews {
        let Review { tool, standing, .. } = review;
        match standing {
            Standing::Approved => {}
            Standing::New | Standing::Changed | Standing::Lost => {
                context.print.note(&format!("approved `{server}__{}`", clean(tool)));
            }
            // A command cannot allow a tool that the file does not list.
            Standing::Unexpected => context.print.warning(&format!(
                "`{server}__{}` is not among `expected_tools` and stays refused",
                clean(tool)
            )),
        }
    }
    if reviews.iter().all(|(_, review)| review.standing == Standing::Approved) {
        context.print.note("there was nothing to pin");
    }
    Ok(())
}

fn show(context: &Context, args: &PinsArgs, reviews: &[(ServerName, Review)]) {
    if context.print.wants_json() {
        let rows: Vec<Row> = reviews.iter().map(Row::new).collect();
        context.print.json(&rows);
        return;
    }
    if reviews.is_empty() {
        context.print.note("every tool matches its pin");
        return;
    }
    let cells: Vec<Vec<String>> = reviews.iter().map(cells).collect();
    context.print.data(&table(&["SERVER", "TOOL", "STANDING"], &cells, width()));
    if args.server.is_some() || args.approve {
        for (_, review) in reviews {
            let diff = difference(review);
            if !diff.is_empty() {
                let diff = panel::lines(&diff, usize::MAX).join("\n");
                context.print.data(&format!("\n{}\n{diff}", one_line(&review.tool, usize::MAX)));
            }
        }
    }
    let is_open = reviews.iter().any(|(_, review)| review.standing != Standing::Approved);
    match &args.server {
        _ if args.approve => {}
        Some(server) if is_open => context.print.hint(&format!(
            "`capstan pins {server} --approve` shows and pins the current definitions"
        )),
        Some(_) => {}
        None => context.print.hint("`capstan pins SERVER` shows the changes"),
    }
}

fn cells((server, review): &(ServerName, Review)) -> Vec<String> {
    vec![server.to_string(), review.tool.clone(), review.standing.as_str().to_owned()]
}

/// The differences from the approved definition, line by line.
fn difference(review: &Review) -> String {
    let before = review.before.as_deref().unwrap_or_default();
    TextDiff::from_lines(before, &review.now).unified_diff().context_radius(2).to_string()
}

fn broken(error: &StoreError) -> AppError {
    let cause = error.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    AppError::internal(format!("{error}{cause}"))
}

// === impl Row ===

impl Row {
    fn new((server, review): &(ServerName, Review)) -> Self {
        let Review { tool, standing, before, now } = review.clone();
        Self { server: server.to_string(), tool, standing: standing.as_str(), before, now }
    }
}

//! `capstan pins`: shows tools that differ from their approved definitions, and approves them.

use std::sync::Arc;

use capstan_app::api::{ListDefinitions, Missing, Reading, Source};
use capstan_app::{AppError, HubPurpose};
use capstan_config::Scope;
use capstan_config::edit::add_permission_rule;
use capstan_hub::catalog::Gathered;
use capstan_hub::ports::{Item, StoreError};
use capstan_hub::{Hub, Review, Standing};
use capstan_model::{ServerName, Verdict};
use capstan_safety::clean::clean;
use capstan_text::clean::one_line;
use capstan_text::panel;
use serde::Serialize;
use similar::TextDiff;

use super::tell_missing;
use crate::args::PinsArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;
use crate::print::counted;

/// One tool, or a server whose tools were not checked, as `--json` prints it.
#[derive(Serialize)]
struct Row {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The tools that were checked, and the servers that were not.
struct Checked {
    servers: usize,
    tools: usize,
    /// Number of tools that differ from their pins.
    odd: usize,
    missing: Missing,
}

/// The standing of a server that did not answer.
const UNCHECKED: &str = "unchecked";

pub(crate) async fn run(context: &Context, args: &PinsArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "waiting for the servers");
    // A definition that was saved earlier says nothing about the one that a call meets.
    let reading = Reading { source: Source::Servers, wait: Context::patience(&args.wait) };
    let list = ListDefinitions { server: args.server.clone(), reading };
    let listed = context.run(list, person).await?;
    let gathered = listed.gathered();
    let setup = context.setup_untold()?;
    let hub = context.hub(&setup, HubPurpose::Lists)?;
    let mut reviews = Vec::new();
    for (server, items) in &gathered.lists {
        let all = hub.pins().review(server, items).await.map_err(|error| broken(&error))?;
        reviews.extend(all.into_iter().map(|review| (server.clone(), review)));
    }
    refuse_unknown(args, &reviews)?;
    let checked = Checked {
        servers: gathered.lists.len(),
        tools: reviews.len(),
        odd: reviews.iter().filter(|(_, review)| review.standing != Standing::Approved).count(),
        missing: listed.missing,
    };
    let is_named = |tool: &String| args.tool.is_empty() || args.tool.contains(tool);
    reviews.retain(|(_, review)| {
        is_named(&review.tool) && (args.all || review.standing != Standing::Approved)
    });
    show(context, args, &reviews, &checked);
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
    if args.block {
        block(context, &reviews)?;
    }
    tell_missing(&context.print, &checked.missing);
    let exit = context.exit_without(listed.required.as_ref());
    // A check that left servers out is no check of them.
    let is_incomplete = exit == Exit::Ok && checked.unchecked() > 0;
    Ok(if is_incomplete { Exit::Unreachable } else { exit })
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

/// Denies the tools that were shown, by rules of their servers in the user's own file.
fn block(context: &Context, reviews: &[(ServerName, Review)]) -> Result<(), AppError> {
    let file = context.app.configs.target(Some(Scope::User));
    let odd = reviews.iter().filter(|(_, review)| review.standing != Standing::Approved);
    let mut blocked = 0;
    for (server, Review { tool, .. }) in odd {
        // Global, because the entry of the server may be in another file.
        let pattern = format!("{server}__{tool}");
        let deny = |text: &str| add_permission_rule(text, Verdict::Deny, &pattern, None);
        context.app.configs.edit(&file, &deny)?;
        context.print.note(&format!("denied `{}` in {}", clean(&pattern), file.path.display()));
        blocked += 1;
    }
    if blocked == 0 {
        context.print.note("there was nothing to deny");
    }
    Ok(())
}

fn show(context: &Context, args: &PinsArgs, reviews: &[(ServerName, Review)], checked: &Checked) {
    if context.print.wants_json() {
        let rows = reviews.iter().map(Row::new).chain(checked.missing_rows());
        context.print.json(&rows.collect::<Vec<_>>());
        return;
    }
    if reviews.is_empty() {
        context.print.note(&checked.summary());
        return;
    }
    let cells: Vec<Vec<String>> = reviews.iter().map(cells).collect();
    context.print.table(&["SERVER", "TOOL", "STANDING"], &cells);
    if args.server.is_some() || args.approve {
        for (_, review) in reviews {
            let diff = difference(review);
            if !diff.is_empty() {
                let diff = panel::lines(&diff, usize::MAX).join("\n");
                context.print.data(&format!("\n{}\n{diff}", one_line(&review.tool, usize::MAX)));
            }
        }
    }
    context.print.note(&checked.summary());
    let is_open = reviews.iter().any(|(_, review)| review.standing != Standing::Approved);
    match &args.server {
        _ if args.approve || args.block => {}
        Some(server) if is_open => context.print.hint(&format!(
            "`capstan pins {server} --approve` pins the current definitions, `--block` denies these \
             tools"
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
    AppError::config(format!("{error}{cause}"))
        .hint("`capstan doctor` shows what is wrong with the state folder, and how to repair it")
}

// === impl Checked ===

impl Checked {
    /// Number of servers that were not checked. Disabled servers do not count.
    fn unchecked(&self) -> usize {
        self.missing.failed.len() + self.missing.pending.len()
    }

    /// The number of checked tools and servers, and of tools that differ, in words.
    fn summary(&self) -> String {
        let tools = counted(self.tools, "tool", "tools");
        let servers = counted(self.servers, "server", "servers");
        let found = match self.odd {
            0 => "all match their pins".to_owned(),
            odd => format!("{odd} differ from their pins"),
        };
        match (self.servers, self.unchecked()) {
            (0, 0) => "there are no servers to check".to_owned(),
            (0, _) => "no server was checked".to_owned(),
            (_, 0) => format!("{tools} of {servers} checked: {found}"),
            (_, missing) => {
                format!("{tools} of {servers} checked: {found}; {missing} not checked")
            }
        }
    }

    fn missing_rows(&self) -> impl Iterator<Item = Row> {
        let failed = self.missing.failed.iter().map(|(name, error)| Row::unchecked(name, error));
        let pending = self.missing.pending.iter();
        failed.chain(pending.map(|name| Row::unchecked(name, "it has not answered yet")))
    }
}

// === impl Row ===

impl Row {
    fn new((server, review): &(ServerName, Review)) -> Self {
        let Review { tool, standing, before, now } = review.clone();
        let (server, standing) = (server.to_string(), standing.as_str());
        Self { server, tool: Some(tool), standing, before, now: Some(now), error: None }
    }

    fn unchecked(server: &ServerName, error: &str) -> Self {
        let (server, error) = (server.to_string(), Some(error.to_owned()));
        Self { server, tool: None, standing: UNCHECKED, before: None, now: None, error }
    }
}

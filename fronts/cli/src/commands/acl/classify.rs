//! `capstan acl classify`: shows the effect of each tool, with confidence and reasons.

use std::path::Path;

use capstan_app::api::ListDefinitions;
use capstan_app::{AppError, HubPurpose};
use capstan_model::{Caller, Effect, Front, ItemId, Trust};
use capstan_policy::effect::{Classified, EffectRules, Source};
use serde::Serialize;

use crate::args::ClassifyArgs;
use crate::commands::tools::tell_hidden;
use crate::commands::{rows, tell_missing, tell_saved};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

/// One tool, as `--json` prints it.
#[derive(Serialize)]
struct Row {
    /// The id from the file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    server: Option<String>,
    tool: String,
    effect: &'static str,
    confidence: f64,
    source: Source,
    reasons: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: &ClassifyArgs) -> Result<Exit, AppError> {
    match &args.file {
        Some(path) => of_file(context, path, args.only()),
        None => of_servers(context, args).await,
    }
}

/// Classifies the definitions in a file. Their origin is not trusted, so annotations are only
/// hints.
fn of_file(context: &Context, path: &Path, server: Option<&str>) -> Result<Exit, AppError> {
    let rules = EffectRules::default();
    let definitions = rows::read(path, rows::Allow::Definitions)?.into_iter();
    let wanted = definitions.filter(|one| server.is_none() || one.server.as_deref() == server);
    let rows = wanted.map(|one| {
        let classified = rules.classify(&one.name, &one.json, Trust::Untrusted);
        Row { id: one.id, ..Row::new(one.server, one.name, classified) }
    });
    show(context, &rows.collect::<Vec<_>>());
    Ok(Exit::Ok)
}

/// Classifies the tools of servers by the rules of the configuration.
async fn of_servers(context: &Context, args: &ClassifyArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "waiting for the servers");
    let reading = context.reading(&args.reading);
    let list = ListDefinitions { server: args.only().map(ToOwned::to_owned), reading };
    let listed = context.run(list, person).await?;
    let gathered = &listed.gathered();
    let setup = context.setup_untold()?;
    let hub = context.hub(&setup, HubPurpose::Lists)?;
    // Includes denied tools: they have an effect too, and authors of rules need to see it.
    let all = gathered.lists.iter().flat_map(|(server, items)| {
        items
            .iter()
            .map(move |item| ItemId { server: server.clone(), item: item.name.clone() })
            .zip(items.iter())
    });
    let rows = all.map(|(id, item)| {
        let classified = hub.policy().classify(&id, &item.definition);
        Row::new(Some(id.server.to_string()), id.item, classified)
    });
    show(context, &rows.collect::<Vec<_>>());
    tell_saved(&context.print, listed.servers.iter().filter_map(|one| one.provenance.seen));
    let hidden = hub.hidden_tools(gathered, &Caller::operator(Front::Cli));
    tell_hidden(context, &hidden.iter().map(ToString::to_string).collect::<Vec<_>>());
    tell_missing(&context.print, &listed.missing);
    if let Some(none) = listed.none {
        context.say_no_servers(none);
    }
    Ok(context.exit_without(listed.required.as_ref()))
}

fn show(context: &Context, rows: &[Row]) {
    if context.print.wants_json() {
        context.print.json(&rows);
        return;
    }
    if rows.is_empty() {
        return;
    }
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    let headers = ["SERVER", "TOOL", "EFFECT", "SURE", "SOURCE", "REASONS"];
    context.print.table(&headers, &cells);
    let unknown = rows.iter().filter(|row| row.effect == Effect::Unknown.as_str()).count();
    if unknown > 0 {
        context.print.note(&format!("\n{unknown} of {} unknown: they count as writes", rows.len()));
        context.print.hint(
            "`effect = { read = [\"…\"] }` in a server's configuration marks tools that only read",
        );
    }
}

// === impl Row ===

impl Row {
    fn new(server: Option<String>, tool: String, classified: Classified) -> Self {
        let Classified { effect, confidence, source, reasons } = classified;
        let confidence = f64::from(confidence) / 100.0;
        Self { id: None, server, tool, effect: effect.as_str(), confidence, source, reasons }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.server.clone().unwrap_or_else(|| "-".to_owned()),
            self.tool.clone(),
            self.effect.to_owned(),
            format!("{:.0} %", self.confidence * 100.0),
            self.source.as_str().to_owned(),
            self.reasons.join("; "),
        ]
    }
}

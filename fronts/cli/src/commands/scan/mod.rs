//! `capstan scan`: shows suspicious texts of servers, or of definitions in a file.

mod scanned;

use std::collections::HashSet;
use std::path::Path;

use capstan_app::AppError;
use capstan_app::api::{ListDefinitions, ListPrompts, ListResources, Reading, Source};
use capstan_config::Scope;
use capstan_config::edit::accept_text;
use capstan_hub::catalog::Patience;
use capstan_text::clean::one_line;

use self::scanned::{Found, Scanned, of_row};
use super::{rows, tell_missing, tell_saved};
use crate::args::ScanArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;
use crate::print::counted;

/// Fewest characters of a finding's id that name it.
const SHORTEST_ID: usize = 8;

pub(crate) async fn run(context: &Context, args: &ScanArgs) -> Result<Exit, AppError> {
    let target = args.target.as_deref();
    let scanned = match target.filter(|target| is_file(target)) {
        Some(path) => {
            let rows = rows::read(Path::new(path), rows::Allow::Answers)?;
            rows.iter().map(of_row).collect()
        }
        None => of_servers(context, args).await?,
    };
    if !args.accept.is_empty() {
        return accept(context, args, &scanned);
    }
    show(context, &scanned);
    Ok(Exit::Ok)
}

/// Scans servers that were just connected, and reports what is suspicious. Connects nothing.
pub(crate) async fn tell_suspicious(context: &Context, servers: &[String]) {
    for server in servers {
        let reading =
            Reading { source: Source::Saved, wait: Patience::UpTo(std::time::Duration::ZERO) };
        let person = Person::watching(&context.print, "scanning its texts");
        let list = ListDefinitions { server: Some(server.clone()), reading };
        let Ok(listed) = context.run(list, person).await else { continue };
        let scanned = scanned::of_definitions(&listed, &accepted(context));
        let suspicious: Vec<&Scanned> = scanned.iter().filter(|one| one.is_suspicious()).collect();
        let Some(first) = suspicious.first() else { continue };
        let count = counted(suspicious.len(), "text is", "texts are");
        let shown = first.findings.iter().map(Found::told).next().unwrap_or_default();
        context.print.warning(&format!(
            "{count} suspicious in `{server}`: {}: {}",
            one_line(&first.name, 60),
            one_line(&shown, 120)
        ));
        context.print.hint(&format!("`capstan scan {server}` shows all findings"));
    }
}

/// True if a target is a file, not a server.
fn is_file(target: &str) -> bool {
    let extension = Path::new(target).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("jsonl"))
        || target.contains('/')
}

async fn of_servers(context: &Context, args: &ScanArgs) -> Result<Vec<Scanned>, AppError> {
    let server = args.target.clone();
    let reading = context.reading(&args.reading);
    let person = || Person::watching(&context.print, "waiting for the servers");
    let list = ListDefinitions { server: server.clone(), reading };
    let listed = context.run(list, person()).await?;
    let accepted = accepted(context);
    let mut scanned = scanned::of_definitions(&listed, &accepted);
    // A server may offer neither; its tools were listed all the same.
    let list = ListPrompts { name: server.clone(), reading };
    if let Ok(prompts) = context.run(list, person()).await {
        scanned.extend(scanned::of_items(&prompts.items, &accepted));
    }
    for templates in [false, true] {
        let list = ListResources { server: server.clone(), templates, reading };
        if let Ok(resources) = context.run(list, person()).await {
            scanned.extend(scanned::of_items(&resources.items, &accepted));
        }
    }
    tell_saved(&context.print, listed.servers.iter().filter_map(|one| one.provenance.seen));
    tell_missing(&context.print, &listed.missing);
    if let Some(none) = listed.none {
        context.say_no_servers(none);
    }
    Ok(scanned)
}

/// The digests of texts whose findings were accepted.
fn accepted(context: &Context) -> HashSet<String> {
    let setup = context.setup_untold();
    setup
        .map(|setup| setup.loaded.config.screen.accept.iter().cloned().collect())
        .unwrap_or_default()
}

fn show(context: &Context, scanned: &[Scanned]) {
    if context.print.wants_json() {
        context.print.json(&scanned);
        return;
    }
    let cells: Vec<Vec<String>> = scanned.iter().flat_map(Scanned::cells).collect();
    if !cells.is_empty() {
        let headers = ["SERVER", "NAME", "SEVERITY", "CLASS", "PLACE", "FINDING", "TEXT"];
        context.print.table(&headers, &cells);
    }
    let suspicious = scanned.iter().filter(|one| one.is_suspicious()).count();
    let all = counted(scanned.len(), "text", "texts");
    context.print.note(&match suspicious {
        0 => format!("{all} scanned: none is suspicious"),
        some => format!("{all} scanned: {some} suspicious"),
    });
    if suspicious > 0 {
        context.print.hint("`--accept FINDING` accepts a finding, for exactly this text");
    }
}

/// Writes the digests of accepted texts to the user's own file.
fn accept(context: &Context, args: &ScanArgs, scanned: &[Scanned]) -> Result<Exit, AppError> {
    let all = || scanned.iter().flat_map(|one| &one.findings);
    let mut digests = Vec::new();
    for id in &args.accept {
        let is_meant =
            |found: &&Found| id.len() >= SHORTEST_ID && found.digest.starts_with(id.as_str());
        let Some(found) = all().find(is_meant) else {
            let message = format!("no finding has the id `{}`", one_line(id, 64));
            return Err(AppError::not_found(message).hint("`capstan scan` shows the ids"));
        };
        digests.push((found.digest.clone(), found.told()));
    }
    let file = context.app.configs.target(Some(Scope::User));
    for (digest, told) in digests {
        context.app.configs.edit(&file, &|text| accept_text(text, &digest))?;
        let path = file.path.display();
        context.print.note(&format!("accepted in {path}: {}", one_line(&told, 120)));
    }
    Ok(Exit::Ok)
}

//! `capstan registry`: finds and adds servers from a registry.

use std::cell::Cell;

use capstan_app::AppError;
use capstan_config::edit::{EditError, NewServer, NewTarget, add_server};
use capstan_import::registry::{BadOffer, Chosen, Delivery, Need, Offer};
use capstan_safety::clean::clean;
use capstan_safety::scan::{Severity, Surface, scan};
use capstan_text::screen::stdin_is_terminal;
use serde::Serialize;

use super::add::scope_of;
use super::networks::refuse_private;
use crate::args::{RegistryAddArgs, RegistryCommand, RegistrySearchArgs};
use crate::context::Context;
use crate::exit::Exit;

/// One server, as `--json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    version: &'a str,
    kinds: Vec<&'a str>,
    description: &'a str,
}

pub(crate) async fn run(context: &Context, command: &RegistryCommand) -> Result<Exit, AppError> {
    match command {
        RegistryCommand::Search(args) => search(context, args).await,
        RegistryCommand::Add(args) => add(context, args).await,
    }
}

async fn search(context: &Context, args: &RegistrySearchArgs) -> Result<Exit, AppError> {
    let address = args.registry.registry.as_deref();
    let found =
        context.app.registries.search(address, &args.words, usize::from(args.limit)).await?;
    let rows: Vec<Row> = found.iter().map(Row::new).collect();
    if context.print.wants_json() {
        context.print.json(&rows);
        return Ok(Exit::Ok);
    }
    if rows.is_empty() {
        context.print.note("nothing was found");
        return Ok(Exit::Ok);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    context.print.table(&["NAME", "VERSION", "KINDS", "DESCRIPTION"], &cells);
    context.print.hint("`capstan registry add NAME` adds one");
    Ok(Exit::Ok)
}

async fn add(context: &Context, args: &RegistryAddArgs) -> Result<Exit, AppError> {
    let address = args.registry.registry.as_deref();
    let offer = context.app.registries.offer(address, &args.name, args.release.as_deref()).await?;
    let name = args.alias.as_deref().unwrap_or_else(|| offer.short_name());
    let Chosen { way, mut needs } =
        offer.choose(args.kind.as_deref()).map_err(|error| unusable(&error))?;
    let offered = format!("{} {}", line(&offer.name), line(&offer.version));
    let entry = match way {
        Delivery::Entry(_) if !args.settings.is_empty() => {
            return Err(AppError::usage("`--set` works only for bundles")
                .hint("required values become variables, which you set"));
        }
        Delivery::Entry(entry) => {
            context.print.note(&format!("{offered}: {}", shown(&entry)));
            refuse_private(context, &entry).await?;
            tell_pairs(context, &entry);
            *entry
        }
        Delivery::Bundle { url, sha256 } => {
            context.print.note(&format!("{offered}: the bundle {}", line(&url)));
            // Only the contents of the bundle show what will be started.
            let settings = settings(args)?;
            let (entry, more) =
                context.app.registries.fetch_bundle(address, &url, &sha256, &settings).await?;
            needs.extend(more);
            context.print.note(&format!("  starts {}", shown(&entry)));
            tell_names(context, &entry);
            entry
        }
    };
    tell_needs(context, &needs);
    tell_suspicious(context, &offer);
    confirm(args)?;
    let file = context.app.configs.target(args.scope.map(scope_of));
    let taken = Cell::new(false);
    let edited = context.app.configs.edit(&file, &|text| {
        let added = add_server(text, name, &entry);
        taken.set(matches!(added, Err(EditError::Exists { .. })));
        added
    });
    edited.map_err(|failure| {
        if !taken.get() {
            return failure;
        }
        failure.hint(format!(
            "choose another name with `--as NAME`, or run `capstan remove {name}` first"
        ))
    })?;
    let setup = context.app.configs.load(&context.selection)?;
    let slug = setup.server(name)?.name.as_str();
    let (path, scope) = (file.path.display(), file.scope.as_str());
    context.print.note(&format!("added `{name}` to {path} ({scope})"));
    context.print.note(&format!("next: `capstan tools {slug}` lists its tools"));
    if context.print.wants_json() {
        context.print.json(&serde_json::json!({ "added": name, "file": file.path }));
    }
    Ok(Exit::Ok)
}

/// Reports suspicious texts of an offer before anything is written.
fn tell_suspicious(context: &Context, offer: &Offer) {
    let texts = [Some(offer.name.as_str()), offer.title.as_deref(), Some(&offer.description)];
    let findings = texts.into_iter().flatten().flat_map(|text| scan(text, Surface::Definition));
    for finding in findings.filter(|finding| finding.severity >= Severity::Medium) {
        let (class, text) = (finding.class.as_str(), line(&finding.excerpt));
        context.print.warning(&format!("its description is suspicious ({class}): {text}"));
    }
}

/// Parses the `--set` options.
fn settings(args: &RegistryAddArgs) -> Result<Vec<(String, String)>, AppError> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            AppError::usage("`--set` has no `=`").hint("write it as `--set KEY=VALUE`")
        })?;
        Ok((key.to_owned(), value.to_owned()))
    };
    args.settings.iter().map(pair).collect()
}

/// The command or URL that will be used.
fn shown(entry: &NewServer) -> String {
    match &entry.target {
        NewTarget::Stdio(program) | NewTarget::Cli(program) => {
            let words = std::iter::once(&program.command).chain(&program.args);
            words.map(|word| line(word)).collect::<Vec<_>>().join(" ")
        }
        NewTarget::Http(remote) | NewTarget::Sse(remote) => line(&remote.url),
        NewTarget::OpenApi(api) => line(&api.document),
    }
}

/// Prints the variables or headers of the entry. Values come from the registry, with references for
/// values of the user.
fn tell_pairs(context: &Context, entry: &NewServer) {
    let (what, pairs) = pairs(entry);
    for (name, value) in pairs {
        context.print.note(&format!("  {what} {}: {}", line(name), line(value)));
    }
}

/// Prints the names of the variables or headers without values, which a bundle may have taken from
/// the user's settings.
fn tell_names(context: &Context, entry: &NewServer) {
    let (what, pairs) = pairs(entry);
    for (name, _) in pairs {
        context.print.note(&format!("  {what} {}", line(name)));
    }
}

fn pairs(entry: &NewServer) -> (&'static str, Vec<(&String, &String)>) {
    match &entry.target {
        NewTarget::Stdio(program) | NewTarget::Cli(program) => {
            ("variable", program.env.iter().collect())
        }
        NewTarget::Http(remote) | NewTarget::Sse(remote) => {
            ("header", remote.headers.iter().collect())
        }
        NewTarget::OpenApi(api) => ("header", api.headers.iter().collect()),
    }
}

fn tell_needs(context: &Context, needs: &[Need]) {
    for Need { variable, description, required } in needs {
        let needs = if *required { "needs" } else { "can use" };
        let set =
            if context.app.registries.is_set(variable) { " (set in your environment)" } else { "" };
        context.print.note(&format!("  {needs} ${{{variable}}}{set}: {}", line(description)));
    }
}

/// Text from a third party on one line, so that it cannot look like lines of ours.
fn line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asks for confirmation, because adding a server lets a third party's program run here.
fn confirm(args: &RegistryAddArgs) -> Result<(), AppError> {
    if args.yes {
        return Ok(());
    }
    if !stdin_is_terminal() {
        return Err(AppError::usage("there is no terminal to ask on").hint("add it with `--yes`"));
    }
    let asked = inquire::Confirm::new("Add it?").with_default(false).prompt();
    if asked.unwrap_or(false) {
        return Ok(());
    }
    Err(AppError::denied("not added"))
}

fn unusable(error: &BadOffer) -> AppError {
    AppError::usage(error.to_string())
        .hint("choose another kind with `--kind`, or use `capstan add` with a command")
}

// === impl Row ===

impl<'a> Row<'a> {
    fn new(offer: &'a Offer) -> Self {
        let Offer { name, version, description, .. } = offer;
        Self { name, version, kinds: offer.kinds(), description }
    }

    fn cells(&self) -> Vec<String> {
        let Self { name, version, kinds, description } = self;
        let words = [name, version, kinds.join(" ").as_str(), description].map(str::to_owned);
        words.to_vec()
    }
}

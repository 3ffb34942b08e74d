//! The commands, one file each.

mod acl;
pub(crate) mod add;
mod adopt;
mod approvals;
mod audit;
mod audit_csv;
mod auth;
mod auth_clients;
mod call;
mod chat;
mod check;
mod completions;
mod config;
mod doctor;
mod edit;
mod enable;
mod explained;
mod fixed_paths;
mod get;
mod import;
mod import_logins;
mod install;
mod list;
pub(crate) mod login;
mod logout;
mod man;
mod networks;
mod offers;
mod pins;
mod policy;
pub(crate) mod prompt;
mod prompts;
mod read;
mod record;
mod registry;
mod reload;
mod remove;
mod resources;
mod search;
mod secret;
mod rows;
mod scan;
mod serve;
mod suggest;
mod token_costs;
mod tools;
mod trust;
mod user;
mod why;

use std::time::SystemTime;

use capstan_app::AppError;
use capstan_app::api::Missing;
use capstan_model::ServerName;
use capstan_text::clean::one_line;
use jiff::Timestamp;

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Printer;

/// Runs the command that was typed.
#[expect(clippy::cognitive_complexity, reason = "one line for each command")]
pub(crate) async fn run(context: &Context, cli: &Cli) -> Result<Exit, AppError> {
    match &cli.command {
        Command::Add(args) => add::run(context, args).await,
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Remove(args) => remove::run(context, args).await,
        Command::Edit(args) => edit::run(context, args).await,
        Command::Enable(args) => enable::run(context, args, enable::Switch::On),
        Command::Disable(args) => enable::run(context, args, enable::Switch::Off),
        Command::Tools(args) => tools::run(context, args).await,
        Command::Search(args) => search::run(context, args).await,
        Command::Call(args) => call::run(context, args).await,
        Command::Resources(args) => resources::run(context, args).await,
        Command::Read(args) => read::run(context, args).await,
        Command::Prompts(args) => prompts::run(context, args).await,
        Command::Prompt(args) => prompt::run(context, args).await,
        Command::Chat(args) => chat::run(context, args).await,
        Command::Adopt(args) => adopt::run(context, args).await,
        Command::Import(args) => import::run(context, args).await,
        Command::Install(args) => install::run(context, args).await,
        Command::Uninstall(args) => install::undo(context, args),
        Command::Login(args) => login::run(context, args).await,
        Command::Logout(args) => logout::run(context, args).await,
        Command::Serve(args) => serve::run(context, args).await,
        Command::Record(args) => record::run(context, args).await,
        Command::Replay(args) => record::replay(context, args).await,
        Command::Reload => reload::run(context).await,
        Command::Why(args) => why::run(context, args).await,
        Command::Approvals(args) => approvals::run(context, args).await,
        Command::Acl(command) => acl::run(context, command).await,
        Command::Pins(args) => pins::run(context, args).await,
        Command::Scan(args) => scan::run(context, args).await,
        Command::Policy(command) => policy::run(context, command),
        Command::Registry(command) => registry::run(context, command).await,
        Command::Auth(command) => auth::run(context, command).await,
        Command::User(command) => user::run(context, command).await,
        Command::Secret(command) => secret::run(context, command).await,
        Command::Audit(args) => audit::run(context, args).await,
        Command::Config(command) => config::run(context, command),
        Command::Trust(args) => trust::run(context, args),
        Command::Doctor(args) => doctor::run(context, args).await,
        Command::Completions(args) => completions::run(context, args),
        Command::Man(args) => man::run(context, args),
    }
}

/// Reports servers that are missing from a list: in one line, with the reason if it is only one.
pub(crate) fn tell_missing(print: &Printer, missing: &Missing) {
    match missing.failed.as_slice() {
        [] => {}
        [(_, error)] => print.warning(&one_line(error, usize::MAX)),
        several => {
            let names = named(several.iter().map(|(name, _)| name));
            print.warning(&format!("{} servers are not usable: {names}", several.len()));
            print.hint("`capstan doctor` says why");
        }
    }
    if !missing.pending.is_empty() {
        print.warning(&format!("no answer yet from {}", named(missing.pending.iter())));
        print.hint("`--wait 30s` waits longer; `capstan doctor` finds the cause");
    }
}

/// Reports that lists are shown as they were last seen, and how old the oldest of them is.
pub(crate) fn tell_saved(print: &Printer, seen: impl Iterator<Item = Timestamp>) {
    let times: Vec<Timestamp> = seen.collect();
    let Some(oldest) = times.iter().min().filter(|_| !print.wants_json()) else { return };
    let age = age(*oldest);
    print.note(&match times.len() {
        1 => format!("shown as last seen {age} ago; `--refresh` asks the server"),
        servers => format!(
            "{servers} servers are shown as last seen, up to {age} ago; `--refresh` asks them"
        ),
    });
}

/// The time since a moment, in its largest unit.
pub(crate) fn age(since: Timestamp) -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The names of servers, as a list in a sentence.
pub(crate) fn named<'a>(servers: impl Iterator<Item = &'a ServerName>) -> String {
    servers.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

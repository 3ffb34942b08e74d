//! `capstan enable` and `capstan disable`: switch a server on or off.

use capstan_app::AppError;
pub(crate) use capstan_config::edit::Switch;
use capstan_config::edit::set_enabled;

use super::remove::locate;
use crate::args::NameArgs;
use crate::context::Context;
use crate::exit::Exit;

pub(crate) fn run(context: &Context, args: &NameArgs, switch: Switch) -> Result<Exit, AppError> {
    let (file, display) = locate(context, &args.name, args.scope)?;
    context.app.configs.edit(&file, &|text| set_enabled(text, &display, switch))?;
    let word = match switch {
        Switch::On => "enabled",
        Switch::Off => "disabled",
    };
    context.print.note(&format!("{word} `{display}` in {}", file.path.display()));
    if context.print.wants_json() {
        context.print.json(&serde_json::json!({ word: display, "file": file.path }));
    }
    Ok(Exit::Ok)
}

//! `capstan config`: shows and checks the configuration.

use capstan_app::AppError;
use capstan_config::Severity;

use crate::args::ConfigCommand;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::counted;

pub(crate) fn run(context: &Context, command: &ConfigCommand) -> Result<Exit, AppError> {
    match command {
        ConfigCommand::Path => Ok(path(context)),
        ConfigCommand::Check => check(context),
        ConfigCommand::Schema => {
            context.print.json(&capstan_config::schema());
            Ok(Exit::Ok)
        }
        ConfigCommand::Show => show(context),
    }
}

fn path(context: &Context) -> Exit {
    let files = context.app.configs.files(&context.selection);
    if context.print.wants_json() {
        context.print.json(&files);
        return Exit::Ok;
    }
    for file in files {
        let missing = if file.exists { "" } else { "  (does not exist)" };
        let (scope, path) = (file.scope.as_str(), file.path.display());
        context.print.data(&format!("{scope:8} {path}{missing}"));
    }
    Exit::Ok
}

fn check(context: &Context) -> Result<Exit, AppError> {
    let setup = context.app.configs.load(&context.selection)?;
    let problems = &setup.loaded.problems;
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    if context.print.wants_json() {
        context.print.json(problems);
    } else {
        for problem in problems {
            context.print.diagnosis(problem, &setup.files);
        }
        let servers = setup.loaded.config.servers.len();
        let warnings = problems.len() - errors;
        let counts = [
            counted(servers, "server", "servers"),
            counted(errors, "error", "errors"),
            counted(warnings, "warning", "warnings"),
        ];
        context.print.note(&counts.join(", "));
    }
    Ok(if errors == 0 { Exit::Ok } else { Exit::Config })
}

fn show(context: &Context) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let shown = capstan_config::show(&setup.loaded);
    if context.print.wants_json() {
        context.print.json(&shown);
        return Ok(Exit::Ok);
    }
    let cells: Vec<Vec<String>> =
        shown.iter().map(|s| vec![s.key.clone(), s.value.clone(), s.origin.clone()]).collect();
    context.print.table(&["KEY", "VALUE", "ORIGIN"], &cells);
    Ok(Exit::Ok)
}

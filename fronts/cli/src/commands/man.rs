//! `capstan man`: prints the manual, which is generated from the help texts.

use capstan_app::AppError;
use clap::CommandFactory;

use crate::args::{Cli, ManArgs};
use crate::context::Context;
use crate::exit::Exit;

pub(crate) fn run(context: &Context, args: &ManArgs) -> Result<Exit, AppError> {
    let command = Cli::command();
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| AppError::internal(error.to_string()))?;
        context.print.exactly(&String::from_utf8_lossy(&page));
        return Ok(Exit::Ok);
    };
    let failed = |error: std::io::Error| {
        AppError::usage(format!("cannot write to {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command, folder).map_err(failed)?;
    context.print.note(&format!("wrote the manual pages to {}", folder.display()));
    Ok(Exit::Ok)
}

//! `capstan record` and `capstan replay`: a server's answers in a file, and a server that gives them.

use std::path::PathBuf;

use capstan_app::AppError;
use capstan_app::cassette::{Asker, Recording};
use capstan_text::screen::stdin_is_terminal;

use crate::args::{RecordArgs, ReplayArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::serving::{Face, Serving};

pub(crate) async fn run(context: &Context, args: &RecordArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let server = setup.server(&args.name)?.name.clone();
    let file = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{server}.cassette")));
    let file = context.app.configs.environment.current_folder.join(file);
    let asker = if stdin_is_terminal() { Asker::Ourselves } else { Asker::Client };
    let serving = Serving {
        face: Face::Record(Recording { server, file: file.clone(), asker }),
        stop: || Box::pin(crate::interrupted()),
        ready: Box::new(|_| Box::pin(async {})),
    };
    context.app.serve.serve(&setup, &context.selection, serving).await?;
    context.print.note(&format!("recorded in {}", file.display()));
    context.print.note(&format!("`capstan replay {}` answers from it", file.display()));
    Ok(Exit::Ok)
}

pub(crate) async fn replay(context: &Context, args: &ReplayArgs) -> Result<Exit, AppError> {
    let file = context.app.configs.environment.current_folder.join(&args.file);
    context.app.serve.replay(&file).await?;
    Ok(Exit::Ok)
}

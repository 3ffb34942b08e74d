//! Commands that run in a gateway: because the command line says so, or because one runs that has
//! the same servers started already.

use std::sync::PoisonError;

use capstan_app::AppError;

use super::call::Stdin;
use crate::args::{CallArgs, Cli, Command};
use crate::context::Context;
use crate::exit::Exit;
use crate::far::{Near, Order};

/// Runs a command in a gateway, where that is wanted or just as good; `None` when it is to run here.
pub(crate) async fn run(context: &Context, cli: &Cli) -> Result<Option<Exit>, AppError> {
    if context.inside.is_some() {
        return Ok(None);
    }
    let options = &context.options;
    let process = match (options.attach, &cli.command) {
        (Some(_), _) if options.demo || !options.config.is_empty() => {
            let given = if options.demo { "--demo" } else { "--config" };
            let message = format!("`{given}` does not go with `--attach`");
            return Err(AppError::usage(message).hint(
                "a command in a gateway has the gateway's configuration; `--attach=PID` says which",
            ));
        }
        (Some(process), command) if can_attach(command) => process,
        (Some(_), _) => {
            return Err(AppError::usage("this command does not run in a gateway").hint(
                "`--attach` works with `list`, `get`, `tools`, `call`, `resources`, `read`, \
                 `prompts`, `prompt`, `add`, `remove` and `reload`",
            ));
        }
        (None, Command::Reload) => None,
        (None, Command::Call(args)) if !options.no_attach && !options.debug => {
            return like(context, cli, args).await;
        }
        (None, _) => return Ok(None),
    };
    let order = order(context, cli).await;
    let near = Near::new(&context.print, "waiting for the gateway");
    context.attach.run_in(process, order, &context.selection, &near).await.map(Some)
}

/// Runs a command in this gateway, if it is one of those that may.
pub(crate) async fn run_here(context: &Context, cli: &Cli) -> Result<Exit, AppError> {
    if !can_attach(&cli.command) {
        return Err(AppError::usage("this command does not run in a gateway"));
    }
    super::run(context, cli).await
}

/// Runs a call in a gateway whose servers are those that would be started here.
async fn like(context: &Context, cli: &Cli, args: &CallArgs) -> Result<Option<Exit>, AppError> {
    // Elsewhere the operator may answer from another shell, and the call would wait for that.
    if args.ask.ask {
        return Ok(None);
    }
    let order = order(context, cli).await;
    let near = Near::new(&context.print, &format!("calling `{}`", args.tool));
    context.attach.run_in_like(order, &context.selection, &near).await.transpose()
}

/// The command as it is to be run elsewhere.
async fn order(context: &Context, cli: &Cli) -> Order {
    let mut stdin = None;
    if let Command::Call(args) = &cli.command
        && args.arguments.iter().any(|word| word == "-")
    {
        let read = Stdin::read(context, &args.arguments).await.0;
        stdin = read.as_ref().ok().cloned();
        // If it runs here after all, this is what came.
        *context.stdin.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
    }
    let (terminal, width) = (context.print.is_terminal(), context.print.width());
    let (words, person, digest) = (cli.words.clone(), context.print.has_person(), None);
    let here = context.attach.here();
    Order { words, stdin, here, terminal, width, person, digest }
}

fn can_attach(command: &Command) -> bool {
    match command {
        Command::Add(_)
        | Command::List(_)
        | Command::Get(_)
        | Command::Remove(_)
        | Command::Tools(_)
        | Command::Call(_)
        | Command::Resources(_)
        | Command::Read(_)
        | Command::Prompts(_)
        | Command::Prompt(_)
        | Command::Reload => true,
        Command::Enable(_)
        | Command::Disable(_)
        | Command::Import(_)
        | Command::Install(_)
        | Command::Uninstall(_)
        | Command::Pins(_)
        | Command::Registry(_)
        | Command::Serve(_)
        | Command::Why(_)
        | Command::Approvals(_)
        | Command::Acl(_)
        | Command::Policy(_)
        | Command::Audit(_)
        | Command::Config(_)
        | Command::Trust(_)
        | Command::Doctor(_)
        | Command::Completions(_)
        | Command::Man(_) => false,
    }
}

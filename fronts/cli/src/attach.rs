//! Chooses where a command runs: here, or in a running gateway.

use capstan_app::AppError;

use crate::args::{AclCommand, Cli, Command, PromptArgs, ReadArgs};

/// The process in which an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// In this process.
    Here,
    /// In the gateway with this process id, or in the only one.
    Gateway(Option<u32>),
    /// In a gateway with the same configuration, whose servers are already started; else here.
    Anywhere,
}

/// The process in which the operations of a command run.
pub(crate) fn destination(cli: &Cli) -> Result<Destination, AppError> {
    let options = &cli.options;
    match (options.attach, &cli.command) {
        (Some(_), _) if options.demo || !options.config.is_empty() => {
            let given = if options.demo { "--demo" } else { "--config" };
            let message = format!("`{given}` cannot be used with `--attach`");
            Err(AppError::usage(message).hint(
                "a command in a gateway uses the gateway's configuration; `--attach=PID` selects the gateway",
            ))
        }
        (Some(process), command) if can_attach(command) => Ok(Destination::Gateway(process)),
        (Some(_), _) => Err(AppError::usage("this command cannot run in a gateway").hint(
            "`--attach` works with `list`, `get`, `tools`, `call`, `resources`, `read`, \
             `prompts`, `prompt`, `add`, `remove` and `reload`",
        )),
        (None, Command::Reload) => Ok(Destination::Gateway(None)),
        // With `--ask`, the person here decides. In a gateway, another shell could answer too, and
        // the call would wait for that.
        (None, Command::Call(args)) if !options.no_attach && !options.debug && !args.ask.ask => {
            Ok(Destination::Anywhere)
        }
        (None, Command::Read(ReadArgs { ask, .. }) | Command::Prompt(PromptArgs { ask, .. }))
            if !options.no_attach && !options.debug && !ask.ask =>
        {
            Ok(Destination::Anywhere)
        }
        (None, command) if !options.no_attach && !options.debug && lists(command) => {
            Ok(Destination::Anywhere)
        }
        (None, _) => Ok(Destination::Here),
    }
}

/// True for commands that show what servers have.
fn lists(command: &Command) -> bool {
    matches!(
        command,
        Command::List(_)
            | Command::Get(_)
            | Command::Tools(_)
            | Command::Search(_)
            | Command::Resources(_)
            | Command::Prompts(_)
            | Command::Pins(_)
            | Command::Scan(_)
            | Command::Acl(AclCommand::Classify(_))
    )
}

fn can_attach(command: &Command) -> bool {
    match command {
        Command::Add(_)
        | Command::List(_)
        | Command::Get(_)
        | Command::Remove(_)
        | Command::Tools(_)
        | Command::Search(_)
        | Command::Call(_)
        | Command::Resources(_)
        | Command::Read(_)
        | Command::Prompts(_)
        | Command::Prompt(_)
        | Command::Reload => true,
        Command::Edit(_)
        | Command::Chat(_)
        | Command::Enable(_)
        | Command::Disable(_)
        | Command::Adopt(_)
        | Command::Import(_)
        | Command::Install(_)
        | Command::Uninstall(_)
        | Command::Pins(_)
        | Command::Scan(_)
        | Command::Registry(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Serve(_)
        | Command::Record(_)
        | Command::Replay(_)
        | Command::Why(_)
        | Command::Approvals(_)
        | Command::Acl(_)
        | Command::Policy(_)
        | Command::Auth(_)
        | Command::User(_)
        | Command::Audit(_)
        | Command::Config(_)
        | Command::Trust(_)
        | Command::Doctor(_)
        | Command::Completions(_)
        | Command::Secret(_)
        | Command::Man(_) => false,
    }
}

//! `capstan policy`: tests rules on cases and on past calls.

mod cases;
mod replay;
mod test;

use capstan_app::AppError;

use crate::args::PolicyCommand;
use crate::context::Context;
use crate::exit::Exit;

pub(crate) fn run(context: &Context, command: &PolicyCommand) -> Result<Exit, AppError> {
    match command {
        PolicyCommand::Test(args) => test::run(context, args),
        PolicyCommand::Replay(args) => replay::run(context, args),
    }
}

//! `capstan acl`: shows the effects of tools and checks who may use them.

mod check;
mod classify;

use capstan_app::AppError;

use crate::args::AclCommand;
use crate::context::Context;
use crate::exit::Exit;

pub(crate) async fn run(context: &Context, command: &AclCommand) -> Result<Exit, AppError> {
    match command {
        AclCommand::Classify(args) => classify::run(context, args).await,
        AclCommand::Check(args) => check::run(context, args).await,
    }
}

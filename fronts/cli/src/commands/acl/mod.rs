//! `capstan acl`: what tools do, and who may use them.

mod check;
mod classify;
mod rows;

use crate::args::AclCommand;
use crate::context::Context;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, command: &AclCommand) -> Result<Exit, Failure> {
    match command {
        AclCommand::Classify(args) => classify::run(context, args).await,
        AclCommand::Check(args) => check::run(context, args).await,
    }
}

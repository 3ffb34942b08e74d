//! `capstan acl`: who may do what.

mod check;

use crate::args::AclCommand;
use crate::context::Context;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, command: &AclCommand) -> Result<Exit, Failure> {
    match command {
        AclCommand::Check(args) => check::run(context, args).await,
    }
}

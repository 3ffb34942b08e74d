//! `capstan logout`: removes a login from this machine.

use capstan_app::{AppError, Revocation, WantedLogout};

use crate::args::LogoutArgs;
use crate::context::Context;
use crate::exit::Exit;

pub(crate) async fn run(context: &Context, args: &LogoutArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let name = setup.server(&args.name)?.name.clone();
    let revocation = if args.revoke { Revocation::Requested } else { Revocation::NotRequested };
    let wanted = WantedLogout { server: name.clone(), login: args.login.clone(), revocation };
    let logout = context.app.logins.log_out(&setup, &wanted).await?;
    if !logout.was_logged_in {
        context.print.note(&format!("nobody was logged in to `{name}`"));
        return Ok(Exit::Ok);
    }
    context.print.note(&format!("logged out of `{name}`"));
    if let Some(reason) = logout.not_revoked {
        context.print.warning(&format!("the tokens were removed here, but not revoked: {reason}"));
        return Ok(Exit::ToolError);
    }
    Ok(Exit::Ok)
}

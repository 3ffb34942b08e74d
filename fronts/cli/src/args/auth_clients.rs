//! The grammar of `capstan auth clients`.

use clap::{Args, Subcommand};

/// `capstan auth clients`.
#[derive(Debug, Subcommand)]
pub enum AuthClientsCommand {
    /// List the apps that registered at the gateway
    List,
    /// Remove an app and end all of its logins
    Revoke(AuthClientArgs),
}

/// `capstan auth clients revoke`.
#[derive(Debug, Args)]
pub struct AuthClientArgs {
    /// The ID of the app, from the list
    pub id: String,
}

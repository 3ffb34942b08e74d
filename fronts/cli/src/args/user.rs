//! The grammar of `capstan user`.

use clap::{Args, Subcommand};

/// `capstan user`.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user who may sign in at the gateway
    Add(UserAddArgs),
    /// List the users
    List,
    /// Remove a user and end all of the user's logins
    Remove(UserNameArgs),
    /// Change the password of a user and end all of the user's logins
    Password(UserNameArgs),
}

/// `capstan user add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan user add ann\n  \
    capstan user add ann --role dev --role oncall\n  \
    pass show ann | capstan user add ann\n\n\
    Without a terminal, the password is the first line of the standard input. Users sign in on the \
    page of the gateway's authorization server, if no trusted proxy does it for them.")]
pub struct UserAddArgs {
    /// The name, which rules and the audit log use as the subject
    pub name: String,
    /// A role of the user; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,
}

/// `capstan user remove` and `capstan user password`.
#[derive(Debug, Args)]
pub struct UserNameArgs {
    /// The name of the user
    pub name: String,
}

//! The grammar of `capstan auth`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{AuthClientsCommand, duration};

/// `capstan auth`.
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// List and remove the apps that registered at the gateway
    #[command(subcommand)]
    Clients(AuthClientsCommand),
    /// Create, list and revoke tokens for callers of the gateway
    #[command(subcommand)]
    Token(TokenCommand),
}

/// `capstan auth token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and show it once
    Create(TokenCreateArgs),
    /// List the tokens
    List,
    /// Revoke a token; running gateways refuse it within five seconds
    Revoke(TokenRevokeArgs),
}

/// `capstan auth token create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan auth token create alice\n  \
    capstan auth token create ci --role deploy --expires 90d\n\n\
    Only a digest of the token is stored. The gateway accepts it if \
    `gateway.auth.providers` names `tokens`; clients send it as `Authorization: Bearer TOKEN`.")]
pub struct TokenCreateArgs {
    /// The name of the caller, as access rules and the audit log use it
    #[arg(value_name = "CALLER")]
    pub subject: String,
    /// A role of the caller; can be given several times
    #[arg(long, value_name = "ROLE")]
    pub role: Vec<String>,
    /// The time for which the token is valid, such as `90d` [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub expires: Option<Duration>,
}

/// `capstan auth token revoke`.
#[derive(Debug, Args)]
pub struct TokenRevokeArgs {
    /// The ID of the token, from the list
    pub id: String,
}

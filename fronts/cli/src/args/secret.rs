//! The grammar of `capstan secret`.

use clap::{Args, Subcommand};

/// `capstan secret`.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    capstan secret set github\n  \
    printf %s \"$TOKEN\" | capstan secret set github\n  \
    capstan secret list\n  \
    capstan secret remove github\n\n\
    A secret is stored in the keyring of the system, or in a file that only you can read if there is \
    no keyring; CAPSTAN_KEYRING=off always uses the file. The configuration refers to it by name: \
    headers = { Authorization = \"Bearer ${keyring:github}\" }")]
pub enum SecretCommand {
    /// Store a secret; asks for it without echo, or reads it from stdin
    Set(SecretNameArgs),
    /// List the names of the secrets and where each is stored
    List,
    /// Remove a secret
    Remove(SecretNameArgs),
}

/// The name of a secret.
#[derive(Debug, Args)]
pub struct SecretNameArgs {
    /// The name: letters, digits, `-`, `_`, `.` and `/`
    pub name: String,
}

//! How a login can fail.

use std::time::Duration;

use capstan_hub::ports::VaultError;

/// A failed login. It contains no secret, and no text of an issuer that was not verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// An address cannot be used for a login.
    #[error("{what} `{address}` cannot be used: {reason}")]
    Address {
        /// What it is the address of.
        what: &'static str,
        /// The address, without secrets.
        address: String,
        /// The problem.
        reason: String,
    },
    /// A request has no answer.
    #[error("no answer from {what} at `{origin}`: {reason}")]
    NoAnswer {
        /// What was asked.
        what: &'static str,
        /// The origin that was asked.
        origin: String,
        /// The reason.
        reason: String,
    },
    /// An answer cannot be used.
    #[error("the answer of {what} at `{origin}` cannot be used: {reason}")]
    Unusable {
        /// What was asked.
        what: &'static str,
        /// The origin that was asked.
        origin: String,
        /// The problem.
        reason: String,
    },
    /// The server does not say where to log in.
    #[error("the server does not say where to log in: {0}")]
    NotOffered(String),
    /// The metadata of the server or its authorization server must not be trusted.
    #[error("{0}")]
    Untrusted(String),
    /// The authorization server refuses, with an error code of the protocol.
    #[error("the authorization server refused: {code}{}", in_brackets(description))]
    Refused {
        /// The code.
        code: String,
        /// Its description, cleaned and short; may be empty.
        description: String,
    },
    /// There is no client that can be used.
    #[error("{0}")]
    NoClient(String),
    /// The port of the callback is in use.
    #[error("the callback cannot listen on 127.0.0.1:{port}: {reason}")]
    Port {
        /// The port.
        port: u16,
        /// The reason.
        reason: String,
    },
    /// Nobody logged in in time.
    #[error("nobody logged in within {0:?}")]
    TimedOut(Duration),
    /// The tokens cannot be stored or read.
    #[error("the login cannot be stored: {0}")]
    Vault(#[from] VaultError),
    /// The configuration of the login does not work.
    #[error("{0}")]
    Settings(String),
}

// === impl LoginError ===

impl LoginError {
    /// The remedy.
    pub fn hint(&self, server: &str) -> Option<String> {
        match self {
            Self::NotOffered(_) => Some(format!(
                "if it takes a token, set it under `[servers.{server}.headers]`; if it has a login that \
                 it does not describe, set `oauth = \"manual\"` and `oauth_config`"
            )),
            Self::NoClient(_) => Some(format!(
                "register a client there, and set `client_id` under `[servers.{server}.oauth_config]`"
            )),
            Self::Port { .. } => Some(
                "stop the program that uses the port, or choose another with `--mcp-oauth-port`"
                    .to_owned(),
            ),
            Self::TimedOut(_) => Some(format!("run `capstan login {server}` again")),
            Self::Refused { code, .. } if code == "invalid_scope" => {
                Some("choose the scopes with `--scope`".to_owned())
            }
            Self::Address { .. }
            | Self::NoAnswer { .. }
            | Self::Unusable { .. }
            | Self::Untrusted(_)
            | Self::Refused { .. }
            | Self::Vault(_)
            | Self::Settings(_) => None,
        }
    }

    /// True if the same attempt can succeed later, without another login.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer { .. } | Self::Unusable { .. } | Self::Vault(_) => true,
            Self::Refused { code, .. } => {
                matches!(code.as_str(), "temporarily_unavailable" | "server_error" | "slow_down")
            }
            Self::Address { .. }
            | Self::NotOffered(_)
            | Self::Untrusted(_)
            | Self::NoClient(_)
            | Self::Port { .. }
            | Self::TimedOut(_)
            | Self::Settings(_) => false,
        }
    }

    /// True if the authorization server no longer knows the client.
    pub(crate) fn is_client_unknown(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_client" || code == "unauthorized_client")
    }
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

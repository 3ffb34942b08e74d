//! Tokens of Google accounts for servers that accept them instead of a login.
//!
//! [`GoogleTokens`] is a source of the `Authorization` header. It finds the application default
//! credentials ([`Places`]): a file with the refresh token of a user or the key of a service account,
//! else the metadata server of the machine. With these it gets an access token, or an ID token of a
//! service account that they may impersonate.
//!
//! **Invariant:** only an access token for the own credentials is ever requested from the metadata
//! server. An access token is sent only to Google's own hosts or to this machine, because whoever has
//! it can use the account.

mod credentials;
mod error;
mod tokens;
mod web;

pub use credentials::Places;
pub use error::GoogleError;
pub use tokens::{GoogleTokens, Wanted};
pub use web::Endpoints;

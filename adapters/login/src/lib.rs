//! Logins to servers: OAuth, from discovery to refresh.
//!
//! Read in this order: [`settings`] is the configuration of one server's login, `discovery` finds
//! its authorization server, `client` registers us there, `document` is what we publish instead, `flow` logs a person in (`callback`
//! receives the browser, `device` is for machines without one), `token` requests tokens, `entry`
//! stores them, `renewal` renews them, `login` puts them into requests. `web` sends all requests,
//! `challenge` reads refusals, `assertion` and `enterprise` are for grants without a person.
//!
//! **Invariant:** a token goes only to the server that it was issued for, and the secrets of a
//! client and a refresh token only to the authorization server that issued them, over TLS or within
//! this machine. None of them is part of an error, a log or a debug output.

pub mod settings;
mod error;
mod random;
mod web;
mod challenge;
mod discovery;
mod client;
mod document;
mod assertion;
mod token;
mod enterprise;
mod device;
mod callback;
mod routes;
mod entry;
mod flow;
mod renewal;
mod login;

pub use callback::Outcome;
pub use document::{callback_at, client_document};
pub use error::LoginError;
pub use flow::LoginRequest;
pub use login::{ForeignTokens, LoggedIn, LoggedOut, Login, LoginStatus, Revoke};
pub use random::{same, text as random_text};
pub use routes::CallbackRoutes;
pub use settings::{ClientAuth, Grant, LoginSettings, OAuthSettings};

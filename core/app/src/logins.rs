//! Logins to servers.

use std::time::Duration;

use capstan_hub::ports::{BoxFuture, LoginPerson};
use capstan_import::logins::ForeignLogin;
use capstan_model::ServerName;
use jiff::Timestamp;
use serde::Serialize;

use crate::{AppError, Setup};

/// Logs in to servers and out of them.
pub trait Logins: Send + Sync {
    /// Logs in to a server. What the server answered in this process is taken into account.
    ///
    /// # Errors
    /// If the server has no login, or the login fails.
    fn log_in<'a>(
        &'a self,
        setup: &'a Setup,
        wanted: &'a WantedLogin,
        person: &'a dyn LoginPerson,
    ) -> BoxFuture<'a, Result<LoginState, AppError>>;

    /// Removes a login from this machine.
    ///
    /// # Errors
    /// If the server has no login, or it cannot be removed.
    fn log_out<'a>(
        &'a self,
        setup: &'a Setup,
        wanted: &'a WantedLogout,
    ) -> BoxFuture<'a, Result<Logout, AppError>>;

    /// Stores a login of another program; `None` if there is a login to the server already. The
    /// server and its authorization server are asked where it is renewed.
    ///
    /// # Errors
    /// If the server has no login, or the login cannot be used.
    fn take_over<'a>(
        &'a self,
        setup: &'a Setup,
        server: &'a ServerName,
        foreign: &'a ForeignLogin,
    ) -> BoxFuture<'a, Result<Option<LoginState>, AppError>>;

    /// The state of a server's login; `None` if nobody is logged in.
    ///
    /// # Errors
    /// If the server has no login, or it cannot be read.
    fn status<'a>(
        &'a self,
        setup: &'a Setup,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Option<LoginState>, AppError>>;

    /// The states of all logins to a server, also of those that no entry uses.
    ///
    /// # Errors
    /// If the server has no login, or they cannot be read.
    fn all<'a>(
        &'a self,
        setup: &'a Setup,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Vec<LoginState>, AppError>>;
}

/// A login that a person wishes.
#[derive(Clone, Debug)]
pub struct WantedLogin {
    /// The server.
    pub server: ServerName,
    /// The name of the login, instead of the configured one.
    pub login: Option<String>,
    /// The scopes to request, instead of those that the server asks for.
    pub scopes: Option<Vec<String>>,
    /// The page on which the person logs in.
    pub page: LoginPage,
    /// The port of the callback, instead of the configured one.
    pub port: Option<u16>,
    /// How long to wait for the person.
    pub wait: Duration,
}

/// The way to the page on which a person logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginPage {
    /// It is opened in a browser on this machine.
    Opened,
    /// Only its address is printed; a code for another device is preferred.
    Printed,
}

/// A logout that a person wishes.
#[derive(Clone, Debug)]
pub struct WantedLogout {
    /// The server.
    pub server: ServerName,
    /// The name of the login, instead of the configured one.
    pub login: Option<String>,
    /// The authorization server is told if this is [`Revocation::Requested`].
    pub revocation: Revocation,
}

/// Decides if the authorization server is told about a logout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// The tokens are revoked.
    Requested,
    /// The tokens are only removed from this machine.
    NotRequested,
}

/// The state of a login. It contains no secret.
#[derive(Clone, Debug, Serialize)]
pub struct LoginState {
    /// The server.
    pub server: ServerName,
    /// The name of the login, if it has one.
    pub login: Option<String>,
    /// The person, if the authorization server names them.
    pub account: Option<String>,
    /// The authorization server, if it is known.
    pub issuer: Option<String>,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The time at which the token expires, if it is known.
    pub expires: Option<Timestamp>,
    /// True if the token is renewed without a person.
    pub renews: bool,
    /// The place of the tokens.
    pub stored_in: String,
}

/// The result of a logout.
#[derive(Clone, Debug)]
pub struct Logout {
    /// False if nobody was logged in.
    pub was_logged_in: bool,
    /// The reason why the tokens could not be revoked.
    pub not_revoked: Option<String>,
}

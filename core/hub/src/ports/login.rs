//! The ports for logins to servers: the person who logs in, and the accounts of callers.

use capstan_model::{Caller, ServerName};

use super::BoxFuture;

/// Lets callers of the gateway log in to servers with accounts of their own.
pub trait CallerLogins: Send + Sync {
    /// Begins a login, or returns the one of this caller that has begun. The error says why there
    /// can be none.
    fn begin<'a>(
        &'a self,
        caller: &'a Caller,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<PendingLogin, String>>;
}

/// A login that has begun.
pub struct PendingLogin {
    /// Its id.
    pub id: String,
    /// The page that the caller's user must visit.
    pub url: String,
    /// Completes when the login has ended; true if the tokens are stored.
    pub done: BoxFuture<'static, bool>,
}

/// A person who logs in. An implementation that can ask no person shows the steps only.
pub trait LoginPerson: Send + Sync {
    /// Shows the next step. It is shown before anything is opened.
    fn show(&self, step: LoginStep<'_>);

    /// Opens a page in a browser, if the person wishes that and there is one.
    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, ()>;

    /// Waits for a line that the person pastes; forever if none can be pasted.
    fn paste(&self) -> BoxFuture<'_, String>;
}

/// A step of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginStep<'a> {
    /// The person visits a page, and the page sends the browser back to this machine.
    Visit {
        /// The page.
        url: &'a str,
        /// The authorization server; `None` if it is not known.
        issuer: Option<&'a str>,
        /// The scopes that are requested; none if the authorization server chooses them.
        scopes: &'a [String],
    },
    /// The person enters a code on a page, with any device.
    EnterCode {
        /// The page.
        url: &'a str,
        /// The page with the code filled in, if there is one.
        filled_in: Option<&'a str>,
        /// The code.
        code: &'a str,
        /// The authorization server; `None` if it is not known.
        issuer: Option<&'a str>,
        /// The scopes that are requested.
        scopes: &'a [String],
    },
    /// A pasted line cannot be used.
    Unusable {
        /// The reason.
        reason: &'a str,
    },
}

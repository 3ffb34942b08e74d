//! The port for the person who logs in to a server.

use super::BoxFuture;

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

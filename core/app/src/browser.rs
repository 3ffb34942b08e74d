//! The user's browser.

use capstan_hub::ports::BoxFuture;

/// Opens pages in the user's browser.
pub trait Browser: Send + Sync {
    /// Opens a page. Only addresses with `http://` or `https://` are opened.
    ///
    /// # Errors
    /// The reason why it was not opened.
    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

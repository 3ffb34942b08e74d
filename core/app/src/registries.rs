//! Port for registries of servers.

use capstan_config::edit::NewServer;
use capstan_hub::ports::BoxFuture;
use capstan_import::registry::{Need, Offer};

use crate::AppError;

/// Registries of servers. Without an address, the user's registry or the official one is used.
pub trait Registries {
    /// The servers that match all of these words, best first.
    fn search_registry<'a>(
        &'a self,
        address: Option<&'a str>,
        words: &'a [String],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Offer>, AppError>>;

    /// The offer with this name, in this version or the latest. The name may also be a file.
    fn offer<'a>(
        &'a self,
        address: Option<&'a str>,
        name: &'a str,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Offer, AppError>>;

    /// True if a variable is set in the user's environment.
    fn is_set(&self, variable: &str) -> bool;

    /// Fetches a bundle that a registry names, verifies its digest and stores it.
    ///
    /// Returns the entry that starts it with these settings, and the variables that the user still
    /// has to set.
    fn fetch_bundle<'a>(
        &'a self,
        address: Option<&'a str>,
        url: &'a str,
        sha256: &'a str,
        settings: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<(NewServer, Vec<Need>), AppError>>;
}

//! What the command line needs of registries.

use capstan_config::edit::NewServer;
use capstan_hub::ports::BoxFuture;
use capstan_import::registry::{Need, Offer};

use crate::AppError;

/// Registries of servers. Without an address, the official one.
pub trait Registries {
    /// The servers with all of these words, best first.
    fn search_registry<'a>(
        &'a self,
        address: Option<&'a str>,
        words: &'a [String],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Offer>, AppError>>;

    /// What is offered under a name, in this version or the latest. A file is read.
    fn offer<'a>(
        &'a self,
        address: Option<&'a str>,
        name: &'a str,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Offer, AppError>>;

    /// Whether a variable is set in the user's environment.
    fn is_set(&self, variable: &str) -> bool;

    /// Fetches a bundle that a registry names, checks it, keeps it, and says what starts it with
    /// these settings, and what the user has to set for that.
    fn fetch_bundle<'a>(
        &'a self,
        address: Option<&'a str>,
        url: &'a str,
        sha256: &'a str,
        settings: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<(NewServer, Vec<Need>), AppError>>;
}

//! Names of items that were seen, for completions.

use capstan_model::{Kind, ServerName};

/// Keeps the names of items between commands.
pub trait NameCache: Send + Sync {
    /// Keeps the names of a server's tools, resources or prompts.
    fn remember(&self, kind: Kind, server: &ServerName, names: Vec<String>);

    /// The names that are kept, by server.
    fn remembered(&self, kind: Kind) -> Vec<(String, Vec<String>)>;
}

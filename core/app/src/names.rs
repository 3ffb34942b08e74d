//! Port that caches the names of items for completions.

use capstan_model::{Kind, ServerName};

/// Stores the names of items between commands.
pub trait NameCache: Send + Sync {
    /// Stores the names of a server's tools, resources or prompts.
    fn remember(&self, kind: Kind, server: &ServerName, names: Vec<String>);

    /// The stored names, by server.
    fn remembered(&self, kind: Kind) -> Vec<(String, Vec<String>)>;
}

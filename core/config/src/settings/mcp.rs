//! The keys of `[mcp]`.

use std::time::Duration;

use super::define::keys;
use super::form::{Limit, OneOf, WordSchema};
use super::rule::Reach;
use crate::fields::Words;
use crate::source::Origin;
use crate::source::expand::MissingEnv;

keys! {
    /// What binds all servers.
    pub merged Mcp {
        /// Lists of commands that may be started; a command must be in every list that covers its
        /// server.
        allowed_commands: Vec<CommandList>,
    }
    by_hand {
        /// The only commands that may be started: bare names or exact paths. Unset, any.
        allowed_commands: Vec<String>;
    }
    keys {
        /// How many servers may be added at run time.
        max_dynamic_servers: u32 = 10, smallest;
    }
    by_hand {
        /// What an unset variable without a default means for the servers of this file.
        missing_env: WordSchema<MissingEnv> = "error";
    }
    keys {
        /// Whether servers may ask the operator.
        elicitation_enabled: bool = true, smallest;
        /// How long a question waits before it counts as declined.
        elicitation_timeout: Duration as Limit = Duration::from_mins(2), nearest;
        /// How many questions may wait.
        elicitation_queue: u32 = 16, smallest;
    }
}

/// An `allowed_commands` list with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandList {
    /// The commands.
    pub commands: Vec<String>,
    /// Its position.
    pub origin: Origin,
    /// The servers that it restricts.
    pub reach: Reach,
}

// === impl MissingEnv ===

impl OneOf for MissingEnv {
    const WORDS: Words<Self> = &[("error", Self::Error), ("empty", Self::Empty)];
}

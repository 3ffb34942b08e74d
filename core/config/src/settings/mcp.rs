//! The keys of `[mcp]`.

use std::time::Duration;

use super::define::keys;
use super::form::{Limit, OneOf, WordSchema};
use super::rule::Reach;
use crate::fields::Words;
use crate::source::Origin;
use crate::source::expand::MissingEnv;

keys! {
    /// Settings for all servers.
    pub merged Mcp {
        /// Lists of commands that may be started; a command must be in every list that covers its
        /// server.
        allowed_commands: Vec<CommandList>,
    }
    by_hand {
        /// The only commands that may be started, as bare names or exact paths. Default: all.
        allowed_commands: Vec<String>;
    }
    keys {
        /// The maximum number of servers that may be added at run time.
        max_dynamic_servers: u32 = 10, smallest;
    }
    by_hand {
        /// The treatment of unset variables without a default, for the servers of this file: the server fails (`error`), or the value is empty (`empty`).
        missing_env: WordSchema<MissingEnv> = "error";
    }
    keys {
        /// Open a browser for a login. If not, only the address of the page is printed.
        login_browser: bool = true, smallest;
        /// Let servers ask the operator questions.
        elicitation_enabled: bool = true, smallest;
        /// The time after which an unanswered question counts as declined.
        elicitation_timeout: Duration as Limit = Duration::from_mins(2), nearest;
        /// The maximum number of waiting questions.
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

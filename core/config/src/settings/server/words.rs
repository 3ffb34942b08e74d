//! The keys of a server that take one of a fixed set of words.

use capstan_model::{Naming, Trust};

use crate::fields::Words;
use crate::settings::form::OneOf;

/// The time at which a server is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Immediately in interactive use, at the first call in the gateway.
    #[default]
    Auto,
    /// Immediately.
    Eager,
    /// When a list is first requested.
    OnList,
    /// At the first call.
    Lazy,
}

/// The policy for logins to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OAuth {
    /// When the server requires it.
    #[default]
    Auto,
    /// When the server requires it, with the endpoints and the client of `oauth_config`.
    Manual,
    /// Never.
    Off,
}

/// Whether the strings of a server may refer to secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// Its file belongs to another program, to which such a text means nothing special.
    #[default]
    Literal,
    /// Its file is native: `keyring:NAME` stands for a secret.
    Resolved,
}

/// The era of MCP to use with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Detected.
    #[default]
    Auto,
    /// Revisions with a handshake.
    Legacy,
    /// Revisions without a handshake.
    Modern,
}

/// The value of `type`: how a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
    Cli,
    /// Implied by the key `openapi`; has no word.
    OpenApi,
}

// === impl OneOf ===

impl OneOf for Transport {
    const WORDS: Words<Self> =
        &[("stdio", Self::Stdio), ("http", Self::Http), ("sse", Self::Sse), ("cli", Self::Cli)];
}

impl OneOf for Start {
    const WORDS: Words<Self> = &[
        ("auto", Self::Auto),
        ("eager", Self::Eager),
        ("on-list", Self::OnList),
        ("lazy", Self::Lazy),
    ];
}

impl OneOf for OAuth {
    const WORDS: Words<Self> =
        &[("auto", Self::Auto), ("manual", Self::Manual), ("off", Self::Off)];
}

impl OneOf for Protocol {
    const WORDS: Words<Self> =
        &[("auto", Self::Auto), ("legacy", Self::Legacy), ("modern", Self::Modern)];
}

impl OneOf for Trust {
    const WORDS: Words<Self> = &[
        ("trusted", Self::Trusted),
        ("untrusted", Self::Untrusted),
        ("sandboxed", Self::Sandboxed),
    ];
}

impl OneOf for Naming {
    const WORDS: Words<Self> =
        &[("prefixed", Self::Prefixed), ("mcp", Self::Mcp), ("bare", Self::Bare)];
}

// === impl Start ===

impl Start {
    /// The word in configuration and output.
    pub fn as_str(self) -> &'static str {
        self.word()
    }
}

// === impl Protocol ===

impl Protocol {
    /// The word in configuration and output.
    pub fn as_str(self) -> &'static str {
        self.word()
    }
}

// === impl OAuth ===

impl OAuth {
    /// The word in configuration and output.
    pub fn as_str(self) -> &'static str {
        self.word()
    }
}

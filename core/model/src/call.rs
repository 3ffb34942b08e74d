//! What is asked for.

use serde::{Deserialize, Serialize};

use crate::name::{ItemId, ServerName};

/// What a call wants, in the caller's own words: not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The name as the caller wrote it, for example `linear__list_issues`; where the server is
    /// said beside it, the server's own name for the item.
    pub name: String,
    /// The server, where it is known. Then the name is not looked up anywhere else.
    pub server: Option<ServerName>,
}

/// The three things a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Runs something: `tools/call`.
    Tool,
    /// Reads something: `resources/read`.
    Resource,
    /// Fills in a template of messages: `prompts/get`.
    Prompt,
}

// === impl Target ===

impl Target {
    /// A tool, by any spelling of its id.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::spelled(Kind::Tool, name)
    }

    /// A resource, as `server:uri`.
    pub fn resource(name: impl Into<String>) -> Self {
        Self::spelled(Kind::Resource, name)
    }

    /// A prompt, by any spelling of its id.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::spelled(Kind::Prompt, name)
    }

    /// An item by any spelling of its id.
    pub fn spelled(kind: Kind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), server: None }
    }

    /// This item of this server, and no other that a name could stand for.
    pub fn exact(kind: Kind, id: ItemId) -> Self {
        Self { kind, name: id.item, server: Some(id.server) }
    }

    /// The item, where nothing has to be looked up.
    pub fn id(&self) -> Option<ItemId> {
        let server = self.server.clone()?;
        Some(ItemId { server, item: self.name.clone() })
    }
}

// === impl Kind ===

impl Kind {
    /// The word for one of these in messages and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }

    /// The method that uses one.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tool => "tools/call",
            Self::Resource => "resources/read",
            Self::Prompt => "prompts/get",
        }
    }

    /// The member of the request's params that names the item.
    pub fn name_key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
        }
    }
}

//! The target of a call: a tool, resource or prompt.

use serde::{Deserialize, Serialize};

use crate::name::{ItemId, ServerName};

/// The item that a call asks for, as the caller spelled it and before it is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The name as the caller wrote it, for example `linear__list_issues`. If `server` is given,
    /// the server's own name for the item.
    pub name: String,
    /// The server, if it is known. Then the name is looked up only there.
    pub server: Option<ServerName>,
}

/// The three kinds of item that a server offers.
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

    /// Exactly this item of this server, and no other that the name could stand for.
    pub fn exact(kind: Kind, id: ItemId) -> Self {
        Self { kind, name: id.item, server: Some(id.server) }
    }

    /// Returns the item's id if no lookup is needed.
    pub fn id(&self) -> Option<ItemId> {
        let server = self.server.clone()?;
        Some(ItemId { server, item: self.name.clone() })
    }
}

// === impl Kind ===

impl Kind {
    /// The word in messages and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }

    /// The method that uses an item of this kind.
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

//! How a request to a demo server can fail, and what the client is told.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::server::{Era, MODERN};

/// A request that did not end in a result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("no method `{method}`")]
    UnknownMethod { method: String },
    #[error("{problem}")]
    InvalidParams { problem: String },
    #[error("unsupported protocol version")]
    UnsupportedVersion { requested: String },
    #[error("no tool named `{name}`")]
    UnknownTool { name: String },
    #[error("no prompt named `{name}`")]
    UnknownPrompt { name: String },
    #[error("no resource `{uri}`")]
    UnknownResource { uri: String },
    /// Nothing of that name; as a resource it would be unknown.
    #[error("there is no `{asked}`")]
    Missing { asked: String },
    /// The caller can do better next time; the reason says how.
    #[error("{reason}")]
    Refused { reason: String },
    #[error("cannot {action} `{path}`")]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

// === impl Fault ===

impl Fault {
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into() }
    }

    /// For `map_err`: names what was being done to which file.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl Fn(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::Io { action, path: path.clone(), cause }
    }

    /// The text for the client: the failure with its cause.
    pub(crate) fn words(&self) -> String {
        match self.source() {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }

    /// Whether a tool says this in its own answer, where a model can read it and try again.
    pub(crate) fn belongs_in_answer(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Refused { .. } | Self::Io { .. } => true,
            Self::UnknownMethod { .. }
            | Self::InvalidParams { .. }
            | Self::UnsupportedVersion { .. }
            | Self::UnknownTool { .. }
            | Self::UnknownPrompt { .. }
            | Self::UnknownResource { .. } => false,
        }
    }

    /// The `error` member of a response.
    pub(crate) fn to_error(&self, era: Era) -> Value {
        let mut error = json!({ "code": self.code(era), "message": self.words() });
        let data = match self {
            Self::UnsupportedVersion { requested } => {
                Some(json!({ "supported": [MODERN], "requested": requested }))
            }
            Self::UnknownResource { uri } => Some(json!({ "uri": uri })),
            Self::UnknownMethod { .. }
            | Self::InvalidParams { .. }
            | Self::UnknownTool { .. }
            | Self::UnknownPrompt { .. }
            | Self::Missing { .. }
            | Self::Refused { .. }
            | Self::Io { .. } => None,
        };
        if let (Some(object), Some(data)) = (error.as_object_mut(), data) {
            object.insert("data".to_owned(), data);
        }
        error
    }

    fn code(&self, era: Era) -> i32 {
        match self {
            Self::UnknownMethod { .. } => -32601,
            Self::InvalidParams { .. }
            | Self::UnknownTool { .. }
            | Self::UnknownPrompt { .. }
            | Self::Refused { .. } => -32602,
            Self::UnknownResource { .. } | Self::Missing { .. } => match era {
                Era::Legacy => -32002,
                Era::Modern => -32602,
            },
            Self::Io { .. } => -32603,
            Self::UnsupportedVersion { .. } => -32022,
        }
    }
}

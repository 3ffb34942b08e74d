//! Who asks.

use core::net::IpAddr;

use serde::Serialize;

/// How long a name that a client gives itself may be, in characters.
pub const MAX_LABEL: usize = 128;

/// Whoever did not say who they are.
const ANONYMOUS: &str = "anonymous";

/// The party on whose behalf a call is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Stable identity written to the audit log: `operator`, or the subject of a token.
    pub subject: String,
    /// Roles the access rules look at.
    pub roles: Vec<String>,
    /// Which agent of the client makes the call, in the client's words; informational only, never
    /// a ground for a decision.
    pub caller_id: Option<String>,
    /// What the client calls itself, with its version; informational only as well.
    pub client: Option<String>,
    /// Where its connection comes from, if it came over the network and nobody was asked who they
    /// are. What it may have of what all share is counted by it; nothing else is.
    pub from: Option<IpAddr>,
    /// The door the call came through.
    pub front: Front,
    /// Whether access rules bind it.
    pub binding: Binding,
}

/// Whether access rules bind a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Binding {
    /// They do not: whoever sits at the machine is the operator, and so is who starts the gateway
    /// as a child on its standard streams.
    #[default]
    Free,
    /// They do: it came over the network.
    Access,
}

/// The doors of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Front {
    /// A one-shot command.
    Cli,
    /// The interactive terminal.
    Terminal,
    /// The gateway, over standard input and output or HTTP.
    Gateway,
}

// === impl Caller ===

impl Caller {
    /// The person whose configuration this is, at the given front.
    pub fn operator(front: Front) -> Self {
        Self::named("operator", front)
    }

    /// Somebody who reached the gateway over the network: access rules bind them.
    pub fn remote(subject: impl Into<String>, roles: Vec<String>) -> Self {
        Self { roles, binding: Binding::Access, ..Self::named(subject, Front::Gateway) }
    }

    /// Somebody at the gateway who did not say who they are, and whom no access rules bind.
    pub fn anonymous() -> Self {
        Self::named(ANONYMOUS, Front::Gateway)
    }

    /// Somebody who reached the gateway over the network and did not say who they are.
    pub fn stranger(from: Option<IpAddr>) -> Self {
        Self { from, ..Self::remote(ANONYMOUS, Vec::new()) }
    }

    /// Somebody of whom nothing is known but the name.
    pub fn named(subject: impl Into<String>, front: Front) -> Self {
        Self {
            subject: subject.into(),
            roles: Vec::new(),
            caller_id: None,
            client: None,
            from: None,
            front,
            binding: Binding::Free,
        }
    }
}

/// A name that a client gives itself, as it may be kept and shown: short, on one line, and without
/// characters that nobody sees. `None` when nothing is left of it.
pub fn label(text: &str) -> Option<String> {
    let seen = text.chars().filter(|c| !c.is_control() && !is_unseen(*c));
    let kept: String = seen.take(MAX_LABEL).collect();
    let kept = kept.trim();
    (!kept.is_empty()).then(|| kept.to_owned())
}

/// Characters that show as nothing, or turn the text around them.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

// === impl Front ===

impl Front {
    /// The front's word in configuration, logs and the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Terminal => "terminal",
            Self::Gateway => "gateway",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_client_gives_itself_is_kept_short_and_plain() {
        for (given, kept) in [
            ("planner", Some("planner")),
            ("  sub agent 7 ", Some("sub agent 7")),
            ("a\u{1b}[31m\r\nb", Some("a[31mb")),
            ("ab\u{202e}cd\u{200b}", Some("abcd")),
            ("日本", Some("日本")),
            ("", None),
            (" \n\u{feff}", None),
        ] {
            assert_eq!(label(given).as_deref(), kept, "{given:?}");
        }
        assert_eq!(label(&"ü".repeat(1000)), Some("ü".repeat(MAX_LABEL)));
    }
}

//! Callers: on whose behalf a call is made.

use core::net::IpAddr;

use serde::Serialize;

/// Longest name that a client gives itself, in characters.
pub const MAX_LABEL: usize = 128;

/// The subject of a caller that is not authenticated.
const ANONYMOUS: &str = "anonymous";

/// The party on whose behalf a call is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Stable identity written to the audit log: `operator`, or the subject of a token.
    pub subject: String,
    /// Roles that access rules use.
    pub roles: Vec<String>,
    /// The client's name for the agent that makes the call; informational only, never used for a
    /// decision.
    pub caller_id: Option<String>,
    /// The name and version that the client gives itself; informational only as well.
    pub client: Option<String>,
    /// The peer's IP address, for a network connection without authentication. It is used only for
    /// the caller's share of shared resources.
    pub from: Option<IpAddr>,
    /// The front that the call came through.
    pub front: Front,
    /// Determines if access rules apply.
    pub binding: Binding,
}

/// Determines if access rules apply to a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Binding {
    /// They do not apply: the caller is the operator, at the machine or by starting the gateway as
    /// a child process on its standard streams.
    #[default]
    Free,
    /// They apply: the caller came over the network.
    Access,
}

/// The fronts of the hub.
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
    /// The owner of the configuration, at the given front.
    pub fn operator(front: Front) -> Self {
        Self::named("operator", front)
    }

    /// A caller that reached the gateway over the network; access rules apply.
    pub fn remote(subject: impl Into<String>, roles: Vec<String>) -> Self {
        Self { roles, binding: Binding::Access, ..Self::named(subject, Front::Gateway) }
    }

    /// An unauthenticated caller of the gateway; access rules do not apply.
    pub fn anonymous() -> Self {
        Self::named(ANONYMOUS, Front::Gateway)
    }

    /// An unauthenticated caller that reached the gateway over the network; access rules apply.
    pub fn stranger(from: Option<IpAddr>) -> Self {
        Self { from, ..Self::remote(ANONYMOUS, Vec::new()) }
    }

    /// True if the caller came over the network and proved who it is.
    pub fn is_authenticated(&self) -> bool {
        self.binding == Binding::Access && self.from.is_none() && self.subject != ANONYMOUS
    }

    /// True if both are the same caller: what one holds, the other may use.
    ///
    /// Roles count, so that a token with fewer roles cannot use what one with more roles opened.
    pub fn is_same(&self, other: &Self) -> bool {
        self.subject == other.subject
            && self.front == other.front
            && self.binding == other.binding
            && (self.roles == other.roles || self.sorted_roles() == other.sorted_roles())
    }

    /// A text that tells this caller from others, for what is sealed or stored.
    pub fn identity(&self) -> String {
        let mut identity = self.subject.clone();
        // A line break is in no subject and in no role.
        for role in self.sorted_roles() {
            identity.push('\n');
            identity.push_str(role);
        }
        identity
    }

    fn sorted_roles(&self) -> Vec<&str> {
        let mut roles: Vec<&str> = self.roles.iter().map(String::as_str).collect();
        roles.sort_unstable();
        roles.dedup();
        roles
    }

    /// A caller with only a name; access rules do not apply.
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

/// Cleans a name that a client gives itself, for storage and display.
///
/// The result is short, on one line, and without invisible characters; `None` if nothing is left.
pub fn label(text: &str) -> Option<String> {
    let seen = text.chars().filter(|c| !c.is_control() && !is_unseen(*c));
    let kept: String = seen.take(MAX_LABEL).collect();
    let kept = kept.trim();
    (!kept.is_empty()).then(|| kept.to_owned())
}

/// True for characters that are invisible, or change the direction of the text around them.
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
    fn a_caller_is_the_same_with_the_same_name_and_roles_only() {
        let remote = |subject: &str, roles: &[&str]| {
            Caller::remote(subject, roles.iter().map(ToString::to_string).collect())
        };
        let ann = remote("ann", &["dev", "ops"]);
        let same = Caller { client: Some("x".to_owned()), ..remote("ann", &["ops", "dev", "dev"]) };
        assert!(ann.is_same(&same) && ann.identity() == same.identity());
        for other in [
            remote("ann", &["dev"]),
            remote("ann", &[]),
            remote("Ann", &["dev", "ops"]),
            remote("bob", &["dev", "ops"]),
            remote("ann\ndev", &["ops"]),
        ] {
            assert!(!ann.is_same(&other), "{other:?}");
        }
        assert!(!remote("operator", &[]).is_same(&Caller::operator(Front::Gateway)));
        assert!(ann.is_authenticated());
        for stranger in [Caller::anonymous(), Caller::stranger(None), Caller::operator(Front::Cli)]
        {
            assert!(!stranger.is_authenticated(), "{stranger:?}");
        }
    }

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

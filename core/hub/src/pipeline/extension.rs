//! Names of methods and notifications that belong to extensions of the protocol.
//!
//! A side request carries a method of an extension, and rules decide on it by this name. The
//! protocol's own methods have rules and steps of their own, so none of them can be such a name:
//!
//! ```compile_fail,E0423
//! let forged = capstan_hub::ExtensionMethod("tools/call".into());
//! ```
//! ```compile_fail,E0423
//! let forged = capstan_hub::ExtensionNotification("notifications/cancelled".into());
//! ```

/// Longest name of a method, in bytes.
const MAX_METHOD: usize = 128;

/// The beginnings of the protocol's own methods. No extension has methods that begin like this,
/// except [`ExtensionMethod::READ_DIRECTORY`].
const RESERVED: [&str; 15] = [
    "initialize",
    "ping",
    "rpc.",
    "server/",
    "tools/",
    "prompts/",
    "resources/",
    "completion/",
    "logging/",
    "subscriptions/",
    "tasks/",
    "roots/",
    "sampling/",
    "elicitation/",
    "notifications/",
];

/// The beginnings of the protocol's own notifications.
const RESERVED_NOTIFICATIONS: [&str; 12] = [
    "initialized",
    "cancelled",
    "progress",
    "message",
    "tools/",
    "prompts/",
    "resources/",
    "subscriptions/",
    "tasks",
    "roots/",
    "elicitation/",
    "sampling/",
];

/// The name of a method that may belong to an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionMethod(Box<str>);

/// The name of a notification that may belong to an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionNotification(Box<str>);

// === impl ExtensionMethod ===

impl ExtensionMethod {
    /// The method of an extension that lists a directory of resources.
    pub const READ_DIRECTORY: &'static str = "resources/directory/read";

    /// Methods that change nothing.
    const READS: [&str; 3] = ["skills/list", "skills/get", Self::READ_DIRECTORY];

    /// Reads a name; `None` if it is one of the protocol's own, or one that rules cannot name.
    pub fn parse(method: &str) -> Option<Self> {
        let is_own = || RESERVED.into_iter().any(|reserved| begins(method, reserved));
        let is_extension = is_sound(method) && (method == Self::READ_DIRECTORY || !is_own());
        is_extension.then(|| Self(method.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the item that the method counts as: rules use it as a tool's.
    pub(super) fn item(&self) -> String {
        item(&self.0)
    }

    /// True if the method is known to change nothing.
    pub(super) fn reads(&self) -> bool {
        Self::READS.contains(&&*self.0)
    }
}

// === impl ExtensionNotification ===

impl ExtensionNotification {
    /// Reads a name; `None` if it is one of the protocol's own, or one that rules cannot name.
    pub fn parse(method: &str) -> Option<Self> {
        let rest = method.strip_prefix("notifications/").filter(|_| is_sound(method))?;
        let is_own = RESERVED_NOTIFICATIONS.into_iter().any(|reserved| begins(rest, reserved));
        (!rest.is_empty() && !is_own).then(|| Self(method.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the item that the notification counts as: rules use it as a tool's.
    pub(super) fn item(&self) -> String {
        item(&self.0)
    }
}

fn item(method: &str) -> String {
    format!("method:{method}")
}

fn begins(method: &str, reserved: &str) -> bool {
    method.get(..reserved.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(reserved))
}

/// True if a method consists of the characters that rules can name.
fn is_sound(method: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./$".contains(&byte);
    (1..=MAX_METHOD).contains(&method.len()) && method.bytes().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocols_own_methods_are_no_extensions() {
        for own in [
            "tools/call",
            "Tools/call",
            "tools/new",
            "ping",
            "initialize",
            "server/discover",
            "resources/read",
            "notifications/x/y",
            "tasks/get",
            "sampling/createMessage",
            "",
            "a b",
            "a\n",
            "skills/list\u{0}",
            "method:x",
        ] {
            assert_eq!(ExtensionMethod::parse(own), None, "{own}");
        }
        let directory = ExtensionMethod::READ_DIRECTORY;
        for method in ["skills/list", "skills/get", directory, "acme/search", "com.acme.x"] {
            assert!(ExtensionMethod::parse(method).is_some(), "{method}");
        }
        assert_eq!(ExtensionMethod::parse(&"x".repeat(MAX_METHOD + 1)), None);
    }

    #[test]
    fn the_protocols_own_notifications_are_no_extensions() {
        for own in [
            "notifications/cancelled",
            "notifications/initialized",
            "notifications/progress",
            "notifications/tools/list_changed",
            "notifications/tasks",
            "notifications/message",
            "acme/changed",
            "notifications/",
            "notifications/a b",
        ] {
            assert_eq!(ExtensionNotification::parse(own), None, "{own}");
        }
        assert!(ExtensionNotification::parse("notifications/acme/changed").is_some());
    }
}

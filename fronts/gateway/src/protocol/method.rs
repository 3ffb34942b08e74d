//! The methods of the protocol: their names, the revisions that have them, and their headers.

use capstan_hub::TaskOp;
use capstan_hub::ports::Listing;
use capstan_model::Kind;

use crate::protocol::era::Era;
use crate::protocol::revision::Revision;

/// A method of a client's request, except `initialize`, which creates the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `tools/call`, `resources/read` and `prompts/get`.
    Call(Kind),
    /// `tools/list` and the lists of prompts, resources and templates.
    List(Listing),
    /// `completion/complete`.
    Complete,
    /// `server/discover`.
    Discover,
    /// `ping`.
    Ping,
    /// `logging/setLevel`.
    SetLevel,
    /// `resources/subscribe`.
    Subscribe,
    /// `resources/unsubscribe`.
    Unsubscribe,
    /// `subscriptions/listen`.
    Listen,
    /// `tasks/get` and the other operations on one task.
    Task(TaskOp),
    /// `tasks/list`.
    ListTasks,
}

// === impl Method ===

impl Method {
    /// Finds a method by its name; `None` if this revision has no such method.
    pub(crate) fn of(name: &str, revision: Revision) -> Option<Self> {
        Self::parse(name).filter(|method| method.is_in(revision))
    }

    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "tools/call" => Self::Call(Kind::Tool),
            "resources/read" => Self::Call(Kind::Resource),
            "prompts/get" => Self::Call(Kind::Prompt),
            "tools/list" => Self::List(Listing::Tools),
            "prompts/list" => Self::List(Listing::Prompts),
            "resources/list" => Self::List(Listing::Resources),
            "resources/templates/list" => Self::List(Listing::Templates),
            "completion/complete" => Self::Complete,
            "server/discover" => Self::Discover,
            "ping" => Self::Ping,
            "logging/setLevel" => Self::SetLevel,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "subscriptions/listen" => Self::Listen,
            "tasks/get" => Self::Task(TaskOp::Get),
            "tasks/result" => Self::Task(TaskOp::Result),
            "tasks/update" => Self::Task(TaskOp::Update),
            "tasks/cancel" => Self::Task(TaskOp::Cancel),
            "tasks/list" => Self::ListTasks,
            _ => return None,
        })
    }

    /// True if clients of this revision may use the method.
    fn is_in(self, revision: Revision) -> bool {
        match self {
            Self::Call(_) | Self::List(_) | Self::Complete | Self::Discover => true,
            Self::Ping | Self::SetLevel | Self::Subscribe | Self::Unsubscribe => {
                revision.era() == Era::Legacy
            }
            Self::Listen | Self::Task(TaskOp::Update) => revision.era() == Era::Modern,
            Self::Task(TaskOp::Get | TaskOp::Cancel) => revision >= Revision::V2025_11_25,
            Self::Task(TaskOp::Result) | Self::ListTasks => revision.has_task_member(),
        }
    }

    /// True if the method of the newest revision calls an item.
    pub(crate) fn is_call(method: &str) -> bool {
        matches!(Self::of(method, Revision::LATEST), Some(Self::Call(_)))
    }

    /// The member of the params that names the item. The header `Mcp-Name` repeats it.
    pub(crate) fn name_key(self) -> Option<&'static str> {
        match self {
            Self::Call(kind) => Some(kind.name_key()),
            Self::Task(_) => Some("taskId"),
            Self::List(_)
            | Self::Complete
            | Self::Discover
            | Self::Ping
            | Self::SetLevel
            | Self::Subscribe
            | Self::Unsubscribe
            | Self::Listen
            | Self::ListTasks => None,
        }
    }

    /// True if a definition may require headers that repeat arguments.
    pub(crate) fn has_argument_headers(self) -> bool {
        self == Self::Call(Kind::Tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_revision_has_its_own_methods() {
        let all = Revision::ALL;
        let [modern, newest_legacy, ..] = all;
        let legacy: Vec<Revision> =
            all.into_iter().filter(|revision| revision.era() == Era::Legacy).collect();
        for (name, revisions) in [
            ("tools/call", &all[..]),
            ("resources/templates/list", &all[..]),
            ("completion/complete", &all[..]),
            ("server/discover", &all[..]),
            ("ping", &legacy[..]),
            ("logging/setLevel", &legacy[..]),
            ("resources/subscribe", &legacy[..]),
            ("resources/unsubscribe", &legacy[..]),
            ("subscriptions/listen", &[modern][..]),
            ("tasks/get", &[modern, newest_legacy][..]),
            ("tasks/cancel", &[modern, newest_legacy][..]),
            ("tasks/update", &[modern][..]),
            ("tasks/result", &[newest_legacy][..]),
            ("tasks/list", &[newest_legacy][..]),
            ("initialize", &[][..]),
            ("TOOLS/CALL", &[][..]),
            ("", &[][..]),
        ] {
            for revision in all {
                let expected = revisions.contains(&revision);
                let found = Method::of(name, revision).is_some();
                assert_eq!(found, expected, "{name} in {}", revision.as_str());
            }
        }
    }

    #[test]
    fn a_removed_method_has_no_header_for_its_name() {
        let key = |name, revision| Method::of(name, revision).and_then(Method::name_key);
        assert_eq!(key("tasks/get", Revision::LATEST), Some("taskId"));
        assert_eq!(key("tasks/result", Revision::LATEST), None);
        assert_eq!(key("resources/read", Revision::LATEST), Some("uri"));
        assert_eq!(key("prompts/get", Revision::LATEST), Some("name"));
    }
}

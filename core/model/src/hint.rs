//! Hints for the reader of an error: what to do about it.

use crate::{By, CallError, ItemId, ServerName};

/// The hint for an answer above the limit.
const LARGE_ANSWER: &str = "raise `max_answer` under `[screen]`, or ask for less";

/// The hint for an answer that was blocked.
const BLOCKED_ANSWER: &str = "the call was made; to get such answers, set `answers = \"flag\"` under `[servers.NAME.screen]`";

impl CallError {
    /// Returns a hint on what to do about the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { kind, nearest, .. } => match nearest.as_slice() {
                [] => Some(format!("`capstan {}s` lists all", kind.as_str())),
                names => Some(format!("did you mean {}?", quoted_list(names))),
            },
            Self::Hidden { .. } => Some("only the server can fix this".to_owned()),
            Self::InvalidArguments { item, .. } => {
                Some(format!("`capstan tools {item}` shows its arguments"))
            }
            Self::Denied { item, .. } => Some(why(item)),
            Self::FlowBlocked { item, .. } => {
                Some(format!("begin a new conversation; {}", why(item)))
            }
            Self::NotApproved { item, rule, by, open, .. } => {
                Some(how_to_allow(item, rule, *by, open.as_deref()))
            }
            Self::HeaderMismatch { .. } => {
                Some("repeat the argument in the header that the tool's schema names".to_owned())
            }
            Self::QuotaExceeded { .. } => {
                Some("raise `max_tool_calls_per_session` under `[tools]`".to_owned())
            }
            Self::RateExceeded { free_in, .. } => {
                let seconds = free_in.as_millis().div_ceil(1000).max(1);
                Some(format!("try again in {seconds}s, or change `rates` under `[tools]`"))
            }
            Self::DefinitionChanged { .. } => {
                Some("list the server's items and call it again".to_owned())
            }
            Self::Unrecordable { .. } | Self::Unrecorded { .. } => {
                Some("free disk space, or set `on_full = \"degrade\"` under `[audit]`".to_owned())
            }
            Self::Unreachable { server, .. } => {
                Some(format!("`capstan doctor {server}` shows details"))
            }
            Self::OutcomeUnknown { .. } | Self::Stopped => {
                Some("check whether it took effect before you call it again".to_owned())
            }
            Self::TimedOut { server, .. } => {
                Some(format!("raise `timeout` under `[servers.{server}]`"))
            }
            Self::AnswerTooLarge { .. } => Some(LARGE_ANSWER.to_owned()),
            Self::AnswerBlocked { .. } => Some(BLOCKED_ANSWER.to_owned()),
            Self::Unauthorized { server, .. } => Some(headers(server)),
            Self::RateLimited { retry_after: Some(wait), .. } => {
                Some(format!("try again in {wait:?}"))
            }
            Self::Status { server, status: 300..=499, .. } => {
                Some(format!("check `url` under `[servers.{server}]`"))
            }
            // Messages about logins and blocked addresses say what to do.
            Self::Refused { .. }
            | Self::NeedsLogin { .. }
            | Self::NeedsSignIn { .. }
            | Self::AddressBlocked { .. }
            | Self::LedElsewhere { .. }
            | Self::RateLimited { retry_after: None, .. }
            | Self::Status { .. }
            | Self::Server { .. }
            | Self::Protocol { .. } => None,
        }
    }
}

/// Names the place of configured credentials.
fn headers(server: &ServerName) -> String {
    format!("check `headers` under `[servers.{server}]`")
}

fn why(item: &str) -> String {
    format!("`capstan why {item}` shows every rule that applies to it")
}

/// Describes how to allow a call that was not approved.
fn how_to_allow(item: &ItemId, rule: &str, by: By, open: Option<&str>) -> String {
    let always = match by {
        By::Pins => {
            let server = &item.server;
            format!("to allow it without asking, pin it: `capstan pins {server} --approve`")
        }
        // A rule that asks takes precedence over one that allows.
        By::Rule => format!("to allow `{item}` without asking, change the rule `{rule}`"),
        By::Default => {
            format!(
                "to allow it without asking, write `allow = [\"{item}\"]` under `[permissions]`"
            )
        }
    };
    match open {
        Some(id) => format!(
            "the operator can still approve it (`capstan approvals yes {id}`); then \
             call it again; {always}"
        ),
        None => format!(
            "the operator can run it on a terminal, which asks (`--yes` answers there); {always}"
        ),
    }
}

fn quoted_list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unapproved;

    #[test]
    fn the_origin_of_a_rule_decides_how_to_allow_a_call_and_its_text_does_not() {
        for text in ["servers.a: a new tool, see capstan pins a", "permissions.ask: x", "default"] {
            for (by, expected) in [
                (By::Pins, "pin it: `capstan pins a --approve`"),
                (By::Rule, "change the rule `"),
                (By::Default, "write `allow = [\"a__x\"]` under `[permissions]`"),
            ] {
                let item = ItemId { server: "a".parse().unwrap(), item: "x".to_owned() };
                let rule = text.to_owned();
                let error =
                    CallError::NotApproved { item, rule, by, why: Unapproved::Nobody, open: None };
                let hint = error.hint().unwrap_or_default();
                assert!(hint.contains(expected), "{text} {by:?}: {hint}");
            }
        }
    }
}

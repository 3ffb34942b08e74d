//! The members of a request's `_meta` that the gateway uses, read in one pass.

use capstan_model::caller::label;
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::protocol::{
    META_CAPABILITIES, META_CLIENT, META_LEVEL, META_PROGRESS, META_VERSION,
};
use capstan_wire::{Json, object};

use crate::protocol::log_level::Level;

/// `_meta` keys that name the agent behind a call; the first one present counts.
pub(crate) const CALLER_ID: [&str; 2] = ["capstan/caller_id", "caller_id"];

/// The members of a `_meta`, each as it was written unless its type is given.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    /// The revision that the request is written in.
    pub(crate) version: Option<Json>,
    /// The capabilities of the client.
    pub(crate) capabilities: Option<Json>,
    /// The name and version of the client.
    pub(crate) client: Option<Json>,
    /// The lowest log level that the client wants to receive.
    pub(crate) level: Option<Level>,
    /// The token for progress notifications.
    pub(crate) progress: Option<Json>,
    /// The agent that makes the call, cleaned.
    pub(crate) agent: Option<String>,
    /// True if it is known to describe the client and nothing else, and to have one reading only.
    pub(crate) only_describes: bool,
}

// === impl RequestMeta ===

impl RequestMeta {
    /// Reads a `_meta`; one that is not an object has no members.
    pub(crate) fn read(meta: &Json) -> Self {
        let [own, common] = CALLER_ID;
        let keys =
            [META_VERSION, META_CAPABILITIES, META_CLIENT, META_LEVEL, META_PROGRESS, own, common];
        let [version, capabilities, client, level, progress, own, common] =
            object::peek(meta, keys);
        let level = level.and_then(|level| Level::parse(&level.text()?));
        let agent = [own, common].into_iter().flatten().find_map(|name| label(&name.text()?));
        Self { version, capabilities, client, level, progress, agent, only_describes: false }
    }

    /// Reads a `_meta` that will be used for several requests, and finds out if it only describes
    /// the client.
    pub(crate) fn read_once(meta: &Json) -> Self {
        let read = Self::read(meta);
        let described = [&read.version, &read.capabilities, &read.client];
        let described = described.into_iter().filter(|member| member.is_some()).count();
        let members = object::members(meta).map_or(0, |members| members.len());
        let only_describes = described == members && refuse_duplicates(meta, &[]).is_ok();
        Self { only_describes, ..read }
    }

    /// Reads the `_meta` of params.
    pub(crate) fn of(params: &Json) -> Option<Self> {
        object::get(params, "_meta").map(|meta| Self::read(&meta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_only_describes_its_client_if_it_has_nothing_else_and_one_reading() {
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let able = r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;
        let client = r#""io.modelcontextprotocol/clientInfo":{"name":"c"}"#;
        for (members, expected) in [
            (vec![version, able, client], true),
            (vec![able, version], true),
            (vec![version, able, r#""progressToken":1"#], false),
            (vec![version, able, r#""traceparent":"00""#], false),
            (vec![version, able, r#""io.modelcontextprotocol/logLevel":"info""#], false),
            (vec![version, able, r#""caller_id":"a""#], false),
            (vec![version, version, able], false),
            (vec![version, r#""io.modelcontextprotocol/clientInfo":{"a":1,"a":2}"#], false),
            (vec![version, r#""io.modelcontextprotocol/clientInfo":"\ud800""#], false),
        ] {
            let meta = Json::parse(format!("{{{}}}", members.join(","))).unwrap();
            assert_eq!(RequestMeta::read_once(&meta).only_describes, expected, "{meta}");
            assert!(!RequestMeta::read(&meta).only_describes);
        }
    }
}

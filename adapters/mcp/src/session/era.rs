//! The two eras of the protocol, and the differences between them in requests and results.

use capstan_hub::ports::Wishes;
use capstan_wire::protocol::INPUT_REQUIRED;
use capstan_wire::{BadJson, Json, compose, object, protocol};

use crate::session::client::{RequestedBy, client_metadata};
use crate::settings::CommonSettings;

/// The members of `_meta` with which a modern client describes itself in each request. They are
/// removed for a legacy server: it got this in the handshake, and one that supports both eras could
/// mistake the request for a modern one.
const CLIENT_METADATA: [&str; 4] = [
    protocol::META_VERSION,
    protocol::META_CAPABILITIES,
    protocol::META_CLIENT,
    protocol::META_LEVEL,
];

/// The era that a server speaks, chosen once, in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25: the client initializes a session, and the server may send it requests.
    Legacy {
        /// The revision that was agreed on.
        revision: &'static str,
    },
    /// From 2026-07-28 on: each request describes its client, results ask for input, and the client
    /// subscribes to notifications.
    Modern,
}

// === impl Era ===

impl Era {
    /// The revision that is spoken.
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Self::Legacy { revision } => revision,
            Self::Modern => protocol::MODERN,
        }
    }

    /// True from 2026-07-28 on.
    pub(crate) fn is_modern(self) -> bool {
        self == Self::Modern
    }

    /// The method of a request whose only purpose is an answer.
    pub(crate) fn ping_method(self) -> &'static str {
        match self {
            Self::Legacy { .. } => "ping",
            Self::Modern => "server/discover",
        }
    }

    /// True if the result asks for input before the call can continue.
    pub(crate) fn requires_input(self, result: &Json) -> bool {
        self == Self::Modern
            && object::may_mention(result, &[INPUT_REQUIRED])
            && object::get_string(result, "resultType").as_deref() == Some(INPUT_REQUIRED)
    }

    /// True if a large result may be streamed to a caller with these wishes.
    ///
    /// A modern result may ask for input. A caller that does not take such a result unchanged gets
    /// the result as a whole, after its questions are answered.
    pub(crate) fn may_stream(self, wishes: Wishes) -> bool {
        wishes.flow && (self != Self::Modern || wishes.input_required)
    }

    /// The params of a request that belongs to no call.
    ///
    /// A progress token is removed: it would refer to another request of this connection, or to
    /// none. Members that a modern client set take precedence over ours.
    pub(crate) fn own_params(
        self,
        params: &Json,
        settings: &CommonSettings,
    ) -> Result<Json, BadJson> {
        let params = without_meta(params, &[protocol::META_PROGRESS]);
        if self != Self::Modern {
            return Ok(without_meta(&params, &CLIENT_METADATA));
        }
        let theirs = object::get(&params, "_meta").and_then(|meta| object::members(&meta).ok());
        let mut meta = theirs.unwrap_or_default();
        for (key, value) in client_metadata(settings, RequestedBy::Us) {
            if !meta.iter().any(|(name, _)| name == key) {
                meta.push((key.to_owned(), value));
            }
        }
        object::with_member(&params, "_meta", &compose_members(&meta))
    }

    /// The params of a call: those of the client, which otherwise stay unchanged, with the metadata
    /// that the era requires and the progress token, if the caller wants progress. A modern server
    /// also gets the log level, unless the client's params have one.
    pub(crate) fn call_params(
        self,
        params: &Json,
        progress: Option<u64>,
        level: Option<&str>,
        requester: impl FnOnce() -> RequestedBy,
        settings: &CommonSettings,
    ) -> Result<Json, BadJson> {
        let (params, ours) = match self {
            Self::Legacy { .. } => (without_meta(params, &CLIENT_METADATA), None),
            Self::Modern => (params.clone(), Some(client_metadata(settings, requester()))),
        };
        if progress.is_none() && ours.is_none() {
            return Ok(params);
        }
        let client = object::get(&params, "_meta").unwrap_or_else(Json::empty_object);
        let mut meta = object::members(&client)?;
        let mut set = |key: &str, value: Json| match meta.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => meta.push((key.to_owned(), value)),
        };
        if let Some(token) = progress {
            set(protocol::META_PROGRESS, compose::number(token));
        }
        if let Some(ours) = ours {
            for (key, value) in ours {
                set(key, value);
            }
            if let Some(level) = level
                && !meta.iter().any(|(name, _)| name == protocol::META_LEVEL)
            {
                meta.push((protocol::META_LEVEL.to_owned(), compose::string(level)));
            }
        }
        object::with_member(&params, "_meta", &compose_members(&meta))
    }
}

/// Removes these members of `_meta` from the params, and `_meta` itself if it is then empty.
fn without_meta(params: &Json, keys: &[&str]) -> Json {
    object::without_inner(params, "_meta", keys).unwrap_or_else(|| params.clone())
}

fn compose_members(members: &[(String, Json)]) -> Json {
    let members: Vec<(&str, &Json)> = members.iter().map(|(k, v)| (k.as_str(), v)).collect();
    compose::object(&members)
}

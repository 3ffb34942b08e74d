//! Our description of the client, in the handshake and in modern requests.

use std::sync::LazyLock;

use capstan_hub::BackChannel;
use capstan_wire::{Json, compose, object, protocol};

use crate::settings::{CommonSettings, Elicitation, Others};

/// The requester of a message to a modern server.
pub(crate) enum RequestedBy {
    /// We ourselves, for example for a list.
    Us,
    /// A person.
    Person,
    /// A client program with these capabilities.
    Program(Json),
}

// === impl RequestedBy ===

impl RequestedBy {
    /// The client behind a back channel.
    pub(crate) fn client(back: &BackChannel) -> Self {
        back.capabilities().map_or(Self::Person, Self::Program)
    }
}

/// The client's name and version, in both eras.
pub(crate) fn client_info() -> Json {
    static INFO: LazyLock<Json> = LazyLock::new(|| {
        let name = compose::string("capstan");
        let version = compose::string(env!("CARGO_PKG_VERSION"));
        compose::object(&[("name", &name), ("version", &version)])
    });
    INFO.clone()
}

/// The capabilities declared to a legacy server in the handshake.
/// They are everything that any caller may support; the caller itself is asked later. They are the
/// same for people and programs, because some servers offer tools depending on them, and tools that
/// were approved for one would be new to the other.
pub(crate) fn capabilities(settings: &CommonSettings) -> Json {
    let roots = compose::object(&[("listChanged", &compose::truth())]);
    let offered = offered(settings, Others::Clients);
    object::with_member(&offered, "roots", &roots).unwrap_or(offered)
}

fn offered(settings: &CommonSettings, others: Others) -> Json {
    let empty = Json::empty_object();
    let both = compose::object(&[("form", &empty), ("url", &empty)]);
    let mut able = vec![("roots", &empty)];
    match settings.elicitation {
        Elicitation::Offered => able.push(("elicitation", &both)),
        Elicitation::Off => {}
    }
    match others {
        Others::Clients => able.push(("sampling", &empty)),
        Others::People => {}
    }
    compose::object(&able)
}

/// The capabilities of the caller, which a modern server gets with every request.
fn caller_capabilities(settings: &CommonSettings, requester: RequestedBy) -> Json {
    let able = match (requester, settings.others) {
        (RequestedBy::Program(able), _) => able,
        // A person may use a shell of a gateway's operator.
        (RequestedBy::Person, _) | (RequestedBy::Us, Others::People) => {
            return offered(settings, Others::People);
        }
        (RequestedBy::Us, Others::Clients) => return Json::empty_object(),
    };
    match settings.elicitation {
        Elicitation::Offered => able,
        Elicitation::Off => object::without_member(&able, "elicitation").unwrap_or(able),
    }
}

/// The `_meta` of a modern request that belongs to no call.
pub(crate) fn own_metadata(settings: &CommonSettings) -> Json {
    let members = client_metadata(settings, RequestedBy::Us);
    compose::object(&members.each_ref().map(|(key, value)| (*key, value)))
}

/// The members of `_meta` in every modern request: the revision, and the client that sends it.
pub(crate) fn client_metadata(
    settings: &CommonSettings,
    requester: RequestedBy,
) -> [(&'static str, Json); 3] {
    static REVISION: LazyLock<Json> = LazyLock::new(|| compose::string(protocol::MODERN));
    [
        (protocol::META_VERSION, REVISION.clone()),
        (protocol::META_CLIENT, client_info()),
        (protocol::META_CAPABILITIES, caller_capabilities(settings, requester)),
    ]
}

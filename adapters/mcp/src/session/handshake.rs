//! Detects the era of the protocol that a server speaks, and reads its description.
//!
//! A modern server is recognised by its answer to `server/discover`. Legacy servers react to it
//! with an error, with an empty result, not at all, or by ending. Each of these means legacy, and
//! after none of them is the server given up.

use std::time::Duration;

use capstan_hub::BackChannel;
use capstan_hub::ports::About;
use capstan_wire::{Json, Reply, compose, object, protocol};

use crate::channel::{Channel, Request, RequestError};
use crate::fault::Fault;
use crate::settings::{Elicitation, Era, Others, Terms};

/// How long to wait for the probe before the legacy handshake is tried in parallel.
///
/// A server that is slow to start loses nothing: the first answer decides.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Hello {
    pub(crate) modern: bool,
    pub(crate) about: About,
}

/// The requester of a message to a modern server.
pub(crate) enum RequestedBy {
    /// We ourselves, for example for a list.
    Us,
    /// A person.
    Person,
    /// A client program with these capabilities.
    Program(Json),
}

/// The reason why there is no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The server ended during the probe; it may work with the legacy handshake.
    #[error("{0}")]
    DiedInProbe(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(Fault),
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
    let (name, version) = (compose::string("capstan"), compose::string(env!("CARGO_PKG_VERSION")));
    compose::object(&[("name", &name), ("version", &version)])
}

/// The capabilities declared to a legacy server in the handshake.
/// They are everything that any caller may support; the caller itself is asked later. They are the
/// same for people and programs, because some servers offer tools depending on them, and tools that
/// were approved for one would be new to the other.
pub(crate) fn capabilities(settings: &Terms) -> Json {
    offered(settings, Others::Clients)
}

fn offered(settings: &Terms, others: Others) -> Json {
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
fn caller_capabilities(settings: &Terms, requester: RequestedBy) -> Json {
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

/// Performs the handshake in the era that the settings specify.
pub(crate) async fn shake_hands(
    connection: &dyn Channel,
    settings: &Terms,
    era: Era,
) -> Result<Hello, HandshakeError> {
    match era {
        Era::Legacy => initialize(connection, settings).await,
        Era::Modern => match ask_modern(connection, settings).await {
            Discovered::Modern(hello) => {
                connection.agree(&hello.about.protocol);
                Ok(hello)
            }
            Discovered::Legacy => Err(failed(
                "it does not speak 2026-07-28, which `protocol = \"modern\"` asks for".to_owned(),
            )),
            Discovered::Died(reason) => Err(failed(reason)),
            Discovered::Failed(fault) => Err(HandshakeError::Failed(fault)),
        },
        Era::Auto => probe(connection, settings).await,
    }
}

/// Sends the modern probe, and after a while the legacy handshake in parallel.
async fn probe(connection: &dyn Channel, settings: &Terms) -> Result<Hello, HandshakeError> {
    let discovery = ask_modern(connection, settings);
    tokio::pin!(discovery);
    // Sent at most once: many servers do not accept a second handshake.
    let handshake = initialize(connection, settings);
    tokio::pin!(handshake);
    let early = tokio::time::timeout(PROBE_WAIT, &mut discovery).await;
    let discovered = match early {
        Ok(discovered) => discovered,
        Err(_) => {
            tokio::select! {
                biased;
                discovered = &mut discovery => discovered,
                hello = &mut handshake => match hello {
                    Ok(hello) => return Ok(hello),
                    // A modern server has no handshake, and may reject it before it answers the
                    // probe.
                    Err(error) => match discovery.await {
                        modern @ Discovered::Modern(_) => modern,
                        Discovered::Legacy | Discovered::Died(_) | Discovered::Failed(_) => {
                            return Err(error);
                        }
                    },
                },
            }
        }
    };
    match discovered {
        Discovered::Modern(hello) => {
            connection.agree(&hello.about.protocol);
            Ok(hello)
        }
        Discovered::Legacy => handshake.await,
        Discovered::Died(reason) => Err(HandshakeError::DiedInProbe(reason)),
        Discovered::Failed(fault) => Err(HandshakeError::Failed(fault)),
    }
}

enum Discovered {
    Modern(Hello),
    Legacy,
    Died(String),
    Failed(Fault),
}

/// Sends the modern probe; once more if the server is modern but rejects the revision.
async fn ask_modern(connection: &dyn Channel, settings: &Terms) -> Discovered {
    let reply = discover(connection, settings).await;
    let Ok(Reply::Error(error)) = &reply else { return read_discovery(reply) };
    if error.code != protocol::UNSUPPORTED_VERSION {
        return Discovered::Legacy;
    }
    let supported: Vec<String> = error
        .data
        .as_ref()
        .and_then(|data| object::get(data, "supported")?.read().ok())
        .unwrap_or_default();
    if supported.iter().any(|version| version == protocol::MODERN) {
        return read_discovery(discover(connection, settings).await);
    }
    if supported.iter().any(|version| protocol::LEGACY_REVISIONS.contains(&version.as_str())) {
        return Discovered::Legacy;
    }
    let known = supported.join(", ");
    Discovered::Failed(Fault::Unreachable(format!(
        "it speaks revisions `{known}`, of which none is known here"
    )))
}

async fn discover(connection: &dyn Channel, settings: &Terms) -> Result<Reply, RequestError> {
    let params = compose::object(&[("_meta", &modern_meta(settings, RequestedBy::Us))]);
    let id = connection.requests().next_id();
    let limit = settings.startup_timeout;
    let method = "server/discover";
    connection.request(Request { id, method, params: &params, limit, recipient: None }).await
}

/// The `_meta` of every modern request.
pub(crate) fn modern_meta(settings: &Terms, requester: RequestedBy) -> Json {
    let version = compose::string(protocol::MODERN);
    let (client, able) = (client_info(), caller_capabilities(settings, requester));
    compose::object(&[
        (protocol::META_VERSION, &version),
        (protocol::META_CLIENT, &client),
        (protocol::META_CAPABILITIES, &able),
    ])
}

/// Reads the reply to the probe. A reply that is not clearly modern means legacy.
fn read_discovery(reply: Result<Reply, RequestError>) -> Discovered {
    let result = match reply {
        Ok(Reply::Result(result)) => result,
        Ok(Reply::Error(_)) | Err(RequestError::TimedOut(_)) => return Discovered::Legacy,
        // Any answer of a legacy HTTP server to an unknown method.
        Err(RequestError::Refused(Fault::Status { .. } | Fault::NotMcp(_) | Fault::TooLong(_))) => {
            return Discovered::Legacy;
        }
        Err(RequestError::Refused(fault)) => return Discovered::Failed(fault),
        Err(RequestError::NotSent(reason) | RequestError::Gone(reason)) => {
            return Discovered::Died(reason);
        }
    };
    let versions: Vec<String> = object::get(&result, "supportedVersions")
        .and_then(|versions| versions.read().ok())
        .unwrap_or_default();
    if !versions.iter().any(|version| version == protocol::MODERN) {
        return Discovered::Legacy;
    }
    let info =
        object::get(&result, "_meta").and_then(|meta| object::get(&meta, protocol::META_SERVER));
    let about = about(protocol::MODERN.to_owned(), &result, info.as_ref());
    Discovered::Modern(Hello { modern: true, about })
}

async fn initialize(connection: &dyn Channel, settings: &Terms) -> Result<Hello, HandshakeError> {
    let version = compose::string(protocol::LATEST_LEGACY);
    let (client, able) = (client_info(), capabilities(settings));
    let params = compose::object(&[
        ("protocolVersion", &version),
        ("capabilities", &able),
        ("clientInfo", &client),
    ]);
    let id = connection.requests().next_id();
    let limit = settings.startup_timeout;
    let request = Request { id, method: "initialize", params: &params, limit, recipient: None };
    let reply = connection.request(request).await;
    let result = match reply {
        Ok(Reply::Result(result)) => result,
        Ok(Reply::Error(error)) => {
            return Err(failed(format!("it refused the handshake: {}", error.message)));
        }
        Err(RequestError::NotSent(reason) | RequestError::Gone(reason)) => {
            return Err(failed(reason));
        }
        Err(RequestError::Refused(fault)) => return Err(HandshakeError::Failed(fault)),
        Err(RequestError::TimedOut(limit)) => {
            return Err(failed(format!("it did not answer within {limit:?}")));
        }
    };
    let version = object::get_string(&result, "protocolVersion").unwrap_or_default();
    if !protocol::LEGACY_REVISIONS.contains(&version.as_str()) {
        return Err(failed(format!("it speaks revision `{version}`, which is not known here")));
    }
    connection.agree(&version);
    connection.notify("notifications/initialized", None).await;
    let info = object::get(&result, "serverInfo");
    Ok(Hello { modern: false, about: about(version, &result, info.as_ref()) })
}

fn failed(reason: String) -> HandshakeError {
    HandshakeError::Failed(Fault::Unreachable(reason))
}

fn about(protocol: String, result: &Json, info: Option<&Json>) -> About {
    let of_info = |key| info.and_then(|info| object::get_string(info, key));
    About {
        protocol,
        title: of_info("title").or_else(|| of_info("name")),
        version: of_info("version"),
        instructions: object::get_string(result, "instructions"),
        capabilities: object::get(result, "capabilities"),
    }
}

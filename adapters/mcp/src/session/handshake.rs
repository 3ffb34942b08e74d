//! Detects the era of the protocol that a server speaks, and reads its description.
//!
//! A modern server is recognised by its answer to `server/discover`. Legacy servers react to it
//! with an error, with an empty result, not at all, or by ending. Each of these means legacy, and
//! after none of them is the server given up.

use std::time::Duration;

use capstan_hub::ports::{self, About, Caching};
use capstan_model::rpc_code;
use capstan_wire::{Json, Reply, compose, object, protocol};

use crate::channel::{Channel, Request, RequestError, Sent};
use crate::fault::Fault;
use crate::session::client::{capabilities, client_info, own_metadata};
use crate::session::era::Era;
use crate::settings::{CommonSettings, Era as EraSetting};

/// How long to wait for the probe before the legacy handshake is tried in parallel.
///
/// A server that is slow to start loses nothing: the first answer decides.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) era: Era,
    pub(crate) about: About,
    /// True if the server is known to refuse the other era, or may not be asked for it.
    pub(crate) is_only_era: bool,
}

/// The eras that a handshake tries, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Legacy,
    Modern,
    ModernFirst,
    LegacyFirst,
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

// === impl Handshake ===

impl Handshake {
    fn new(era: Era, result: &Json, info: Option<&Json>) -> Self {
        let of_info = |key| info.and_then(|info| object::get_string(info, key));
        let about = About {
            protocol: era.revision().to_owned(),
            title: of_info("title").or_else(|| of_info("name")),
            version: of_info("version"),
            instructions: object::get_string(result, "instructions"),
            capabilities: object::get(result, "capabilities"),
            info: info.cloned(),
            caching: Caching::of(result),
        };
        Self { era, about, is_only_era: false }
    }
}

// === impl Order ===

impl Order {
    /// The order that the settings specify. Where they leave the choice, the era that the first
    /// caller wishes comes first.
    pub(crate) fn of(setting: EraSetting, wish: Option<ports::Era>) -> Self {
        match (setting, wish) {
            (EraSetting::Legacy, _) => Self::Legacy,
            (EraSetting::Modern, _) => Self::Modern,
            (EraSetting::Auto, Some(ports::Era::Legacy)) => Self::LegacyFirst,
            (EraSetting::Auto, Some(ports::Era::Modern) | None) => Self::ModernFirst,
        }
    }
}

/// Performs the handshake in the first of the eras that the server accepts.
pub(crate) async fn perform(
    connection: &dyn Channel,
    settings: &CommonSettings,
    order: Order,
) -> Result<Handshake, HandshakeError> {
    let only = |handshake| Handshake { is_only_era: true, ..handshake };
    match order {
        Order::Legacy => initialize(connection, settings).await.map(only),
        Order::Modern => match ask_modern(connection, settings).await {
            Discovered::Modern(handshake) => {
                connection.agree(handshake.era);
                Ok(only(handshake))
            }
            Discovered::Legacy => Err(failed(
                "it does not speak 2026-07-28, which `protocol = \"modern\"` requires".to_owned(),
            )),
            Discovered::Died(reason) => Err(failed(reason)),
            Discovered::Failed(fault) => Err(HandshakeError::Failed(fault)),
        },
        Order::ModernFirst => {
            let handshake = probe(connection, settings).await?;
            let is_only_era = handshake.era != Era::Modern;
            Ok(Handshake { is_only_era, ..handshake })
        }
        Order::LegacyFirst => match initialize(connection, settings).await {
            Ok(handshake) => Ok(handshake),
            // A modern server has no handshake.
            Err(refusal) => match ask_modern(connection, settings).await {
                Discovered::Modern(handshake) => {
                    connection.agree(handshake.era);
                    Ok(only(handshake))
                }
                Discovered::Legacy | Discovered::Died(_) | Discovered::Failed(_) => Err(refusal),
            },
        },
    }
}

/// Sends the modern probe, and after a while the legacy handshake in parallel.
async fn probe(
    connection: &dyn Channel,
    settings: &CommonSettings,
) -> Result<Handshake, HandshakeError> {
    let discovery = ask_modern(connection, settings);
    tokio::pin!(discovery);
    // Sent at most once: many servers do not accept a second handshake.
    let initializing = initialize(connection, settings);
    tokio::pin!(initializing);
    let early = tokio::time::timeout(PROBE_WAIT, &mut discovery).await;
    let discovered = match early {
        Ok(discovered) => discovered,
        Err(_) => {
            tokio::select! {
                biased;
                discovered = &mut discovery => discovered,
                initialized = &mut initializing => match initialized {
                    Ok(handshake) => return Ok(handshake),
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
        Discovered::Modern(handshake) => {
            connection.agree(handshake.era);
            Ok(handshake)
        }
        Discovered::Legacy => initializing.await,
        Discovered::Died(reason) => Err(HandshakeError::DiedInProbe(reason)),
        Discovered::Failed(fault) => Err(HandshakeError::Failed(fault)),
    }
}

enum Discovered {
    Modern(Handshake),
    Legacy,
    Died(String),
    Failed(Fault),
}

/// Sends the modern probe; once more if the server is modern but rejects the revision.
async fn ask_modern(connection: &dyn Channel, settings: &CommonSettings) -> Discovered {
    let reply = discover(connection, settings).await;
    let Ok(Reply::Error(error)) = &reply else { return read_discovery(reply) };
    if error.code != rpc_code::UNSUPPORTED_VERSION {
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
        "it speaks only revisions `{known}`, which Capstan does not support"
    )))
}

async fn discover(
    connection: &dyn Channel,
    settings: &CommonSettings,
) -> Result<Reply, RequestError> {
    let params = compose::object(&[("_meta", &own_metadata(settings))]);
    let id = connection.requests().next_id();
    let limit = settings.startup_timeout;
    let method = "server/discover";
    connection.request(Request { id, method, params: &params, limit, recipient: None }).await
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
    Discovered::Modern(Handshake::new(Era::Modern, &result, info.as_ref()))
}

async fn initialize(
    connection: &dyn Channel,
    settings: &CommonSettings,
) -> Result<Handshake, HandshakeError> {
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
    let Some(revision) = protocol::LEGACY_REVISIONS.into_iter().find(|known| *known == version)
    else {
        return Err(failed(format!(
            "it speaks revision `{version}`, which Capstan does not support"
        )));
    };
    let era = Era::Legacy { revision };
    connection.agree(era);
    let _: Sent = connection.notify("notifications/initialized", None).await;
    let info = object::get(&result, "serverInfo");
    Ok(Handshake::new(era, &result, info.as_ref()))
}

fn failed(reason: String) -> HandshakeError {
    HandshakeError::Failed(Fault::Unreachable(reason))
}

//! The gateway's description of itself, in place of a server's.

use capstan_wire::{Json, compose};

/// Name and version of the gateway.
pub(crate) fn server_info() -> Json {
    let (name, version) = (compose::string("capstan"), compose::string(env!("CARGO_PKG_VERSION")));
    compose::object(&[("name", &name), ("version", &version)])
}

/// The `_meta` of the gateway's own results to modern clients.
pub(crate) fn server_meta() -> Json {
    server_meta_of(&server_info())
}

/// The `_meta` of a result that names this server.
pub(crate) fn server_meta_of(info: &Json) -> Json {
    compose::object(&[("io.modelcontextprotocol/serverInfo", info)])
}

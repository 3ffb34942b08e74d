//! The shape of `[gateway]`.

use schemars::JsonSchema;

use super::{Duration, Size};

/// Where `capstan serve --http` listens, and to whom; a project file has no say in it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Gateway {
    /// The address: `HOST:PORT`, or `:PORT` for this machine only. Port 0 picks one.
    #[schemars(extend("default" = "127.0.0.1:8080"))]
    listen: String,
    /// An address for `/metrics` alone: `HOST:PORT`, or `:PORT` for this machine only. It names all servers.
    metrics_listen: String,
    /// The address that clients are told, where it is another: behind a proxy, or with a name.
    public_url: String,
    /// Names by which clients may call the gateway, beside `localhost` and the address it listens on.
    allowed_hosts: Vec<String>,
    /// Web pages that may use the gateway, beside those of this machine: `https://app.example.com`.
    allowed_origins: Vec<String>,
    /// A PEM file with the certificate chain; with it the gateway speaks TLS only.
    tls_cert: String,
    /// A PEM file with the certificate's key.
    tls_key: String,
    /// Whether arguments are checked against a tool's schema before they are sent.
    #[schemars(extend("default" = false))]
    validate_arguments: bool,
    /// How long a call waits for an approval when its client cannot be asked; `"0s"` refuses it at once.
    #[schemars(extend("default" = "15s"))]
    approval_wait: Duration,
    /// Whether a client's user may have an approval saved as a rule of yours.
    #[schemars(extend("default" = false))]
    save_approvals: bool,
    /// Its bounds.
    limits: GatewayLimits,
}

/// The bounds of the gateway.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct GatewayLimits {
    /// The largest request.
    #[schemars(extend("default" = "4MiB"))]
    max_body: Size,
    /// How many connections may be open.
    #[schemars(extend("default" = 4096))]
    max_connections: u32,
    /// How many sessions of clients with a handshake may be open.
    #[schemars(extend("default" = 10_000))]
    max_sessions: u32,
    /// How long such a session may be idle.
    #[schemars(extend("default" = "30m"))]
    session_idle: Duration,
}

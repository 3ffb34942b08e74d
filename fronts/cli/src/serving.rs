//! Port with which `capstan serve` runs a gateway.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_app::cassette::Recording;
use capstan_app::{AppError, Selection, Setup};
use capstan_config::Confirm;
use capstan_hub::Hub;
use capstan_hub::ports::BoxFuture;

/// Runs a gateway.
pub trait Serve: Send + Sync {
    /// Serves all servers to other programs, until told to stop or until the client is gone.
    fn serve<'a>(
        &'a self,
        setup: &'a Setup,
        selection: &'a Selection,
        serving: Serving<'a>,
    ) -> BoxFuture<'a, Result<(), AppError>>;

    /// Answers one client over our standard streams, from a recording.
    fn replay<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Result<(), AppError>>;
}

/// The settings and callbacks of a gateway.
pub struct Serving<'a> {
    /// The transport for clients.
    pub face: Face,
    /// Waits for a stop signal; called again, it waits for the signal to stop immediately.
    pub stop: fn() -> BoxFuture<'static, ()>,
    /// Called when the gateway accepts clients over HTTP; its future runs alongside the gateway.
    pub ready: Box<dyn FnOnce(Ready) -> BoxFuture<'a, ()> + Send + 'a>,
}

/// The transport for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Face {
    /// One client, over our standard streams.
    Stdio {
        /// The party that confirms calls that only the default asks about; `None` if the
        /// configuration decides.
        confirm: Option<Confirm>,
    },
    /// One client of one server, over our standard streams, and a recording of it.
    Record(Recording),
    /// Many clients, over HTTP.
    Http(HttpFace),
}

/// The HTTP settings that come from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFace {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The separate address of the metrics, if they have one.
    pub metrics: Option<SocketAddr>,
    /// True if other machines may reach it.
    pub insecure: bool,
    /// The certificate and key, for TLS.
    pub tls: Option<TlsFiles>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, as PEM.
    pub cert: PathBuf,
    /// The key, as PEM.
    pub key: PathBuf,
}

/// Who may connect to the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// The ways in which callers authenticate, in words; empty if everyone may connect.
    pub ways: Vec<String>,
    /// True if the connection is encrypted.
    pub encrypted: bool,
}

/// Reports that the gateway accepts clients.
pub struct Ready {
    /// The hub that clients reach.
    pub hub: Arc<Hub>,
    /// The URL for clients.
    pub url: String,
    /// The address itself, if other machines can reach it.
    pub exposed: Option<String>,
    /// The URL of the metrics, if they have a separate address.
    pub metrics: Option<String>,
    /// Who may connect.
    pub protection: Protection,
}

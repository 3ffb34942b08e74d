//! What `capstan serve` needs from the program around it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use capstan_app::{AppError, Selection, Setup};
use capstan_hub::Hub;
use capstan_hub::ports::BoxFuture;

/// Runs a gateway.
pub trait Serve: Send + Sync {
    /// Serves all servers to other programs, until it is told to stop or the client is gone.
    fn serve<'a>(
        &'a self,
        setup: &'a Setup,
        selection: &'a Selection,
        serving: Serving<'a>,
    ) -> BoxFuture<'a, Result<(), AppError>>;
}

/// How all servers are served.
pub struct Serving<'a> {
    /// Where clients come in.
    pub face: Face,
    /// Waits until it is time to stop; asked once more, until it is time to stop at once.
    pub stop: fn() -> BoxFuture<'static, ()>,
    /// Is called when clients can come in over HTTP; what it does goes on beside the serving.
    pub ready: Box<dyn FnOnce(Ready) -> BoxFuture<'a, ()> + Send + 'a>,
}

/// Where clients come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Face {
    /// One client, over our standard streams.
    Stdio,
    /// Many, over HTTP.
    Http(HttpFace),
}

/// How HTTP is served, beside what the configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFace {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where the metrics are, when they have an address of their own.
    pub metrics: Option<SocketAddr>,
    /// Whether other machines may reach it.
    pub insecure: bool,
    /// The certificate, for TLS.
    pub tls: Option<TlsFiles>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, as PEM.
    pub cert: PathBuf,
    /// The key, as PEM.
    pub key: PathBuf,
}

/// Clients can come in.
pub struct Ready {
    /// What they reach.
    pub hub: Arc<Hub>,
    /// Where.
    pub url: String,
    /// The address itself, when other machines can reach it.
    pub exposed: Option<String>,
    /// Where the metrics are, when they have an address of their own.
    pub metrics: Option<String>,
}

//! The HTTP transport: Streamable HTTP, HTTP with server-sent events, and pages for the operator.
//!
//! `serve` accepts connections (`connection`). `routes` checks each request (`request`),
//! authenticates its caller with the `authenticator`, and passes it to a mounted endpoint: `pages`
//! or `mcp_endpoints`. `streamable` (with `batch`) and `legacy_sse` carry MCP, `sessions` keeps the
//! clients with a handshake, and `response` sends whole bodies and streams.

mod serve;
mod connection;
mod authenticator;
mod routes;
pub mod pages;
mod mcp_endpoints;
mod request;
mod streamable;
mod batch;
mod legacy_sse;
mod sessions;
mod response;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, ServerConfig};

pub use authenticator::{Anonymous, Authentication, Authenticator, RemotePeer, Unauthenticated};
pub use mcp_endpoints::{McpEndpoints, NOT_FOUND};
pub use response::body::Body;
pub use routes::{Endpoint, HttpRequest, PublicEndpoint, Routes, UnreadBody};
pub use serve::{Site, serve};

/// Settings of the HTTP transport.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// A separate address for the metrics, if any.
    pub metrics_listen: Option<SocketAddr>,
    /// Additional `Host` names, each with or without a port.
    ///
    /// Loopback names and the listening address are always accepted.
    pub allowed_hosts: Vec<String>,
    /// Additional origins, as `https://host:port`, whose pages may call the gateway.
    ///
    /// Pages of this machine may do so anyway.
    pub allowed_origins: Vec<String>,
    /// The certificate, for TLS.
    pub tls: Option<Tls>,
    /// True if anyone who can reach the address may call, also from other machines.
    pub insecure: bool,
    /// True if callers are authenticated, so that other machines may reach the listening address.
    pub authenticated: bool,
    /// Sizes and timeouts.
    pub limits: HttpLimits,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate chain, with the server's certificate first.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Sizes and timeouts.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Maximum size of a request body, in bytes.
    pub body: usize,
    /// Maximum number of connections; further ones wait to be accepted.
    pub connections: usize,
    /// Maximum number of sessions; further ones are refused.
    pub sessions: usize,
    /// Timeout for the head of a request once it has begun.
    pub head_wait: Duration,
    /// Timeout for the body of a request.
    pub body_wait: Duration,
    /// Timeout of a connection without a request.
    pub idle_connection: Duration,
    /// Timeout of a session without a request and without a stream.
    pub idle_session: Duration,
    /// Timeout of a client that does not read.
    pub stall: Duration,
    /// Time in which a client may resume a broken stream; until then its call continues.
    pub resume: Duration,
    /// Interval of keep-alive bytes on an idle stream.
    pub keep_alive: Duration,
    /// Time for running calls to end at shutdown; then they are aborted.
    pub drain: Duration,
}

/// A bound address.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    metrics: Option<(TcpListener, SocketAddr)>,
    settings: HttpSettings,
}

/// Errors that prevent HTTP from being served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Other machines could connect without authentication.
    #[error("`{0}` can be reached from other machines, and callers are not authenticated")]
    Exposed(SocketAddr),
    /// The address is in use, or not an address of this machine.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A PEM file contains no such item.
    #[error("there is no {what} in `{}`", path.display())]
    NotInFile {
        /// The kind of item that is missing.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A PEM file is missing or malformed.
    #[error("cannot read `{}`", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: pem::Error,
    },
    /// The certificate and the key cannot be used together.
    #[error("cannot use the certificate `{}` with its key", path.display())]
    Certificate {
        /// The file of the certificate.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: rustls::Error,
    },
}

// === impl HttpError ===

impl HttpError {
    /// Returns a hint on what to do about the error; `metrics` is the address of the metrics, if
    /// they have their own.
    pub fn hint(&self, metrics: Option<SocketAddr>) -> Option<&'static str> {
        match self {
            Self::Bind { address, cause }
                if Some(*address) == metrics && cause.kind() == io::ErrorKind::AddrInUse =>
            {
                Some("`gateway.metrics_listen = \":0\"` picks a free port")
            }
            Self::Bind { cause, .. } if cause.kind() == io::ErrorKind::AddrNotAvailable => {
                Some("listen on an address of this machine, such as 127.0.0.1")
            }
            Self::Bind { cause, .. } if cause.kind() == io::ErrorKind::PermissionDenied => {
                Some("ports below 1024 need administrator rights; choose a higher one")
            }
            Self::Bind { .. } => Some("`--http :0` picks a free port"),
            Self::NotInFile { .. } => Some("check that `tls_cert` and `tls_key` are not swapped"),
            Self::Exposed(_) | Self::Pem { .. } | Self::Certificate { .. } => None,
        }
    }
}

/// Binds the address, and reads the certificate if there is one.
///
/// # Errors
/// If the address cannot be bound or is not allowed, or the certificate is unusable.
pub async fn bind(settings: HttpSettings) -> Result<Bound, HttpError> {
    // The metrics are public at an address of their own.
    let is_guarded = settings.authenticated;
    let addresses = [(Some(settings.listen), is_guarded), (settings.metrics_listen, false)];
    for (address, is_guarded) in addresses {
        if let Some(address) = address
            && !address.ip().to_canonical().is_loopback()
            && !settings.insecure
            && !is_guarded
        {
            return Err(HttpError::Exposed(address));
        }
    }
    let tls = settings.tls.as_ref().map(acceptor).transpose()?;
    let (listener, address) = listen(settings.listen).await?;
    let metrics = match settings.metrics_listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    Ok(Bound { listener, address, tls, metrics, settings })
}

/// Listens on an address, and returns it with the chosen port.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), HttpError> {
    let failed = |cause| HttpError::Bind { address, cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, HttpError> {
    let unread = |what, path: &PathBuf, cause| {
        let path = path.clone();
        if matches!(cause, pem::Error::NoItemsFound) {
            return HttpError::NotInFile { what, path };
        }
        HttpError::Pem { path, cause }
    };
    let chain = CertificateDer::pem_file_iter(&tls.cert).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|cause| unread("certificate", &tls.cert, cause))?;
    if chain.is_empty() {
        return Err(unread("certificate", &tls.cert, pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key);
    let key = key.map_err(|cause| unread("private key", &tls.key, cause))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    let certificate = |cause| HttpError::Certificate { path: tls.cert.clone(), cause };
    let mut config = config.map_err(certificate)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

// === impl HttpSettings ===

impl HttpSettings {
    /// Settings for plain HTTP at this address, for callers on this machine.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            metrics_listen: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls: None,
            insecure: false,
            authenticated: false,
            limits: HttpLimits::default(),
        }
    }
}

// === impl HttpLimits ===

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body: 4 * 1024 * 1024,
            connections: 4096,
            sessions: 10_000,
            head_wait: Duration::from_secs(10),
            body_wait: Duration::from_secs(30),
            idle_connection: Duration::from_secs(90),
            idle_session: Duration::from_mins(30),
            stall: Duration::from_secs(30),
            resume: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(10),
        }
    }
}

// === impl Bound ===

impl Bound {
    /// The address, with the chosen port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the metrics, if it is separate.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(_, address)| *address)
    }

    /// Sizes and timeouts.
    pub fn limits(&self) -> HttpLimits {
        self.settings.limits
    }

    /// `http`, or `https` with TLS.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

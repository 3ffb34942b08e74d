//! The clients and the servers of the matrix.

/// A revision of the protocol; they are dates and sort as text.
pub(crate) type Revision = &'static str;

pub(crate) const FIRST: Revision = "2024-11-05";
pub(crate) const BATCHES: Revision = "2025-03-26";
pub(crate) const FORMS: Revision = "2025-06-18";
pub(crate) const URLS: Revision = "2025-11-25";
pub(crate) const MODERN: Revision = "2026-07-28";

/// A client.
#[derive(Debug)]
pub(crate) struct ClientKind {
    pub(crate) name: &'static str,
    pub(crate) revision: Revision,
    pub(crate) transport: Transport,
}

/// A server.
#[derive(Debug)]
pub(crate) struct ServerKind {
    pub(crate) name: &'static str,
    pub(crate) revision: Revision,
    pub(crate) transport: Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// HTTP with server-sent events, of 2024-11-05.
    Sse,
    /// Streamable HTTP.
    Http,
    Stdio,
}

pub(crate) const CLIENTS: [ClientKind; 7] = [
    client("sse-2024-11-05", FIRST, Transport::Sse),
    client("http-2025-03-26", BATCHES, Transport::Http),
    client("http-2025-06-18", FORMS, Transport::Http),
    client("http-2025-11-25", URLS, Transport::Http),
    client("http-2026-07-28", MODERN, Transport::Http),
    client("stdio-legacy", URLS, Transport::Stdio),
    client("stdio-modern", MODERN, Transport::Stdio),
];

pub(crate) const SERVERS: [ServerKind; 7] = [
    server("sse-2024-11-05", FIRST, Transport::Sse),
    server("http-2025-03-26", BATCHES, Transport::Http),
    server("http-2025-06-18", FORMS, Transport::Http),
    server("http-2025-11-25", URLS, Transport::Http),
    server("http-2026-07-28", MODERN, Transport::Http),
    server("stdio-legacy", URLS, Transport::Stdio),
    server("stdio-modern", MODERN, Transport::Stdio),
];

// === impl ClientKind ===

impl ClientKind {
    pub(crate) fn is_modern(&self) -> bool {
        self.revision == MODERN
    }
}

// === impl ServerKind ===

impl ServerKind {
    pub(crate) fn is_modern(&self) -> bool {
        self.revision == MODERN
    }

    /// How it is started.
    pub(crate) fn options(&self) -> Vec<&'static str> {
        let face: &[&str] = match self.transport {
            Transport::Stdio => &["--stdio"],
            Transport::Http | Transport::Sse => &["--http", "127.0.0.1:0"],
        };
        let era: &[&str] = if self.is_modern() {
            &["--era", "modern"]
        } else {
            &["--era", "legacy", "--revision", self.revision]
        };
        [face, era].concat()
    }
}

const fn client(name: &'static str, revision: Revision, transport: Transport) -> ClientKind {
    ClientKind { name, revision, transport }
}

const fn server(name: &'static str, revision: Revision, transport: Transport) -> ServerKind {
    ServerKind { name, revision, transport }
}

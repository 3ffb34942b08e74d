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
    /// The only revision that it speaks; `None` speaks both eras.
    revision: Option<Revision>,
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

/// The clients. One of both eras uses them in turn, with a session and without.
pub(crate) const CLIENTS: [(&str, &[ClientKind]); 8] = [
    ("sse-2024-11-05", &[client("sse-2024-11-05", FIRST, Transport::Sse)]),
    ("http-2025-03-26", &[client("http-2025-03-26", BATCHES, Transport::Http)]),
    ("http-2025-06-18", &[client("http-2025-06-18", FORMS, Transport::Http)]),
    ("http-2025-11-25", &[client("http-2025-11-25", URLS, Transport::Http)]),
    ("http-2026-07-28", &[client("http-2026-07-28", MODERN, Transport::Http)]),
    (
        "http-both",
        &[
            client("http-both, legacy", URLS, Transport::Http),
            client("http-both, modern", MODERN, Transport::Http),
        ],
    ),
    ("stdio-legacy", &[client("stdio-legacy", URLS, Transport::Stdio)]),
    ("stdio-modern", &[client("stdio-modern", MODERN, Transport::Stdio)]),
];

pub(crate) const SERVERS: [ServerKind; 9] = [
    server("sse-2024-11-05", Some(FIRST), Transport::Sse),
    server("http-2025-03-26", Some(BATCHES), Transport::Http),
    server("http-2025-06-18", Some(FORMS), Transport::Http),
    server("http-2025-11-25", Some(URLS), Transport::Http),
    server("http-2026-07-28", Some(MODERN), Transport::Http),
    server("http-both", None, Transport::Http),
    server("stdio-legacy", Some(URLS), Transport::Stdio),
    server("stdio-modern", Some(MODERN), Transport::Stdio),
    server("stdio-both", None, Transport::Stdio),
];

// === impl ClientKind ===

impl ClientKind {
    pub(crate) fn is_modern(&self) -> bool {
        self.revision == MODERN
    }
}

// === impl ServerKind ===

impl ServerKind {
    /// The revision in which the gateway speaks to it for this client.
    pub(crate) fn revision_for(&self, client: &ClientKind) -> Revision {
        match self.revision {
            Some(revision) => revision,
            None if !client.is_modern() => URLS,
            // The first caller chooses for all who share a gateway, and that is `http-both` with a
            // session. A client over stdio has a gateway of its own.
            None if self.transport == Transport::Stdio && client.transport != Transport::Stdio => {
                URLS
            }
            None => MODERN,
        }
    }

    /// How it is started.
    pub(crate) fn options(&self) -> Vec<&'static str> {
        let face: &[&str] = match self.transport {
            Transport::Stdio => &["--stdio"],
            Transport::Http | Transport::Sse => &["--http", "127.0.0.1:0"],
        };
        let era = match self.revision {
            None => vec!["--era", "both"],
            Some(MODERN) => vec!["--era", "modern"],
            Some(revision) => vec!["--era", "legacy", "--revision", revision],
        };
        [face, &era].concat()
    }
}

const fn client(name: &'static str, revision: Revision, transport: Transport) -> ClientKind {
    ClientKind { name, revision, transport }
}

const fn server(
    name: &'static str,
    revision: Option<Revision>,
    transport: Transport,
) -> ServerKind {
    ServerKind { name, revision, transport }
}

//! The proxy by which a server in a sandbox reaches the hosts that it may reach.
//!
//! It listens on a socket that only the keeper of this server can open. `CONNECT` opens a tunnel;
//! a request with a whole `http://` address is sent on. Hosts are matched by name and port, and their
//! addresses are checked by the rule for all connections (`address_guard`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::{ServerName, Trust};
use capstan_safety::address::{AddressPolicy, Loopback, Network};
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::address_guard::{AddressGuard, Host, LookupError};

/// The longest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// The time for a request to arrive, and for its host to be connected.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of connections at the same time.
const CONNECTIONS: usize = 64;

/// A host that may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    /// The name in lower case, or the address; with `subdomains`, the part behind `*.`.
    pub name: String,
    /// True if all names below `name` are meant, and not the name itself.
    pub subdomains: bool,
    /// The port.
    pub port: u16,
}

/// Learns of hosts that were refused, as `HOST:PORT` and the reason.
pub type Refused = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The proxy of one server.
pub struct SandboxProxy {
    /// The server.
    pub server: ServerName,
    /// The hosts that it may reach.
    pub allowed: Vec<AllowedHost>,
    /// The trust in the server; addresses of a trusted one are not checked.
    pub trust: Trust,
    /// Networks that these hosts may be in although they are not public.
    pub networks: Vec<Network>,
    /// Called for each refusal.
    pub refused: Refused,
}

/// A destination, as a request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Destination {
    host: String,
    port: u16,
}

/// A request for a destination.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    destination: Destination,
    /// The bytes to send on; `None` for a tunnel.
    forward: Option<Vec<u8>>,
    /// Bytes behind the head.
    rest: Vec<u8>,
}

/// An answer in place of a connection.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    status: &'static str,
    text: String,
}

// === impl SandboxProxy ===

impl SandboxProxy {
    /// Serves connections until the future is dropped.
    pub async fn serve(self, listener: UnixListener) {
        let this = Arc::new(self);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut running = JoinSet::new();
        while let Ok(place) = Arc::clone(&room).acquire_owned().await {
            while running.try_join_next().is_some() {}
            let Ok((client, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let this = Arc::clone(&this);
            running.spawn(async move {
                // An error means that one of the two sides is gone.
                drop(this.carry(client).await);
                drop(place);
            });
        }
    }

    async fn carry(&self, mut client: UnixStream) -> io::Result<()> {
        let opened = timeout(PATIENCE, self.open(&mut client)).await;
        let opened = opened.unwrap_or_else(|_| Ok(Err(Refusal::late())))?;
        match opened {
            Ok(mut server) => {
                tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
            }
            Err(refusal) => {
                client.write_all(&refusal.write()).await?;
                client.shutdown().await
            }
        }
    }

    /// Reads the request and connects its host.
    async fn open(&self, client: &mut UnixStream) -> io::Result<Result<TcpStream, Refusal>> {
        let (head, rest) = match head(client).await? {
            Ok(parts) => parts,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(request) = Request::read(&head, rest) else {
            return Ok(Err(Refusal::unreadable()));
        };
        let mut server = match self.connect(&request.destination).await {
            Ok(server) => server,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match &request.forward {
            Some(bytes) => server.write_all(bytes).await?,
            None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        }
        server.write_all(&request.rest).await?;
        Ok(Ok(server))
    }

    async fn connect(&self, destination: &Destination) -> Result<TcpStream, Refusal> {
        let shown = destination.to_string();
        let Some(allowed) = self.allowed.iter().find(|allowed| allowed.covers(destination)) else {
            (self.refused)(&shown, "it is not listed");
            let server = &self.server;
            return Err(Refusal::forbidden(format!(
                "`{shown}` is not listed in `servers.{server}.sandbox.net`"
            )));
        };
        let guard = self.guard(destination, allowed);
        let found = match guard.lookup(destination.port).await {
            Ok(found) => found,
            Err(LookupError::Refused(refusal)) => {
                let reason = refusal.to_string();
                (self.refused)(&shown, &reason);
                return Err(Refusal::forbidden(reason));
            }
            Err(LookupError::Failed(error)) => return Err(Refusal::unreachable(&shown, &error)),
        };
        let found: &[SocketAddr] = &found;
        TcpStream::connect(found).await.map_err(|error| Refusal::unreachable(&shown, &error))
    }

    /// The check of addresses. An address that the operator listed literally is allowed.
    fn guard(&self, destination: &Destination, allowed: &AllowedHost) -> AddressGuard {
        let host = Host::of(&destination.host);
        let listed: Option<Network> = match (&host, allowed.subdomains) {
            (Host::Literal(address), false) => address.to_string().parse().ok(),
            (Host::Literal(_) | Host::Name(_), _) => None,
        };
        let loopback = if allowed.subdomains {
            Loopback::Refused
        } else {
            Loopback::of_configured(&format!("http://{destination}/"))
        };
        let policy = AddressPolicy {
            server: Some(self.server.clone()),
            table: None,
            trust: self.trust,
            networks: listed.into_iter().chain(self.networks.iter().copied()).collect(),
        };
        AddressGuard::new(host, policy, loopback)
    }
}

/// Reads the head of a request; returns it, and the bytes behind it.
async fn head(client: &mut UnixStream) -> io::Result<Result<(Vec<u8>, Vec<u8>), Refusal>> {
    let mut head = Vec::new();
    loop {
        if client.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = head.split_off(end + 4);
            return Ok(Ok((head, rest)));
        }
        if head.len() > MAX_HEAD {
            return Ok(Err(Refusal::unreadable()));
        }
    }
}

// === impl AllowedHost ===

impl AllowedHost {
    fn covers(&self, destination: &Destination) -> bool {
        let is_meant = if self.subdomains {
            let below = destination.host.strip_suffix(&self.name);
            below.is_some_and(|below| below.len() > 1 && below.ends_with('.'))
        } else {
            destination.host == self.name
        };
        is_meant && destination.port == self.port
    }
}

// === impl Destination ===

impl Destination {
    fn new(host: &str, port: u16) -> Option<Self> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        (!host.is_empty() && port != 0).then_some(Self { host, port })
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.host.chars().filter(|c| !c.is_control()).take(255).collect();
        if shown.contains(':') {
            write!(f, "[{shown}]:{}", self.port)
        } else {
            write!(f, "{shown}:{}", self.port)
        }
    }
}

// === impl Request ===

impl Request {
    fn read(head: &[u8], rest: Vec<u8>) -> Option<Self> {
        let text = str::from_utf8(head).ok()?;
        let (line, headers) = text.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = target.rsplit_once(':')?;
            let destination = Destination::new(host, port.parse().ok()?)?;
            return Some(Self { destination, forward: None, rest });
        }
        let url = Url::parse(target).ok().filter(|url| url.scheme() == "http")?;
        let destination = Destination::new(url.host_str()?, url.port_or_known_default()?)?;
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut forward = format!("{method} {path} {version}\r\nHost: {}\r\n", authority(&url)?);
        for header in headers.split("\r\n").filter(|line| !line.is_empty()) {
            let (name, _) = header.split_once(':')?;
            let own =
                ["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive"];
            if !own.contains(&name.trim().to_ascii_lowercase().as_str()) {
                forward.push_str(header);
                forward.push_str("\r\n");
            }
        }
        // One request per connection, so that each is checked.
        forward.push_str("Connection: close\r\n\r\n");
        Some(Self { destination, forward: Some(forward.into_bytes()), rest })
    }
}

/// The host of a URL with its port, if it is not the usual one.
fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

// === impl Refusal ===

impl Refusal {
    fn forbidden(text: String) -> Self {
        Self { status: "403 Forbidden", text }
    }

    fn unreachable(host: &str, error: &io::Error) -> Self {
        Self { status: "502 Bad Gateway", text: format!("`{host}` cannot be reached: {error}") }
    }

    fn unreadable() -> Self {
        let text = "the proxy takes `CONNECT`, and requests for `http://` addresses".to_owned();
        Self { status: "400 Bad Request", text }
    }

    fn late() -> Self {
        Self { status: "504 Gateway Timeout", text: "it took too long".to_owned() }
    }

    fn write(&self) -> Vec<u8> {
        let Self { status, text } = self;
        let length = text.len() + "capstan: \n".len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\ncapstan: {text}\n"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::net::TcpListener;

    use super::*;

    fn allowed(name: &str, port: u16) -> AllowedHost {
        match name.strip_prefix("*.") {
            Some(name) => AllowedHost { name: name.to_owned(), subdomains: true, port },
            None => AllowedHost { name: name.to_owned(), subdomains: false, port },
        }
    }

    /// Sends a request through a proxy; returns the answer and the refusals.
    async fn ask(allow: Vec<AllowedHost>, request: &str) -> (String, Vec<String>) {
        let folder = std::env::temp_dir().join(format!("capstan-proxy-{}", fastrand()));
        let listener = UnixListener::bind(&folder).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let proxy = SandboxProxy {
            server: "s".parse().unwrap(),
            allowed: allow,
            trust: Trust::Untrusted,
            networks: Vec::new(),
            refused: Arc::new(move |host, _| tell.lock().unwrap().push(host.to_owned())),
        };
        let served = tokio::spawn(proxy.serve(listener));
        let mut client = UnixStream::connect(&folder).await.unwrap();
        std::fs::remove_file(&folder).unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        served.abort();
        let told = told.lock().unwrap().clone();
        (answer, told)
    }

    /// A number that no other test has.
    fn fastrand() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        (u64::from(std::process::id()) << 20) | NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// A server that answers each connection with what it read first.
    async fn echo() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut read = [0; 4096];
                let length = stream.read(&mut read).await.unwrap();
                stream.write_all(&read[..length]).await.unwrap();
            }
        });
        port
    }

    #[tokio::test]
    async fn a_listed_host_is_reached_by_a_tunnel_and_by_a_plain_request() {
        let port = echo().await;
        let allow = || vec![allowed("127.0.0.1", port)];
        let (answer, told) =
            ask(allow(), &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello")).await;
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nhello");
        assert!(told.is_empty());
        let (answer, _) = ask(
            allow(),
            &format!("GET http://127.0.0.1:{port}/a?b HTTP/1.1\r\nHost: other\r\nProxy-Connection: x\r\nX: 1\r\n\r\n"),
        )
        .await;
        assert_eq!(
            answer,
            format!(
                "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: 1\r\nConnection: close\r\n\r\n"
            )
        );
    }

    #[tokio::test]
    async fn all_other_hosts_and_ports_are_refused_and_reported() {
        let port = echo().await;
        for (allow, host) in [
            (vec![], format!("127.0.0.1:{port}")),
            (vec![allowed("127.0.0.1", 1)], format!("127.0.0.1:{port}")),
            (vec![allowed("other.test", port)], format!("127.0.0.1:{port}")),
            (vec![allowed("*.example.test", 443)], "example.test:443".to_owned()),
            (vec![allowed("*.example.test", 443)], "badexample.test:443".to_owned()),
            (vec![allowed("example.test", 443)], "a.example.test:443".to_owned()),
        ] {
            let (answer, told) = ask(allow, &format!("CONNECT {host} HTTP/1.1\r\n\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
            assert!(answer.contains("servers.s.sandbox.net"), "{answer}");
            assert_eq!(told, [host]);
        }
    }

    #[tokio::test]
    async fn a_listed_name_that_leads_to_this_machine_is_refused_unless_it_says_so() {
        let port = echo().await;
        let wild = allowed("*.localhost", port);
        let (answer, told) =
            ask(vec![wild], &format!("CONNECT a.localhost:{port} HTTP/1.1\r\n\r\n")).await;
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer} {told:?}");
        let (answer, _) = ask(
            vec![allowed("localhost", port)],
            &format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nhi"),
        )
        .await;
        assert!(answer.ends_with("hi"), "{answer}");
    }

    #[tokio::test]
    async fn requests_that_are_none_are_refused() {
        for request in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT a.test HTTP/1.1\r\n\r\n",
            "CONNECT a.test:0 HTTP/1.1\r\n\r\n",
            "GET https://a.test/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.test/ HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
            "CONNECT a.test:443 HTTP/1.1 more\r\n\r\n",
        ] {
            let (answer, _) = ask(vec![allowed("a.test", 443)], request).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
        }
        let endless = "x".repeat(2 * MAX_HEAD);
        let (answer, _) = ask(vec![], &endless).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") || answer.is_empty(), "{answer}");
    }
}

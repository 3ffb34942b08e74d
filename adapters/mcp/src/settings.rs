//! The resolved configuration of one server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_http::{Credentials, Url};
use capstan_model::{Secret, ServerName};
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;

use capstan_process::sandbox::Sandbox;
use capstan_process::spawn::Launch;

/// The smallest limit for the length of a server's message, in bytes.
const LONG: usize = 16 * 1024 * 1024;

/// The room for a message's envelope around the answer, in bytes.
const ENVELOPE: usize = 1024 * 1024;

/// How to start a stdio server and talk to it.
#[derive(Clone, Debug)]
pub struct StdioSettings {
    /// The server's name.
    pub name: ServerName,
    /// The program: a name to be found in `PATH`, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The server's whole environment: the default variables and those declared for it.
    pub environment: BTreeMap<String, Secret<String>>,
    /// The variables that the server does not get, for the advice if it fails.
    pub withheld: Withheld,
    /// Values that must not appear in anything we show.
    pub secrets: Vec<Secret<String>>,
    /// The working directory; `None` for our own.
    pub cwd: Option<PathBuf>,
    /// The deadline for starting the server and finishing the handshake.
    pub startup_timeout: Duration,
    /// The deadline for an answer.
    pub timeout: Duration,
    /// The longest message accepted from the server, in bytes; see [`max_message`].
    pub max_message: usize,
    /// The era of the protocol to speak.
    pub era: Era,
    /// The folders that the server is told to work in.
    pub roots: Vec<Root>,
    /// Controls if the server may ask the operator questions.
    pub elicitation: Elicitation,
    /// The kind of callers behind the calls.
    pub others: Others,
    /// The path of our own program, which runs as the keeper.
    pub keeper: PathBuf,
    /// The sandbox of its process.
    pub sandbox: Option<Arc<Sandbox>>,
}

/// Names of variables of our environment, by whether a server gets them.
#[derive(Clone, Debug, Default)]
pub struct Withheld {
    /// Set for us, but not passed to the server.
    pub names: BTreeSet<String>,
    /// Set for the server.
    pub given: BTreeSet<String>,
    /// Passed through because the configuration says so.
    pub passed: Vec<String>,
}

/// The address of an HTTP server and how to talk to it.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The server's name.
    pub name: ServerName,
    /// The server's address, which may contain a token.
    /// `https://`, `http://`, or a socket and the path behind it as in `unix:///run/mcp.sock:/mcp`.
    pub url: Secret<String>,
    /// Headers sent with every request.
    pub headers: Vec<(String, Secret<String>)>,
    /// The login to the server; `None` if the configuration has its credentials.
    pub login: Option<LoginCredentials>,
    /// Credentials of the configuration that are fetched when a request needs them.
    pub fetched: Vec<LoginCredentials>,
    /// Further values that must not appear in anything we show.
    pub secrets: Vec<Secret<String>>,
    /// The network addresses that may be connected to.
    pub addresses: AddressPolicy,
    /// The order in which the two transports are tried.
    pub prefer: Prefer,
    /// The deadline for the handshake.
    pub startup_timeout: Duration,
    /// The deadline for an answer.
    pub timeout: Duration,
    /// The longest message accepted from the server, in bytes; see [`max_message`].
    pub max_message: usize,
    /// The era of the protocol to speak.
    pub era: Era,
    /// The folders that the server is told to work in.
    pub roots: Vec<Root>,
    /// Controls if the server may ask the operator questions.
    pub elicitation: Elicitation,
    /// The kind of callers behind the calls.
    pub others: Others,
}

/// Credentials that may have to be fetched, such as those of a login.
#[derive(Clone)]
pub struct LoginCredentials(pub Arc<dyn Credentials>);

/// The settings of a server, by transport.
#[derive(Clone, Debug)]
pub enum Settings {
    /// A child process, over its standard streams.
    Stdio(StdioSettings),
    /// Over HTTP.
    Http(HttpSettings),
}

/// The order in which the two HTTP transports are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// Streamable HTTP only.
    Http,
    /// Streamable HTTP, then the older transport with server-sent events.
    #[default]
    HttpThenSse,
    /// The older transport with server-sent events, then streamable HTTP.
    SseThenHttp,
    /// The older transport with server-sent events only.
    Sse,
}

/// The settings that all transports share.
#[derive(Clone, Debug)]
pub(crate) struct CommonSettings {
    pub(crate) name: ServerName,
    pub(crate) startup_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) roots: Vec<Root>,
    pub(crate) elicitation: Elicitation,
    pub(crate) others: Others,
}

/// The era of the protocol to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Detect the era.
    #[default]
    Auto,
    /// With a handshake, up to 2025-11-25.
    Legacy,
    /// Without a handshake, from 2026-07-28 on.
    Modern,
}

/// Controls if a server may ask the operator questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Elicitation {
    /// The capability is offered to the server.
    #[default]
    Offered,
    /// The capability is not declared to the server.
    Off,
}

/// The kind of callers behind the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// A person, on whose behalf the hub answers.
    #[default]
    People,
    /// Programs of any kind, each of which declares its own capabilities.
    Clients,
}

/// A folder that a server is told to work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The folder as a `file://` URI.
    pub uri: String,
    /// The display name.
    pub name: String,
}

// === impl LoginCredentials ===

impl fmt::Debug for LoginCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoginCredentials")
    }
}

// === impl StdioSettings ===

impl StdioSettings {
    pub(crate) fn launch(&self) -> Launch<'_> {
        Launch {
            command: &self.command,
            args: &self.args,
            environment: &self.environment,
            cwd: self.cwd.as_deref(),
            keeper: &self.keeper,
            sandbox: self.sandbox.as_deref(),
        }
    }
}

// === impl Settings ===

impl Settings {
    pub(crate) fn common(&self) -> CommonSettings {
        match self {
            Self::Stdio(stdio) => CommonSettings {
                name: stdio.name.clone(),
                startup_timeout: stdio.startup_timeout,
                timeout: stdio.timeout,
                roots: stdio.roots.clone(),
                elicitation: stdio.elicitation,
                others: stdio.others,
            },
            Self::Http(http) => CommonSettings {
                name: http.name.clone(),
                startup_timeout: http.startup_timeout,
                timeout: http.timeout,
                roots: http.roots.clone(),
                elicitation: http.elicitation,
                others: http.others,
            },
        }
    }

    /// Returns a masker that hides the secret values of these settings.
    pub(crate) fn masker(&self) -> Masker {
        let secrets = self.secrets().into_iter();
        match self {
            Self::Stdio(stdio) => Masker::beside(secrets, &stdio.environment),
            Self::Http(_) => Masker::new(secrets),
        }
    }

    /// Returns the values that must not appear in anything we show.
    fn secrets(&self) -> Vec<String> {
        let reveal = |secret: &Secret<String>| secret.reveal().clone();
        match self {
            Self::Stdio(stdio) => stdio.secrets.iter().map(reveal).collect(),
            Self::Http(http) => {
                let headers = http.headers.iter().map(|(_, value)| reveal(value));
                let mut secrets: Vec<String> = headers.collect();
                // A server may repeat the token without the scheme word before it.
                let words = secrets.iter().filter_map(|value| value.split_once(' '));
                let tokens: Vec<String> = words.map(|(_, token)| token.to_owned()).collect();
                secrets.extend(tokens);
                secrets.extend(http.secrets.iter().map(reveal));
                secrets.extend(login(http.url.reveal()));
                secrets
            }
        }
    }
}

/// Returns the longest message to accept from a server whose answers may have `max_answer` bytes.
pub fn max_message(max_answer: u64) -> usize {
    let answer = usize::try_from(max_answer).unwrap_or(usize::MAX);
    answer.saturating_add(ENVELOPE).max(LONG)
}

/// Returns the login in an address: the Basic credentials as sent, and the decoded password.
fn login(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let Some(password) = url.password() else { return Vec::new() };
    let (name, password) = (decoded(url.username()), decoded(password));
    let sent = BASE64_STANDARD.encode([&name[..], b":", &password].concat());
    vec![sent, String::from_utf8_lossy(&password).into_owned()]
}

/// Decodes the percent escapes in a part of an address.
fn decoded(text: &str) -> Vec<u8> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let escape = piece.split_at_checked(2);
        let escape =
            escape.and_then(|(code, rest)| Some((u8::from_str_radix(code, 16).ok()?, rest)));
        let (byte, rest) = escape.unwrap_or((b'%', piece));
        bytes.push(byte);
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

impl From<StdioSettings> for Settings {
    fn from(settings: StdioSettings) -> Self {
        Self::Stdio(settings)
    }
}

impl From<HttpSettings> for Settings {
    fn from(settings: HttpSettings) -> Self {
        Self::Http(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_room_for_the_largest_answer() {
        for (answer, message) in
            [(0, LONG), (10 << 20, LONG), (15 << 20, LONG), (64 << 20, 65 << 20)]
        {
            assert_eq!(max_message(answer), message);
        }
        assert_eq!(max_message(u64::MAX), usize::MAX);
    }

    #[test]
    fn a_login_is_known_as_it_is_sent_and_as_it_is_meant() {
        assert_eq!(login("https://me:p%40ss@h/"), ["bWU6cEBzcw==", "p@ss"]);
        assert_eq!(login("https://me:100%25%@h/"), ["bWU6MTAwJSU=", "100%%"]);
        for none in ["https://h/", "https://me@h/", "unix:///s:/mcp", "nothing"] {
            assert!(login(none).is_empty(), "{none}");
        }
    }
}

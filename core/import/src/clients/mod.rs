//! Clients: programs to import servers from, and to add Capstan to.
//!
//! The modules list the places of their files, and edit the text of these files.
//!
//! **Invariant:** a change touches only our own entry. Every changed text is parsed again, and
//! refused unless its content is the same as before, apart from that entry.

mod entry;
mod replace;
mod json;
mod toml;
mod yaml;
mod locations;

use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

use capstan_config::Dialect;
use capstan_config::nearest;
use capstan_config::source::problem::Problem;
use capstan_config::source::syntax::Syntax;
use capstan_config::source::tree::{Node, Table, Value};

pub use entry::ClientConnection;
pub use locations::{Base, ClientFile, Named, Use};
pub use replace::{ServerKey, lacking, put_back, replace};

/// The name of our entry in the files of clients.
pub const OUR_NAME: &str = "capstan";

/// A program that has MCP servers configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Gemini CLI.
    Gemini,
    /// LLxprt Code.
    Llxprt,
    /// goose.
    Goose,
    /// Zed.
    Zed,
    /// opencode.
    OpenCode,
    /// Windsurf.
    Windsurf,
    /// Caliban.
    Caliban,
    /// Zeph.
    Zeph,
    /// The `mcp` program of avelino.
    Avelino,
}

/// A word that names no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a client{}", near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
pub struct UnknownClient {
    /// The requested word.
    pub word: String,
    /// The most similar client.
    pub near: Option<&'static str>,
}

/// The reason why a client's file cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The file cannot be read.
    #[error("{0}")]
    Broken(Box<Problem>),
    /// The key for the servers holds another value.
    #[error("`{key}` in this file cannot take an entry: {why}")]
    Unexpected {
        /// The dotted key.
        key: String,
        /// The reason.
        why: &'static str,
    },
    /// An entry of our name already exists.
    #[error("an entry named `{OUR_NAME}` that does not run Capstan is already in this file")]
    NotOurs,
    /// The client's file cannot contain an address.
    #[error("{client} cannot use an address: {why}")]
    NoHttp {
        /// The client's title.
        client: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// Servers cannot be put back.
    #[error("the backup of this file is missing or was changed, so {servers} cannot be put back")]
    NoBackup {
        /// The names of the servers, quoted.
        servers: String,
    },
    /// The changed text would not have the intended content.
    #[error("the file is written in a way that cannot be changed safely")]
    Unsafe,
}

/// The state of our entry in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// There is no entry of our name.
    Absent,
    /// The entry starts Capstan.
    Starts,
    /// The entry does something else, or connects to an address.
    Other,
}

/// Returns the state of our entry in a client's file.
///
/// # Errors
/// If the file cannot be read.
pub fn presence(client: Client, path: &str, text: &str) -> Result<Presence, ClientError> {
    let table = read(client, path, text)?;
    let Some(found) = entry::find(client, &table) else { return Ok(Presence::Absent) };
    Ok(if entry::starts_us(found) { Presence::Starts } else { Presence::Other })
}

/// Adds our entry to a client's file.
///
/// # Errors
/// If the file cannot be read or has an entry of our name, or the client does not support this.
pub fn put(
    client: Client,
    path: &str,
    text: &str,
    way: &ClientConnection,
) -> Result<String, ClientError> {
    let before = read(client, path, text)?;
    let entry = entry::of(client, &before, way)?;
    if entry::find(client, &before).is_some() {
        return Err(ClientError::NotOurs);
    }
    let container = entry::container(client, &before);
    let new = match syntax(client, path, text) {
        Syntax::Json => json::put(text, &container, &entry)?,
        Syntax::Toml => toml::put(text, &container, &entry)?,
        Syntax::Yaml => yaml::put(text, &before, &container, &entry)?,
    };
    let after = read(client, path, &new).map_err(|_| unexpected(&container))?;
    let found = entry::find(client, &after).map(plain_table);
    if found != Some(Json::Object(entry)) || !differ_in_one(&before, &after, &container, OUR_NAME) {
        return Err(ClientError::Unsafe);
    }
    Ok(new)
}

/// Removes our entry from a client's file; returns `None` if it is not there.
///
/// # Errors
/// If the file cannot be read, or the entry cannot be removed safely.
pub fn take(client: Client, path: &str, text: &str) -> Result<Option<String>, ClientError> {
    let before = read(client, path, text)?;
    if entry::find(client, &before).is_none() {
        return Ok(None);
    }
    let container = entry::container(client, &before);
    remove(client, path, text, &container, OUR_NAME).map(Some)
}

/// Removes the entry of a server.
fn remove(
    client: Client,
    path: &str,
    text: &str,
    container: &[&str],
    name: &str,
) -> Result<String, ClientError> {
    let before = read(client, path, text)?;
    let new = match syntax(client, path, text) {
        Syntax::Json => json::take(text, container, name)?,
        Syntax::Toml => toml::take(text, container, name)?,
        Syntax::Yaml => yaml::take(text, &before, container, name)?,
    };
    let after = read(client, path, &new).map_err(|_| ClientError::Unsafe)?;
    let gone = entry::find_in(&after, container, name).is_none();
    if !gone || !differ_in_one(&after, &before, container, name) {
        return Err(ClientError::Unsafe);
    }
    Ok(new)
}

/// The syntax of a client's file; that of an empty file follows from its name.
fn syntax(client: Client, path: &str, text: &str) -> Syntax {
    match client.dialect() {
        Dialect::Goose => Syntax::Yaml,
        Dialect::Codex | Dialect::Zeph => Syntax::Toml,
        Dialect::Native
        | Dialect::Caliban
        | Dialect::Avelino
        | Dialect::Llxprt
        | Dialect::Claude
        | Dialect::VsCode
        | Dialect::Cursor
        | Dialect::Zed
        | Dialect::OpenCode
        | Dialect::Mcpb => Syntax::of(path, text),
    }
}

fn read(client: Client, path: &str, text: &str) -> Result<Table, ClientError> {
    let document = syntax(client, path, text).read(path, text).map_err(ClientError::Broken)?;
    Ok(document.table)
}

fn unexpected(container: &[&str]) -> ClientError {
    let why = "it is not a separate table";
    ClientError::Unexpected { key: container.join("."), why }
}

/// True if `with` has the same content as `without`, apart from the entry of one server.
fn differ_in_one(without: &Table, with: &Table, container: &[&str], name: &str) -> bool {
    let (mut with, mut without) = (plain_table(with), plain_table(without));
    drop_entry(&mut with, container, name);
    drop_empty(&mut with, container);
    drop_empty(&mut without, container);
    with == without
}

fn drop_entry(json: &mut Json, container: &[&str], name: &str) {
    let found = container.iter().try_fold(json, |json, key| json.get_mut(key));
    match found {
        Some(Json::Object(servers)) => drop(servers.shift_remove(name)),
        Some(Json::Array(servers)) => servers.retain(|server| !entry::is_named(server, name)),
        Some(_) | None => {}
    }
}

/// Removes empty tables around an entry, which count as absent.
fn drop_empty(json: &mut Json, container: &[&str]) {
    let Some((last, above)) = container.split_last() else { return };
    let Some(Json::Object(map)) = above.iter().try_fold(&mut *json, |json, key| json.get_mut(key))
    else {
        return;
    };
    let empty = map.get(*last).is_some_and(|servers| match servers {
        Json::Object(servers) => servers.is_empty(),
        Json::Array(servers) => servers.is_empty(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    });
    if empty {
        map.shift_remove(*last);
    }
    drop_empty(json, above);
}

/// The content of a table without its positions.
fn plain_table(table: &Table) -> Json {
    let plain = |(key, entry): (&String, &capstan_config::source::tree::Entry)| {
        (key.clone(), plain(&entry.node))
    };
    Json::Object(table.entries.iter().map(plain).collect::<Map<_, _>>())
}

fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Text(text) => Json::String(text.value.clone()),
        // The NUL prefix keeps such a number distinct from any string.
        Value::Number(text) | Value::Moment(text) => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => Json::String(format!("\0{text}")),
        },
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Null => Json::Null,
        Value::List(nodes) => Json::Array(nodes.iter().map(plain).collect()),
        Value::Table(table) => plain_table(table),
    }
}

// === impl Client ===

impl Client {
    /// Every client, in the order of the search.
    pub const ALL: [Self; 14] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Codex,
        Self::Cursor,
        Self::VsCode,
        Self::Gemini,
        Self::Llxprt,
        Self::Goose,
        Self::Zed,
        Self::OpenCode,
        Self::Windsurf,
        Self::Caliban,
        Self::Zeph,
        Self::Avelino,
    ];

    /// The client's word on the command line.
    pub fn as_str(self) -> &'static str {
        self.names().0
    }

    /// The client's name, for a message.
    pub fn title(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ClaudeCode => ("claude-code", "Claude Code"),
            Self::ClaudeDesktop => ("claude-desktop", "Claude Desktop"),
            Self::Codex => ("codex", "Codex"),
            Self::Cursor => ("cursor", "Cursor"),
            Self::VsCode => ("vscode", "VS Code"),
            Self::Gemini => ("gemini", "Gemini CLI"),
            Self::Llxprt => ("llxprt", "LLxprt Code"),
            Self::Goose => ("goose", "goose"),
            Self::Zed => ("zed", "Zed"),
            Self::OpenCode => ("opencode", "opencode"),
            Self::Windsurf => ("windsurf", "Windsurf"),
            Self::Caliban => ("caliban", "Caliban"),
            Self::Zeph => ("zeph", "Zeph"),
            Self::Avelino => ("avelino", "avelino/mcp"),
        }
    }

    /// The dialect of its files.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop => Dialect::Claude,
            Self::Codex => Dialect::Codex,
            Self::Cursor | Self::Windsurf => Dialect::Cursor,
            Self::VsCode => Dialect::VsCode,
            Self::Gemini | Self::Llxprt => Dialect::Llxprt,
            Self::Goose => Dialect::Goose,
            Self::Zed => Dialect::Zed,
            Self::OpenCode => Dialect::OpenCode,
            Self::Caliban => Dialect::Caliban,
            Self::Zeph => Dialect::Zeph,
            Self::Avelino => Dialect::Avelino,
        }
    }
}

impl FromStr for Client {
    type Err = UnknownClient;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = match word {
            "claude" => Some(Self::ClaudeCode),
            word => Self::ALL.into_iter().find(|client| client.as_str() == word),
        };
        known.ok_or_else(|| UnknownClient {
            word: word.to_owned(),
            near: nearest(word, Self::ALL.iter().map(|client| client.as_str())),
        })
    }
}

impl Serialize for Client {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

// === impl ClientError ===

impl ClientError {
    /// The error about servers that have no backup.
    pub fn no_backup(servers: &[ServerKey]) -> Self {
        let names: Vec<String> = servers.iter().map(|key| format!("`{}`", key.server)).collect();
        Self::NoBackup { servers: names.join(", ") }
    }

    /// Returns advice on how to fix the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Broken(problem) => problem.help.clone(),
            Self::Unexpected { .. } => Some("write it as a table, then try again".to_owned()),
            Self::NotOurs => Some("rename or remove that entry, then try again".to_owned()),
            Self::NoHttp { .. } => Some("leave `--http` out".to_owned()),
            Self::NoBackup { servers } => Some(format!(
                "Capstan still has them: write {servers} into the file again, then repeat"
            )),
            Self::Unsafe => Some("add or remove the entry by hand".to_owned()),
        }
    }
}

//! Our own entry: its content and its place in each client's file.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use capstan_config::source::tree::{Node, Table};

use super::{Client, ClientError, OUR_NAME};

/// The time that a client gives us to start and to list our tools.
const START_LIMIT: Duration = Duration::from_mins(1);

/// The way in which a client connects to Capstan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientConnection {
    /// The client starts this program.
    Stdio {
        /// The program: its full path, or its name where the file is shared.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// The client connects to a running gateway.
    Http {
        /// The gateway's address.
        url: String,
    },
}

/// The path of keys to the servers. Zeph's servers are a list, all others a table.
pub(super) fn container(client: Client, file: &Table) -> Vec<&'static str> {
    match client {
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Cursor
        | Client::Gemini
        | Client::Llxprt
        | Client::Windsurf
        | Client::Avelino => vec!["mcpServers"],
        Client::Codex | Client::Caliban => vec!["mcp_servers"],
        Client::VsCode => vec!["servers"],
        Client::Goose => vec!["extensions"],
        Client::Zed => vec!["context_servers"],
        Client::OpenCode => {
            // Its newer files have the servers one level deeper.
            let below = file.table("mcp").and_then(|mcp| mcp.table("servers"));
            match below.filter(|servers| servers.get("type").is_none()) {
                Some(_) => vec!["mcp", "servers"],
                None => vec!["mcp"],
            }
        }
        Client::Zeph => vec!["mcp", "servers"],
    }
}

/// Returns the entry with our name in a file, whatever its content.
pub(super) fn find(client: Client, file: &Table) -> Option<&Table> {
    find_in(file, &container(client, file), OUR_NAME)?.as_table()
}

/// Returns the entry of a server.
pub(super) fn find_in<'f>(file: &'f Table, container: &[&str], name: &str) -> Option<&'f Node> {
    let (last, above) = container.split_last()?;
    let around = above.iter().try_fold(file, |table, key| table.table(key))?;
    let servers = &around.get(last)?.node;
    match (servers.as_table(), servers.as_list()) {
        (Some(servers), _) => servers.get(name).map(|entry| &entry.node),
        (None, Some(servers)) => servers.iter().find(|server| {
            let id = server.as_table().and_then(|server| server.get("id"));
            id.and_then(|id| id.node.as_text()) == Some(name)
        }),
        (None, None) => None,
    }
}

/// True if an entry of a list of servers has this name.
pub(super) fn is_named(server: &Json, name: &str) -> bool {
    server.get("id").and_then(Json::as_str) == Some(name)
}

/// True if an entry starts our gateway.
pub(super) fn starts_us(entry: &Table) -> bool {
    let mut words = Vec::new();
    for key in ["command", "cmd", "args"] {
        let Some(entry) = entry.get(key) else { continue };
        let program = entry.node.as_table().and_then(|table| table.get("path"));
        let node = program.map_or(&entry.node, |path| &path.node);
        words.extend(node.as_text());
        words.extend(node.as_list().unwrap_or_default().iter().filter_map(Node::as_text));
    }
    let program = words.first().and_then(|command| command.rsplit(['/', '\\']).next());
    matches!(program, Some("capstan" | "capstan.exe")) && words.contains(&"serve")
}

/// Builds our entry in a client's format, for a file with this content.
pub(super) fn of(
    client: Client,
    file: &Table,
    way: &ClientConnection,
) -> Result<Map<String, Json>, ClientError> {
    let entry = match way {
        ClientConnection::Stdio { command, args } => started(client, command, args),
        ClientConnection::Http { url } => reached(client, url)?,
    };
    match entry {
        Json::Object(mut entry) => {
            entry.extend(start_limit(client, file));
            Ok(entry)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Err(ClientError::Unsafe)
        }
    }
}

/// The client's own limit on our start, raised where the client's file has one and its default is
/// shorter than the first start of many servers.
fn start_limit(client: Client, file: &Table) -> Option<(String, Json)> {
    let (key, limit) = match client {
        // 10 seconds by default, for the start and the first list.
        Client::Codex => ("startup_timeout_sec", json!(START_LIMIT.as_secs())),
        // 5 seconds by default; the newer files separate it from the limit of a call.
        Client::OpenCode => {
            let limit = u64::try_from(START_LIMIT.as_millis()).unwrap_or(u64::MAX);
            match container(client, file).as_slice() {
                [_] => ("timeout", json!(limit)),
                _ => ("timeout", json!({ "startup": limit })),
            }
        }
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Cursor
        | Client::VsCode
        | Client::Gemini
        | Client::Llxprt
        | Client::Goose
        | Client::Zed
        | Client::Windsurf
        | Client::Caliban
        | Client::Zeph
        | Client::Avelino => return None,
    };
    Some((key.to_owned(), limit))
}

fn started(client: Client, command: &str, args: &[String]) -> Json {
    match client {
        Client::ClaudeCode | Client::VsCode | Client::Caliban => {
            json!({ "type": "stdio", "command": command, "args": args })
        }
        Client::ClaudeDesktop
        | Client::Codex
        | Client::Cursor
        | Client::Gemini
        | Client::Llxprt
        | Client::Windsurf
        | Client::Avelino => json!({ "command": command, "args": args }),
        Client::Goose => json!({
            "name": OUR_NAME, "type": "stdio", "cmd": command, "args": args, "enabled": true
        }),
        Client::Zed => json!({ "source": "custom", "command": command, "args": args, "env": {} }),
        Client::OpenCode => {
            let words: Vec<&str> =
                std::iter::once(command).chain(args.iter().map(String::as_str)).collect();
            json!({ "type": "local", "command": words, "enabled": true })
        }
        Client::Zeph => json!({ "id": OUR_NAME, "command": command, "args": args }),
    }
}

fn reached(client: Client, url: &str) -> Result<Json, ClientError> {
    Ok(match client {
        Client::ClaudeCode | Client::VsCode | Client::Caliban => {
            json!({ "type": "http", "url": url })
        }
        Client::Codex | Client::Cursor => json!({ "url": url }),
        Client::Zed => json!({ "source": "custom", "url": url }),
        Client::Gemini | Client::Llxprt => json!({ "httpUrl": url }),
        Client::Windsurf => json!({ "serverUrl": url }),
        Client::Goose => json!({
            "name": OUR_NAME, "type": "streamable_http", "uri": url, "enabled": true
        }),
        Client::OpenCode => json!({ "type": "remote", "url": url, "enabled": true }),
        Client::Zeph => json!({ "id": OUR_NAME, "url": url }),
        Client::ClaudeDesktop => {
            let why = "its file supports only servers that are started as programs";
            return Err(ClientError::NoHttp { client: client.title(), why });
        }
        Client::Avelino => {
            let why = "Capstan reads this file too, and would connect to itself";
            return Err(ClientError::NoHttp { client: client.title(), why });
        }
    })
}

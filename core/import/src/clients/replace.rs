//! Replaces servers in a client's file by our entry, and puts them back.

use serde::{Deserialize, Serialize};

use capstan_config::source::syntax::Syntax;
use capstan_config::source::tree::{Entry, Table};

use super::{
    Client, ClientConnection, ClientError, Presence, differ_in_one, entry, json, plain, presence,
    put, read, remove, syntax, toml, yaml,
};

/// A server in a client's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerKey {
    /// The project that the file defines it for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its name there.
    pub server: String,
}

/// Removes servers from a client's file, and adds our entry.
///
/// An entry that starts Capstan already is kept; without `way`, none is added.
///
/// # Errors
/// If the file cannot be read or changed safely, or an entry of our name is not ours.
pub fn replace(
    client: Client,
    path: &str,
    text: &str,
    servers: &[ServerKey],
    way: Option<&ClientConnection>,
) -> Result<String, ClientError> {
    let mut new = text.to_owned();
    for server in servers {
        let file = read(client, path, &new)?;
        let (container, name) = locate(client, &file, server);
        new = remove(client, path, &new, &container, &name)?;
    }
    match way {
        Some(way) if presence(client, path, &new)? != Presence::Starts => {
            put(client, path, &new, way)
        }
        Some(_) | None => Ok(new),
    }
}

/// Puts servers back that were removed from `original`; those that are there again are kept.
///
/// # Errors
/// If a file cannot be read or changed safely.
pub fn put_back(
    client: Client,
    path: &str,
    text: &str,
    servers: &[ServerKey],
    original: &str,
) -> Result<String, ClientError> {
    let from = read(client, path, original)?;
    let mut new = text.to_owned();
    for server in servers {
        let file = read(client, path, &new)?;
        let (container, name) = locate(client, &from, server);
        if entry::find_in(&file, &container, &name).is_some() {
            continue;
        }
        let entry = entry::find_in(&from, &container, &name).ok_or(ClientError::Unsafe)?;
        let with = match syntax(client, path, original) {
            Syntax::Json => json::put_back(&new, &container, &name, entry)?,
            Syntax::Toml => toml::put_back(&new, &container, &name, original)?,
            Syntax::Yaml => yaml::put_back(&new, &file, &container, &name, (original, &from))?,
        };
        let after = read(client, path, &with).map_err(|_| ClientError::Unsafe)?;
        let found = entry::find_in(&after, &container, &name).map(plain);
        if found != Some(plain(entry)) || !differ_in_one(&file, &after, &container, &name) {
            return Err(ClientError::Unsafe);
        }
        new = with;
    }
    Ok(new)
}

/// Returns those of the servers that a client's file does not have.
///
/// # Errors
/// If the file cannot be read.
pub fn lacking(
    client: Client,
    path: &str,
    text: &str,
    servers: &[ServerKey],
) -> Result<Vec<ServerKey>, ClientError> {
    let file = read(client, path, text)?;
    let is_there = |server: &&ServerKey| {
        let (container, name) = locate(client, &file, server);
        entry::find_in(&file, &container, &name).is_some()
    };
    Ok(servers.iter().filter(|server| !is_there(server)).cloned().collect())
}

/// The table and the key of a server's entry.
fn locate<'k>(client: Client, file: &Table, server: &'k ServerKey) -> (Vec<&'k str>, String) {
    let name = server.server.clone();
    match (client, &server.project) {
        (Client::ClaudeCode, Some(project)) => (vec!["projects", project, "mcpServers"], name),
        (Client::Goose, _) => {
            let container = entry::container(client, file);
            let extensions = container.first().and_then(|key| file.table(key));
            // An extension can have a name that differs from its key.
            let is_it = |(key, extension): &(&String, &Entry)| {
                let table = extension.node.as_table();
                let named = table.and_then(|table| table.get("name")?.node.as_text());
                named.filter(|named| !named.trim().is_empty()).unwrap_or(key) == name
            };
            let found = extensions.and_then(|all| all.entries.iter().find(is_it));
            let key = found.map_or(name.clone(), |(key, _)| key.clone());
            (container, key)
        }
        (_, _) => (entry::container(client, file), name),
    }
}

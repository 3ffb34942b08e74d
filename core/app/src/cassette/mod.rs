//! Recordings of a server: its answers, in a file, from which a stand-in answers.
//!
//! `Recorder` reads the messages between a client and a server, `Player` answers as the server
//! did. A cassette is JSON lines: the first is the `Header`, each other one is an `Exchange`.
//! Messages are kept byte for byte, except those that contain a secret.

mod player;
mod recorder;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use capstan_model::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::RawValue;

pub use player::Player;
pub use recorder::{Mask, Recorder, Side};

/// The version of the format.
const VERSION: u32 = 1;

/// The largest cassette, in bytes.
pub const MAX_CASSETTE: usize = 64 * 1024 * 1024;

/// The largest number of exchanges.
const MAX_EXCHANGES: usize = 100_000;

/// The member of `_meta` that only requests of the modern era have.
const MODERN_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A recording to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The server.
    pub server: ServerName,
    /// The file to write.
    pub file: PathBuf,
    /// The client.
    pub asker: Asker,
}

/// The client of a server that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// The program on our standard streams.
    Client,
    /// We ask for the lists, and end.
    Ourselves,
}

/// The first line of a cassette.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The version of the format.
    capstan_cassette: u32,
    /// The name of the recorded server.
    server: String,
    /// True if the recording reached its limit, so that later exchanges are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// A request with the messages that answered it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    /// The method.
    method: String,
    /// The params without `_meta`.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    params: Json,
    /// The id of the request.
    id: Box<RawValue>,
    /// The progress token of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Json>,
    /// The messages of the server in their order: notifications, questions, and the answer.
    messages: Vec<Box<RawValue>>,
}

/// The members of a message that recording and playing depend on.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Json>,
}

/// The reason why a file is no cassette.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CassetteError {
    /// It has no header.
    #[error("it is no recording of capstan")]
    NoHeader,
    /// It has another version.
    #[error("it has version {0} of the format, and this program reads version {VERSION}")]
    Version(u32),
    /// A line cannot be read.
    #[error("line {line} is damaged: {cause}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// It is too large.
    #[error("it has more than {MAX_EXCHANGES} exchanges")]
    TooLong,
}

/// The params of a request without what differs from run to run.
fn comparable(method: &str, params: Option<Json>) -> Json {
    // Every client introduces itself differently.
    if matches!(method, "initialize" | "server/discover") {
        return Json::Null;
    }
    match params {
        Some(Json::Object(mut members)) => {
            members.remove("_meta");
            if members.is_empty() { Json::Null } else { Json::Object(members) }
        }
        Some(other) => other,
        None => Json::Null,
    }
}

/// The progress token of a request.
fn token(params: Option<&Json>) -> Option<Json> {
    params?.get("_meta")?.get("progressToken").cloned()
}

/// True if a request belongs to the modern era.
fn is_modern(method: &str, params: Option<&Json>) -> bool {
    let describes = || params.and_then(|params| params.get("_meta")?.get(MODERN_VERSION));
    method == "server/discover" || describes().is_some()
}

/// A message with another value for some of its top-level members; the other values keep their bytes.
fn with_members(message: &RawValue, changes: &[(&str, &RawValue)]) -> Option<Box<RawValue>> {
    let mut members: indexmap::IndexMap<String, Box<RawValue>> =
        serde_json::from_str(message.get()).ok()?;
    for (key, value) in changes {
        members.insert((*key).to_owned(), (*value).to_owned());
    }
    serde_json::value::to_raw_value(&members).ok()
}

/// The keys of the exchanges, for messages about what is missing.
fn count_methods<'a>(methods: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    methods.fold(BTreeMap::new(), |mut counted, method| {
        *counted.entry(method).or_default() += 1;
        counted
    })
}

//! Decides which of the found servers are written, and under which names.

use capstan_model::ServerName;
use serde::Serialize;
use serde_json::Value as Json;

use crate::clients::Client;
use capstan_config::RESTRICTING_KEYS;
use capstan_config::edit::EditError;
use capstan_config::edit::add_table;
use capstan_config::slug;
use capstan_config::source::SourceFile;
use capstan_config::source::problem::Problem;

use super::secrets::{Secrets, Vault};
use super::{Carried, Content, Found, entries};

/// The plan of an import.
#[derive(Debug)]
pub struct Plan {
    /// Every server that was found, with its outcome.
    pub rows: Vec<Row>,
    /// Variables that must be set for the servers that are written.
    pub variables: Vec<Variable>,
    /// Servers that are written with literal secrets.
    pub secrets: Vec<String>,
    new: Vec<(String, Carried)>,
}

/// The outcome for one server.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The client that the file belongs to.
    pub client: Client,
    /// The file.
    pub file: String,
    /// The project that the file defines it for, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its name there.
    pub server: String,
    /// Its command line or address, with secrets masked.
    pub target: String,
    /// Its outcome.
    #[serde(flatten)]
    pub state: State,
    /// Notes about parts that were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The outcome for a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// The server is written.
    New {
        /// The name in the native file.
        name: String,
    },
    /// The server already exists, or was found in another file.
    Same {
        /// The name in the native file.
        name: String,
        /// Restricting keys in which the two differ nevertheless.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        apart_from: Vec<String>,
    },
    /// Another server has its name, so the server is written under a new one.
    Differs {
        /// The other server.
        from: String,
        /// The new name.
        name: String,
    },
    /// The entry starts Capstan, and is left out.
    Itself,
    /// The server is in a file that Capstan reads directly, and is not copied.
    ReadDirectly,
    /// The server is part of the other program, and is left out.
    Inside {
        /// Its role there.
        reason: String,
    },
    /// The server cannot be used here.
    Unusable {
        /// The reason.
        reason: String,
    },
}

/// A variable that must be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The server that needs it.
    pub server: String,
    /// The file that has the value now; `None` if the client asks its user for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_in: Option<String>,
}

/// Keys that identify a server and the rights with which it is used.
const IDENTITY: [&str; 7] = ["command", "args", "env", "cwd", "url", "headers", "env_passthrough"];

/// The state of the planning.
struct Planning {
    /// The existing servers and the new ones.
    known: Vec<(String, Carried)>,
    /// Names that are taken, including those of entries that cannot be read.
    taken: Vec<(ServerName, String)>,
    vault: Vault,
    choice: Secrets,
    plan: Plan,
}

/// Plans the import of the found servers, given the native file.
///
/// # Errors
/// The problem that makes the native file unreadable.
pub fn plan(found: Vec<Found>, file: &SourceFile, choice: Secrets) -> Result<Plan, Box<Problem>> {
    let plan =
        Plan { rows: Vec::new(), variables: Vec::new(), secrets: Vec::new(), new: Vec::new() };
    let (known, taken, vault) = (Vec::new(), Vec::new(), Vault::default());
    let mut planning = Planning { known, taken, vault, choice, plan };
    for read in entries(file, "")? {
        planning.taken.extend(slug(&read.display).map(|slug| (slug, read.display.clone())));
        if let Content::Usable(carried) = read.content {
            planning.known.push((read.display, carried));
        }
    }
    for found in found.iter().filter(|found| found.read_directly) {
        let display = &found.display;
        planning.taken.extend(slug(display).map(|slug| (slug, display.clone())));
        if let Content::Usable(carried) = &found.content {
            planning.known.push((display.clone(), carried.clone()));
        }
    }
    for found in found {
        planning.add(found);
    }
    Ok(planning.plan)
}

// === impl Plan ===

impl Plan {
    /// Returns the names of the servers that are written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.new.iter().map(|(name, _)| name.as_str())
    }

    /// Writes the new servers after the existing ones.
    ///
    /// # Errors
    /// If the file cannot be read, or meanwhile has a server of one of the names.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        let add = |text: String, (name, carried): &(String, Carried)| {
            add_table(&text, name, carried.toml())
        };
        self.new.iter().try_fold(text.to_owned(), add)
    }
}

// === impl Planning ===

impl Planning {
    fn add(&mut self, found: Found) {
        let Found { client, file, project, display, target, notes, read_directly, content } = found;
        let state = match content {
            Content::Usable(_) if read_directly => State::ReadDirectly,
            Content::Inside(reason) => State::Inside { reason },
            Content::Itself => State::Itself,
            Content::Unusable(reason) => State::Unusable { reason },
            Content::Usable(carried) => self.place(client, &file, &display, carried),
        };
        let server = display;
        self.plan.rows.push(Row { client, file, project, server, target, state, notes });
    }

    fn place(&mut self, client: Client, file: &str, display: &str, carried: Carried) -> State {
        // A secret that became a variable can no longer be compared, but its variable can.
        let (bare, _) = carried.referenced(display, &mut Vault::default());
        let same =
            |known: &&(String, Carried)| is_same(&known.1, &carried) || is_same(&known.1, &bare);
        if let Some((name, known)) = self.known.iter().find(same) {
            let apart = |key: &str| known.keys.get(key) != carried.keys.get(key);
            let apart_from =
                RESTRICTING_KEYS.into_iter().filter(|key| apart(key)).map(str::to_owned);
            let apart_from = apart_from.collect();
            return State::Same { name: name.clone(), apart_from };
        }
        let other = self.holder(display).map(str::to_owned);
        let name = match other {
            Some(_) => self.free_name(display, client),
            None => display.to_owned(),
        };
        let (referenced, names) = carried.referenced(display, &mut self.vault);
        let mut need = |variable: &String, value_in: Option<&str>| {
            let value_in = value_in.map(str::to_owned);
            let variable = Variable { name: variable.clone(), server: name.clone(), value_in };
            if !self.plan.variables.contains(&variable) {
                self.plan.variables.push(variable);
            }
        };
        for name in &carried.asked {
            need(name, None);
        }
        let written = match self.choice {
            Secrets::Reference => {
                for name in &names {
                    need(name, Some(file));
                }
                referenced
            }
            Secrets::Keep => carried.clone(),
        };
        if self.choice == Secrets::Keep && !names.is_empty() {
            self.plan.secrets.push(name.clone());
        }
        self.taken.extend(slug(&name).map(|slug| (slug, name.clone())));
        // Later files are compared with the original entry, not with the written one.
        self.known.push((name.clone(), carried));
        self.plan.new.push((name.clone(), written));
        match other {
            Some(from) => State::Differs { from, name },
            None => State::New { name },
        }
    }

    /// The server that has this name, or a name with the same slug.
    fn holder(&self, name: &str) -> Option<&str> {
        let slug = slug(name)?;
        self.taken.iter().find(|(taken, _)| *taken == slug).map(|(_, display)| display.as_str())
    }

    fn free_name(&self, display: &str, client: Client) -> String {
        let first = format!("{display}-{}", client.as_str());
        let more = (2_u32..).map(|number| format!("{first}-{number}"));
        let mut names = std::iter::once(first.clone()).chain(more);
        names.find(|name| self.holder(name).is_none()).unwrap_or(first)
    }
}

/// True if two entries reach the same server with the same rights.
fn is_same(one: &Carried, other: &Carried) -> bool {
    let get = |carried: &Carried, key: &str| carried.keys.get(key).and_then(gist);
    IDENTITY.iter().all(|key| get(one, key) == get(other, key))
}

/// Normalizes a value for comparison: empty counts as absent, `${NAME:-}` equals `${NAME}`.
fn gist(value: &Json) -> Option<Json> {
    match value {
        Json::Null => None,
        Json::Bool(_) | Json::Number(_) => Some(value.clone()),
        Json::String(text) => Some(Json::String(text.replace(":-}", "}"))),
        Json::Array(items) => {
            let items: Vec<Json> = items.iter().filter_map(gist).collect();
            (!items.is_empty()).then_some(Json::Array(items))
        }
        Json::Object(map) => {
            let gist = |(key, value): (&String, &Json)| Some((key.clone(), gist(value)?));
            let map: serde_json::Map<String, Json> = map.iter().filter_map(gist).collect();
            (!map.is_empty()).then_some(Json::Object(map))
        }
    }
}

//! Decides which of the found servers are written, and under which names.

use capstan_model::ServerName;
use serde::Serialize;
use serde_json::Value as Json;

use crate::clients::Client;
use capstan_config::RESTRICTING_KEYS;
use capstan_config::edit::EditError;
use capstan_config::edit::add_table;
use capstan_config::slug;
use capstan_config::source::problem::Problem;
use capstan_config::source::reader::{FileReader as _, NativeFiles};
use capstan_config::source::{SourceFile, Surroundings};

use super::limits::{FormerLimit, Limit};
use super::secrets::{Secrets, Vault};
use super::variables::required_variables;
use super::{Carried, ClientRules, Content, Found, entries};

/// The plan of an import.
#[derive(Debug)]
pub struct Plan {
    /// Every server that was found, with its outcome.
    pub rows: Vec<Row>,
    /// Variables that must be set for the servers that are written.
    pub variables: Vec<Variable>,
    /// Servers that are written with literal secrets.
    pub secrets: Vec<String>,
    /// Limits for all servers that are written too.
    pub limits: Vec<Limit>,
    /// All limits that the servers demand, as the native file has them now.
    pub former_limits: Vec<FormerLimit>,
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
        /// Keys in which the two differ nevertheless.
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

/// Time limits. Servers of different names that differ in one of them are different servers.
const TIMES: [&str; 2] = ["timeout", "startup_timeout"];

/// A server to compare others with.
struct Known {
    name: String,
    carried: Carried,
    /// True if this import adds it.
    is_new: bool,
}

/// The state of the planning.
struct Planning {
    /// The existing servers and the new ones.
    known: Vec<Known>,
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
    let (rows, variables, secrets) = (Vec::new(), Vec::new(), Vec::new());
    let (limits, former_limits, new) = (Vec::new(), Vec::new(), Vec::new());
    let plan = Plan { rows, variables, secrets, limits, former_limits, new };
    let (known, taken, vault) = (Vec::new(), Vec::new(), Vault::default());
    let mut planning = Planning { known, taken, vault, choice, plan };
    for read in entries(file, "", &ClientRules::default())? {
        planning.taken.extend(slug(&read.display).map(|slug| (slug, read.display.clone())));
        if let Content::Usable(carried) = read.content {
            planning.known.push(Known { name: read.display, carried, is_new: false });
        }
    }
    for found in found.iter().filter(|found| found.read_directly) {
        let name = found.display.clone();
        planning.taken.extend(slug(&name).map(|slug| (slug, name.clone())));
        if let Content::Usable(carried) = &found.content {
            planning.known.push(Known { name, carried: carried.clone(), is_new: false });
        }
    }
    for found in found {
        planning.add(found);
    }
    let commands = planning.known.iter().filter_map(|known| known.carried.text("command"));
    let imported = std::mem::take(&mut planning.plan.limits);
    let native = native_limits(file)?;
    for limit in &imported {
        let former = limit.former(&native);
        if !planning.plan.former_limits.contains(&former) {
            planning.plan.former_limits.push(former);
        }
    }
    planning.plan.limits = Limit::combine(imported, &native, commands.map(str::to_owned));
    Ok(planning.plan)
}

/// The limits that the native file already has.
fn native_limits(file: &SourceFile) -> Result<Vec<Limit>, Box<Problem>> {
    let around = Surroundings { variable: &|_| None, project_dir: "" };
    Ok(Limit::all(&NativeFiles.open(file, around)?.tree))
}

// === impl Plan ===

impl Plan {
    /// Adds commands to a list of allowed ones that the import writes, so that it does not stop the
    /// servers that run them.
    pub fn keep_running(&mut self, commands: impl Iterator<Item = String>) {
        Limit::allow(&mut self.limits, commands);
    }

    /// Returns the names of the servers that are written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.new.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the variables that the written servers refer to and that have no default.
    pub fn references(&self) -> Vec<Variable> {
        let mut all = Vec::new();
        for (server, carried) in &self.new {
            let mut names = Vec::new();
            carried.keys.values().for_each(|value| references(value, &mut names));
            names.sort();
            names.dedup();
            let of_server = |name| Variable { name, server: server.clone(), value_in: None };
            all.extend(names.into_iter().map(of_server));
        }
        all
    }

    /// Writes the new servers after the existing ones, and the limits.
    ///
    /// # Errors
    /// If the file cannot be read, or meanwhile has a server of one of the names.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        let add = |text: String, (name, carried): &(String, Carried)| {
            add_table(&text, name, carried.toml())
        };
        let text = self.new.iter().try_fold(text.to_owned(), add)?;
        self.limits.iter().try_fold(text, |text, limit| limit.write(&text))
    }
}

// === impl Planning ===

impl Planning {
    fn add(&mut self, found: Found) {
        let Found { client, file, project, display, target, notes, read_directly, content } = found;
        let state = match content {
            Content::Usable(_) | Content::Restricted(_) if read_directly => State::ReadDirectly,
            Content::Inside(reason) => State::Inside { reason },
            Content::Itself => State::Itself,
            Content::Unusable(reason) | Content::Restricted(reason) => State::Unusable { reason },
            Content::Usable(carried) => self.place(client, &file, &display, carried),
        };
        let server = display;
        self.plan.rows.push(Row { client, file, project, server, target, state, notes });
    }

    fn place(&mut self, client: Client, file: &str, display: &str, carried: Carried) -> State {
        if let Some((state, is_new)) = self.same(display, &carried) {
            if is_new {
                self.plan.limits.extend(carried.limits);
            }
            return state;
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
        self.plan.limits.extend(carried.limits.clone());
        self.known.push(Known { name: name.clone(), carried, is_new: true });
        self.plan.new.push((name.clone(), written));
        match other {
            Some(from) => State::Differs { from, name },
            None => State::New { name },
        }
    }

    /// The outcome for a server that is known already, and whether this import adds that one.
    ///
    /// Servers of different names are the same only if they are restricted alike. A server that
    /// this import adds stays apart from one of its name in another file that is restricted
    /// otherwise; one that was there before is the operator's own and is kept.
    fn same(&self, display: &str, carried: &Carried) -> Option<(State, bool)> {
        // A secret that became a variable can no longer be compared, but its variable can.
        let (bare, _) = carried.referenced(display, &mut Vault::default());
        let same =
            |known: &&Known| is_same(&known.carried, carried) || is_same(&known.carried, &bare);
        let mut namesake = None;
        for known in self.known.iter().filter(same) {
            let restrictions = differing(&RESTRICTING_KEYS, &known.carried, carried);
            let mut apart_from = differing(&TIMES, &known.carried, carried);
            let is_off = setting(carried, "enabled").or(setting(carried, "disabled")).is_some();
            let is_kept = !known.is_new || restrictions.is_empty() || is_off;
            let is_equal = restrictions.is_empty() && apart_from.is_empty();
            apart_from.extend(restrictions);
            let state = State::Same { name: known.name.clone(), apart_from };
            if is_equal {
                return Some((state, known.is_new));
            }
            if namesake.is_none() && slug(&known.name) == slug(display) && is_kept {
                namesake = Some((state, known.is_new));
            }
        }
        namesake
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

/// Collects the variables without a default in a value.
fn references(value: &Json, names: &mut Vec<String>) {
    match value {
        Json::String(text) => names.extend(required_variables(text)),
        Json::Array(items) => items.iter().for_each(|item| references(item, names)),
        Json::Object(map) => {
            for (key, value) in map {
                names.extend(required_variables(key));
                references(value, names);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// True if two entries reach the same server with the same rights.
fn is_same(one: &Carried, other: &Carried) -> bool {
    let get = |carried: &Carried, key: &str| carried.keys.get(key).and_then(gist);
    IDENTITY.iter().all(|key| get(one, key) == get(other, key))
}

/// The keys in which two entries differ.
fn differing(keys: &[&str], one: &Carried, other: &Carried) -> Vec<String> {
    let differs = |key: &&&str| setting(one, key) != setting(other, key);
    keys.iter().filter(differs).map(|key| (*key).to_owned()).collect()
}

/// The value of a key, unless it is the default.
fn setting<'c>(carried: &'c Carried, key: &str) -> Option<&'c Json> {
    let is_default = |value: &&Json| match key {
        "enabled" => **value == Json::Bool(true),
        "disabled" | "lock_tool_list" => **value == Json::Bool(false),
        "trust" => value.as_str() == Some("untrusted"),
        _ => false,
    };
    carried.keys.get(key).filter(|value| !is_default(value))
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

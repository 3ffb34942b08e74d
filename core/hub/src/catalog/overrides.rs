//! The operator's overrides of single tools: how they are shown, and with which arguments they run.
//!
//! **Invariant:** overrides change only the presentation. Rules, effects and the audit log use the
//! name and the definition that the server gives a tool. Pinned and default arguments are put into
//! a call before anything is decided about that call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::{CallError, ItemId, ServerName, ToolOverride};
use capstan_wire::fold::collides;
use capstan_wire::{Json, object};
use indexmap::IndexMap;
use serde_json::{Map, Value};
use tracing::warn;

use crate::pipeline::nearest;
use crate::ports::Item;

/// The overrides of all servers, applied to the lists that were seen last.
#[derive(Debug, Default)]
pub struct Overrides {
    servers: HashMap<ServerName, IndexMap<String, ToolOverride>>,
    seen: Mutex<HashMap<ServerName, Seen>>,
}

/// A tool as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Its shown name.
    pub name: String,
    /// Its definition, with the shown name in it.
    pub definition: Json,
}

#[derive(Debug)]
struct Seen {
    items: Arc<[Item]>,
    overlay: Arc<Overlay>,
}

/// The overrides of one server, applied to its list.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Shown tools, by the server's own names.
    shown: HashMap<String, Arc<Shown>>,
    /// The server's own names, by shown names.
    own: HashMap<String, String>,
    /// Overrides that have no effect, as messages.
    problems: Vec<String>,
}

// === impl Overrides ===

impl Overrides {
    /// Creates overrides, given by server and by the server's own names.
    pub fn new(
        servers: impl IntoIterator<Item = (ServerName, IndexMap<String, ToolOverride>)>,
    ) -> Self {
        let servers = servers.into_iter().filter(|(_, overrides)| !overrides.is_empty());
        Self { servers: servers.collect(), seen: Mutex::default() }
    }

    /// Applies the overrides of a server to its current list of tools; cached per list.
    pub(crate) fn learn(&self, server: &ServerName, items: &Arc<[Item]>) -> Option<Arc<Overlay>> {
        let overrides = self.servers.get(server)?;
        let mut seen = self.seen();
        if let Some(known) = seen.get(server).filter(|known| Arc::ptr_eq(&known.items, items)) {
            return Some(Arc::clone(&known.overlay));
        }
        let overlay = Arc::new(Overlay::new(overrides, items));
        let before = seen.get(server).map(|known| Arc::clone(&known.overlay));
        let known = Seen { items: Arc::clone(items), overlay: Arc::clone(&overlay) };
        seen.insert(server.clone(), known);
        drop(seen);
        // Logs the problems only if they changed, because a new list usually has the same ones.
        if before.is_none_or(|before| before.problems != overlay.problems) {
            for problem in &overlay.problems {
                warn!(%server, "{problem}");
            }
        }
        Some(overlay)
    }

    /// Returns the overridden form of a tool; `None` if it is shown as its server defines it.
    pub fn shown(&self, id: &ItemId) -> Option<Arc<Shown>> {
        let seen = self.seen();
        seen.get(&id.server)?.overlay.shown.get(&id.item).cloned()
    }

    /// Replaces a shown name by the server's own name for that tool.
    pub fn own_name(&self, id: ItemId) -> ItemId {
        let own =
            self.seen().get(&id.server).and_then(|seen| seen.overlay.own.get(&id.item).cloned());
        match own {
            Some(item) => ItemId { item, ..id },
            None => id,
        }
    }

    /// Returns the overrides of a server that have no effect, as far as its tools are known.
    pub fn problems(&self, server: &ServerName) -> Vec<String> {
        self.seen().get(server).map(|seen| seen.overlay.problems.clone()).unwrap_or_default()
    }

    /// Puts pinned and default arguments into the params of a call.
    ///
    /// # Errors
    /// Fails if the caller gives an argument that is pinned or hidden, or if the arguments are not
    /// an object.
    pub(crate) fn settle(&self, id: &ItemId, params: Json) -> Result<Json, CallError> {
        let Some(settled) = self.settled(id) else { return Ok(params) };
        let invalid = |problem| CallError::InvalidArguments { item: id.to_string(), problem };
        let given = object::get(&params, "arguments").filter(|given| given.as_bytes() != b"null");
        let mut arguments = given.unwrap_or_else(Json::empty_object);
        let names = object::members(&arguments)
            .map_err(|_| invalid("they are not an object".to_owned()))?;
        for (name, _) in &names {
            // A server may read another spelling of a name as that name.
            let is_read_as = |own: &String| own == name || collides(own, name);
            if settled.pin.keys().any(is_read_as) {
                return Err(invalid(format!(
                    "`{name}` is set by the operator and cannot be given"
                )));
            }
            if settled.hide_parameters.iter().any(is_read_as) {
                return Err(invalid(format!("there is no `{name}`")));
            }
        }
        let is_given = |name: &String| names.iter().any(|(given, _)| given == name);
        let defaults = settled.default.iter().filter(|(name, _)| !is_given(name));
        // Spliced in, so that the caller's own arguments keep their bytes.
        for (name, value) in settled.pin.iter().chain(defaults) {
            let value = Json::from_value(value).map_err(|error| invalid(error.to_string()))?;
            let with = object::with_member(&arguments, name, &value);
            arguments = with.map_err(|error| invalid(error.to_string()))?;
        }
        let params = object::with_member(&params, "arguments", &arguments);
        params.map_err(|error| invalid(error.to_string()))
    }

    /// True if both sets of overrides rename the tools of a server in the same way.
    pub(crate) fn renames_as(&self, other: &Self, server: &ServerName) -> bool {
        self.renames(server).eq(other.renames(server))
    }

    fn renames(&self, server: &ServerName) -> impl Iterator<Item = (&String, &String)> {
        let tools = self.servers.get(server).into_iter().flatten();
        tools.filter_map(|(tool, change)| Some((tool, change.name.as_ref()?)))
    }

    /// True if a tool has pinned, default or hidden arguments.
    pub(crate) fn settles(&self, id: &ItemId) -> bool {
        self.settled(id).is_some()
    }

    fn settled(&self, id: &ItemId) -> Option<&ToolOverride> {
        self.servers.get(&id.server)?.get(&id.item).filter(|one| one.changes_arguments())
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<ServerName, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Overlay ===

impl Overlay {
    fn new(overrides: &IndexMap<String, ToolOverride>, items: &[Item]) -> Self {
        let mut overlay = Self::default();
        for (tool, change) in overrides {
            let Some(item) = items.iter().find(|item| item.name == *tool) else {
                let names = items.iter().map(|item| item.name.clone());
                let near = nearest(tool, names).into_iter().next();
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                overlay.problems.push(format!("`tools.{tool}`: there is no such tool{hint}"));
                continue;
            };
            let new = change.name.as_ref().filter(|new| *new != tool);
            // A name that the server uses for another tool is taken, even if that tool is shown
            // under a new one.
            let is_taken = |new: &&String| {
                overlay.own.contains_key(*new) || items.iter().any(|item| item.name == **new)
            };
            if let Some(new) = new.filter(is_taken) {
                let problem =
                    format!("`tools.{tool}.name`: `{new}` is another tool; it keeps its name");
                overlay.problems.push(problem);
            }
            let name = new.filter(|new| !is_taken(new)).unwrap_or(tool).clone();
            let (definition, problems) = apply(change, tool, &name, &item.definition);
            overlay.problems.extend(problems);
            if name != *tool {
                overlay.own.insert(name.clone(), tool.clone());
            }
            overlay.shown.insert(tool.clone(), Arc::new(Shown { name, definition }));
        }
        overlay
    }

    /// Returns the shown name of a tool.
    pub(crate) fn name<'a>(&'a self, own: &'a str) -> &'a str {
        self.shown.get(own).map_or(own, |shown| shown.name.as_str())
    }

    /// Returns the server's own name for a tool.
    pub(crate) fn own_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.own.get(name).map_or(name, String::as_str)
    }
}

/// Returns the definition under its shown name, and the parts of the override that have no
/// effect.
fn apply(change: &ToolOverride, tool: &str, name: &str, definition: &Json) -> (Json, Vec<String>) {
    let mut problems = Vec::new();
    let Ok(Value::Object(mut shown)) = definition.read::<Value>() else {
        return (definition.clone(), problems);
    };
    shown.insert("name".to_owned(), name.into());
    for (key, words) in [("title", &change.title), ("description", &change.description)] {
        if let Some(words) = words {
            shown.insert(key.to_owned(), words.as_str().into());
        }
    }
    if let Some(Value::Object(schema)) =
        shown.get_mut("inputSchema").filter(|_| change.changes_arguments())
    {
        apply_to_schema(change, tool, schema, &mut problems);
    }
    let written = Json::from_value(&shown).unwrap_or_else(|_| definition.clone());
    (written, problems)
}

fn apply_to_schema(
    change: &ToolOverride,
    tool: &str,
    schema: &mut Map<String, Value>,
    problems: &mut Vec<String>,
) {
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let parts = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let named = change.default.keys().chain(change.pin.keys()).chain(&change.hide_parameters);
    for name in named.filter(|name| !parts.contains_key(*name)) {
        // An open schema may accept the name, but it is more likely misspelt.
        let near = nearest(name, parts.keys().cloned()).into_iter().next();
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let how = if closed { "has no parameter" } else { "names no parameter" };
        problems.push(format!("`tools.{tool}`: the tool {how} `{name}`{hint}"));
    }
    let is_gone = |name: &str| {
        change.pin.contains_key(name) || change.hide_parameters.iter().any(|hidden| hidden == name)
    };
    if let Some(Value::Object(parts)) = schema.get_mut("properties") {
        parts.retain(|name, _| !is_gone(name));
        for (name, value) in &change.default {
            if let Some(Value::Object(part)) = parts.get_mut(name) {
                part.insert("default".to_owned(), value.clone());
            }
        }
    }
    let Some(Value::Array(required)) = schema.get_mut("required") else { return };
    let needed = |name: &&Value| {
        let name = name.as_str().unwrap_or_default();
        let hidden = change.hide_parameters.iter().any(|hidden| hidden == name);
        hidden && !change.pin.contains_key(name) && !change.default.contains_key(name)
    };
    for name in required.iter().filter(needed) {
        problems.push(format!("`tools.{tool}`: {name} is hidden, but the tool needs it; pin it"));
    }
    let is_settled = |name: &str| is_gone(name) || change.default.contains_key(name);
    required.retain(|name| !name.as_str().is_some_and(is_settled));
    if required.is_empty() {
        schema.shift_remove("required");
    }
}

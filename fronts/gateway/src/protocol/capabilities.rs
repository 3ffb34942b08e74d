//! Translates capabilities: of servers for clients, and of clients for servers.

use std::sync::Arc;

use capstan_hub::ports::About;
use capstan_wire::protocol::MODERN;
use capstan_wire::{Json, compose, object};

use crate::protocol::era::Era;
use crate::protocol::revision::Revision;

/// The tasks extension of 2026-07-28.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The skills extension.
pub(crate) const SKILLS: &str = "io.modelcontextprotocol/skills";

/// The extension for pages of user interfaces, which are resources.
const APPS: &str = "io.modelcontextprotocol/ui";

/// The extensions that are carried where several servers are shown as one.
const MERGED: [&str; 3] = [TASKS, SKILLS, APPS];

/// Capabilities that the gateway provides itself.
const OURS: [&str; 5] = ["tools", "prompts", "resources", "completions", "logging"];

/// A client's capabilities without those that its era does not have, so that no server uses them.
pub(crate) fn of_client(era: Era, capabilities: Json) -> Json {
    if era == Era::Modern {
        return capabilities;
    }
    let capabilities = object::without_member(&capabilities, "tasks").unwrap_or(capabilities);
    let Some(extensions) = object::get(&capabilities, "extensions") else { return capabilities };
    let rest = object::without_member(&extensions, TASKS)
        .and_then(|rest| object::with_member(&capabilities, "extensions", &rest));
    rest.unwrap_or_else(|_| Json::empty_object())
}

/// The capabilities of one server, as it declared them, as far as a client of this revision can use
/// them; those that the gateway provides while the server is unknown.
pub(crate) fn of_server(revision: Revision, server: Option<&Arc<About>>) -> Json {
    let known = server.and_then(|about| Some((about, about.capabilities.as_ref()?)));
    let Some((about, said)) = known else { return ours(Offers::ALL) };
    let members = object::members(said).unwrap_or_default().into_iter();
    let mut all: Vec<(String, Json)> = members
        .filter_map(|(key, value)| Some((carried(&key, value, about, revision)?, key)))
        .map(|(value, key)| (key, value))
        .collect();
    // The oldest revision has completion, but no capability for it.
    let is_oldest = about.protocol == Revision::V2024_11_05.as_str();
    if is_oldest && !all.iter().any(|(key, _)| key == "completions") {
        all.push(("completions".to_owned(), Json::empty_object()));
    }
    composed(&all)
}

/// The merged capabilities of several servers, as far as a client of this revision can use them.
pub(crate) fn of_servers<'a>(
    revision: Revision,
    servers: impl Iterator<Item = &'a Arc<About>>,
    others: Others,
) -> Json {
    let mut offers = match others {
        Others::None => Offers::default(),
        Others::Unknown => Offers::ALL,
    };
    let mut rest: Vec<(String, Json)> = Vec::new();
    for about in servers {
        offers.add(about.capabilities.as_ref());
        let theirs = about.capabilities.as_ref().and_then(|all| object::members(all).ok());
        for (key, value) in theirs.unwrap_or_default() {
            if OURS.contains(&key.as_str()) {
                continue;
            }
            let value = carried(&key, value, about, revision);
            let Some(value) = value.and_then(|value| merged(&key, value)) else { continue };
            match rest.iter_mut().find(|(name, _)| *name == key) {
                None => rest.push((key, value)),
                Some((_, known)) => *known = both(known, &value),
            }
        }
    }
    let all = object::members(&ours(offers)).unwrap_or_default().into_iter().chain(rest);
    composed(&all.collect::<Vec<_>>())
}

/// The servers beside those whose capabilities are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// There are no others.
    None,
    /// Some have not described themselves. They may have subscriptions and log messages.
    Unknown,
}

/// Capabilities that a gateway offers only if a server does.
#[derive(Clone, Copy, Default)]
struct Offers {
    subscriptions: bool,
    logging: bool,
}

// === impl Offers ===

impl Offers {
    const ALL: Self = Self { subscriptions: true, logging: true };

    /// Adds the offers of a server; a server that says nothing may offer all of them.
    fn add(&mut self, said: Option<&Json>) {
        let Some(said) = said else {
            *self = Self::ALL;
            return;
        };
        let subscribe = object::at_path(said, "resources.subscribe");
        self.subscriptions |= subscribe.is_some_and(|yes| yes.as_bytes() == b"true");
        self.logging |= object::get(said, "logging").is_some();
    }
}

/// The capabilities that the gateway provides itself.
fn ours(offers: Offers) -> Json {
    let (yes, empty) = (compose::truth(), Json::empty_object());
    let changes = compose::object(&[("listChanged", &yes)]);
    let mut resources = vec![("listChanged", &yes)];
    if offers.subscriptions {
        resources.push(("subscribe", &yes));
    }
    let resources = compose::object(&resources);
    let ways = [&changes, &changes, &resources, &empty, &empty];
    let all = OURS.into_iter().zip(ways).filter(|(key, _)| offers.logging || *key != "logging");
    compose::object(&all.collect::<Vec<_>>())
}

/// The part of a capability that the gateway carries where it shows several servers as one.
fn merged(key: &str, value: Json) -> Option<Json> {
    match key {
        "extensions" => {
            let members = object::members(&value).ok()?.into_iter();
            let known: Vec<_> =
                members.filter(|(name, _)| MERGED.contains(&name.as_str())).collect();
            (!known.is_empty()).then(|| composed(&known))
        }
        // How to merge these is unknown.
        "experimental" => None,
        _ => Some(value),
    }
}

fn composed(members: &[(String, Json)]) -> Json {
    let members: Vec<(&str, &Json)> = members.iter().map(|(k, v)| (k.as_str(), v)).collect();
    compose::object(&members)
}

/// The part of a server's capability that a client of this revision can use.
fn carried(key: &str, value: Json, about: &About, revision: Revision) -> Option<Json> {
    let both_modern = revision.era() == Era::Modern && about.protocol == MODERN;
    match key {
        "tasks" => {
            let both_know = revision == Revision::V2025_11_25
                && about.protocol == Revision::V2025_11_25.as_str();
            let tools = object::at_path(&value, "requests.tools.call").filter(|_| both_know)?;
            let tools = compose::object(&[("call", &tools)]);
            let requests = compose::object(&[("tools", &tools)]);
            let empty = Json::empty_object();
            // The gateway provides `list` itself; `cancel` depends on the server.
            let mut tasks = vec![("list", &empty), ("requests", &requests)];
            if object::get(&value, "cancel").is_some() {
                tasks.push(("cancel", &empty));
            }
            Some(compose::object(&tasks))
        }
        "extensions" if !both_modern => {
            let rest = object::without_member(&value, TASKS).ok()?;
            object::members(&rest).is_ok_and(|rest| !rest.is_empty()).then_some(rest)
        }
        _ => Some(value),
    }
}

/// Merges two values of one capability; the first wins where they differ.
fn both(first: &Json, second: &Json) -> Json {
    let Ok(members) = object::members(second) else { return first.clone() };
    members.into_iter().fold(first.clone(), |all, (key, value)| match object::get(&all, &key) {
        Some(known) if known.as_bytes().starts_with(b"{") => {
            object::with_member(&all, &key, &both(&known, &value)).unwrap_or(all)
        }
        Some(_) => all,
        None => object::with_member(&all, &key, &value).unwrap_or(all),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: &str = r#"{"list":{},"requests":{"tools":{"call":{}}}}"#;
    const EXTENSION: &str =
        r#"{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"x":1}}"#;

    fn shown(revision: Revision, servers: &[(&str, &str)]) -> Vec<String> {
        let about = |(protocol, capabilities): &(&str, &str)| {
            let capabilities = Some(Json::parse((*capabilities).to_owned()).unwrap());
            let protocol = (*protocol).to_owned();
            Arc::new(About { protocol, capabilities, ..About::default() })
        };
        let servers: Vec<Arc<About>> = servers.iter().map(about).collect();
        let all = object::members(&of_servers(revision, servers.iter(), Others::Unknown)).unwrap();
        all.iter().skip(5).map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn tasks_are_offered_only_where_both_sides_have_the_same() {
        let legacy = format!(r#"{{"tasks":{CALLS}}}"#);
        let modern = format!(r#"{{"extensions":{EXTENSION}}}"#);
        let servers = [("2025-11-25", legacy.as_str()), (MODERN, modern.as_str())];
        let rest = r#"extensions={"io.modelcontextprotocol/ui":{"x":1}}"#.to_owned();
        let table = [
            (Revision::V2026_07_28, vec![format!("extensions={EXTENSION}")]),
            (Revision::V2025_11_25, vec![format!("tasks={CALLS}"), rest.clone()]),
            (Revision::V2025_06_18, vec![rest]),
        ];
        for (revision, expected) in table {
            assert_eq!(shown(revision, &servers), expected, "{revision:?}");
        }
        let odd = [("2025-06-18", legacy.as_str()), ("2025-11-25", r#"{"tasks":{"list":{}}}"#)];
        assert!(shown(Revision::V2025_11_25, &odd).is_empty());
    }

    #[test]
    fn one_server_is_said_to_do_what_it_says_and_no_more() {
        let of_old = |capabilities: Option<&str>, protocol: &str| {
            let capabilities =
                capabilities.map(|capabilities| Json::parse(capabilities.to_owned()).unwrap());
            let protocol = protocol.to_owned();
            let about = Arc::new(About { protocol, capabilities, ..About::default() });
            let shown = of_server(Revision::V2025_06_18, Some(&about));
            let names = object::members(&shown).unwrap();
            names.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        let of = |capabilities| of_old(capabilities, "2025-06-18");
        assert_eq!(of(Some(r#"{"logging":{},"tools":{}}"#)), "logging tools");
        assert_eq!(of_old(Some(r#"{"tools":{}}"#), "2024-11-05"), "tools completions");
        assert_eq!(of(Some(r#"{"experimental":{"x":{}}}"#)), "experimental");
        assert_eq!(of(Some("{}")), "");
        assert_eq!(of(None), OURS.join(" "));
        let unknown = of_server(Revision::V2025_06_18, None);
        assert_eq!(object::members(&unknown).unwrap().len(), OURS.len());
    }

    #[test]
    fn one_server_is_described_in_its_own_words() {
        let said =
            r#"{"tools":{"listChanged":false,"x":1.0},"resources":{},"extensions":{"a/b":{}}}"#;
        let capabilities = Some(Json::parse(said).unwrap());
        let about =
            Arc::new(About { protocol: MODERN.to_owned(), capabilities, ..About::default() });
        assert_eq!(of_server(Revision::V2026_07_28, Some(&about)).as_str(), said);
    }

    #[test]
    fn of_several_servers_only_extensions_that_are_carried_are_put_together() {
        let servers = [
            (MODERN, r#"{"extensions":{"io.modelcontextprotocol/skills":{"x":1},"a/b":{}}}"#),
            (
                MODERN,
                r#"{"extensions":{"io.modelcontextprotocol/ui":{},"io.modelcontextprotocol/skills":{"x":2,"directoryRead":true}},"experimental":{"e":{}}}"#,
            ),
            (MODERN, r#"{"extensions":{"c/d":{}}}"#),
        ];
        assert_eq!(
            shown(Revision::V2026_07_28, &servers),
            [
                r#"extensions={"io.modelcontextprotocol/skills":{"x":1,"directoryRead":true},"io.modelcontextprotocol/ui":{}}"#
            ]
        );
    }

    #[test]
    fn subscriptions_and_log_messages_are_offered_only_if_a_server_may_have_them() {
        let of = |servers: &[Option<&str>], others| {
            let about = |said: Option<&str>| {
                let capabilities = said.map(|said| Json::parse(said.to_owned()).unwrap());
                Arc::new(About { capabilities, ..About::default() })
            };
            let servers: Vec<_> = servers.iter().copied().map(about).collect();
            let all = of_servers(Revision::V2025_11_25, servers.iter(), others);
            let subscribe = object::at_path(&all, "resources.subscribe").is_some();
            (subscribe, object::get(&all, "logging").is_some())
        };
        let (both, none) =
            (r#"{"resources":{"subscribe":true},"logging":{}}"#, r#"{"resources":{}}"#);
        assert_eq!(of(&[Some(none)], Others::None), (false, false));
        assert_eq!(of(&[Some(none), Some(both)], Others::None), (true, true));
        assert_eq!(of(&[Some(none), Some(r#"{"logging":{}}"#)], Others::None), (false, true));
        assert_eq!(of(&[Some(none)], Others::Unknown), (true, true));
        assert_eq!(of(&[Some(none), None], Others::None), (true, true));
    }

    #[test]
    fn a_client_is_spoken_for_only_in_what_its_revision_can_take() {
        let capabilities = format!(r#"{{"roots":{{}},"tasks":{{}},"extensions":{EXTENSION}}}"#);
        let capabilities = Json::parse(capabilities).unwrap();
        let of = |era| of_client(era, capabilities.clone()).to_string();
        assert_eq!(of(Era::Modern), capabilities.to_string());
        let rest = r#"{"roots":{},"extensions":{"io.modelcontextprotocol/ui":{"x":1}}}"#;
        assert_eq!(of(Era::Legacy), rest);
    }
}

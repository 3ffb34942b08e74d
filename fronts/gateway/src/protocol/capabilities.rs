//! Translates capabilities: of servers for clients, and of clients for servers.

use std::sync::Arc;

use capstan_hub::ports::About;
use capstan_wire::protocol::MODERN;
use capstan_wire::{Json, compose, object};

use crate::protocol::era::Era;
use crate::protocol::revision::Revision;

/// The tasks extension of 2026-07-28.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

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

/// The capabilities of one server; all of them while the server is unknown.
pub(crate) fn of_server(revision: Revision, server: Option<&Arc<About>>) -> Json {
    let all = of_servers(revision, server.into_iter());
    let Some(said) = server.and_then(|about| about.capabilities.as_ref()) else { return all };
    // The oldest revision has completion, but no capability for it.
    let is_oldest = server.is_some_and(|about| about.protocol == Revision::V2024_11_05.as_str());
    let has = |key: &str| object::get(said, key).is_some() || (is_oldest && key == "completions");
    OURS.into_iter()
        .filter(|key| !has(key))
        .fold(all, |all, key| object::without_member(&all, key).unwrap_or(all))
}

/// The merged capabilities of several servers, as far as a client of this revision can use them.
pub(crate) fn of_servers<'a>(
    revision: Revision,
    servers: impl Iterator<Item = &'a Arc<About>>,
) -> Json {
    let yes = Json::from_value(&true).unwrap_or_else(|_| Json::empty_object());
    let changes = compose::object(&[("listChanged", &yes)]);
    let resources = compose::object(&[("listChanged", &yes), ("subscribe", &yes)]);
    let empty = Json::empty_object();
    let ways = [changes.clone(), changes, resources, empty.clone(), empty];
    let mut all: Vec<(String, Json)> = OURS.map(ToOwned::to_owned).into_iter().zip(ways).collect();
    let ours = all.len();
    for about in servers {
        let theirs = about.capabilities.as_ref().and_then(|all| object::members(all).ok());
        for (key, value) in theirs.unwrap_or_default() {
            let Some(value) = carried(&key, value, about, revision) else { continue };
            match all.iter_mut().position(|(name, _)| *name == key) {
                None => all.push((key, value)),
                Some(at) if at < ours => {}
                Some(at) => {
                    if let Some((_, known)) = all.get_mut(at) {
                        *known = both(known, &value);
                    }
                }
            }
        }
    }
    let members: Vec<(&str, &Json)> = all.iter().map(|(k, v)| (k.as_str(), v)).collect();
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
        Some(_) => all,
        None => object::with_member(&all, &key, &value).unwrap_or(all),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: &str = r#"{"list":{},"requests":{"tools":{"call":{}}}}"#;
    const EXTENSION: &str = r#"{"io.modelcontextprotocol/tasks":{},"a/b":{"x":1}}"#;

    fn shown(revision: Revision, servers: &[(&str, &str)]) -> Vec<String> {
        let about = |(protocol, capabilities): &(&str, &str)| {
            let capabilities = Some(Json::parse((*capabilities).to_owned()).unwrap());
            let protocol = (*protocol).to_owned();
            Arc::new(About { protocol, capabilities, ..About::default() })
        };
        let servers: Vec<Arc<About>> = servers.iter().map(about).collect();
        let all = object::members(&of_servers(revision, servers.iter())).unwrap();
        all.iter().skip(5).map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn tasks_are_offered_only_where_both_sides_have_the_same() {
        let legacy = format!(r#"{{"tasks":{CALLS}}}"#);
        let modern = format!(r#"{{"extensions":{EXTENSION}}}"#);
        let servers = [("2025-11-25", legacy.as_str()), (MODERN, modern.as_str())];
        let rest = r#"extensions={"a/b":{"x":1}}"#.to_owned();
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
        assert_eq!(of(Some(r#"{"logging":{},"tools":{}}"#)), "tools logging");
        assert_eq!(of_old(Some(r#"{"tools":{}}"#), "2024-11-05"), "tools completions");
        assert_eq!(of(Some(r#"{"experimental":{"x":{}}}"#)), "experimental");
        assert_eq!(of(Some("{}")), "");
        assert_eq!(of(None), OURS.join(" "));
        let unknown = of_server(Revision::V2025_06_18, None);
        assert_eq!(object::members(&unknown).unwrap().len(), OURS.len());
    }

    #[test]
    fn what_several_servers_say_is_put_together() {
        let servers = [
            (MODERN, r#"{"extensions":{"a/b":{"x":1}},"tools":{"odd":1}}"#),
            (MODERN, r#"{"extensions":{"a/b":{"x":2},"c/d":{}},"experimental":{"e":{}}}"#),
        ];
        assert_eq!(
            shown(Revision::V2026_07_28, &servers),
            [r#"extensions={"a/b":{"x":1},"c/d":{}}"#, r#"experimental={"e":{}}"#]
        );
    }

    #[test]
    fn a_client_is_spoken_for_only_in_what_its_revision_can_take() {
        let capabilities = format!(r#"{{"roots":{{}},"tasks":{{}},"extensions":{EXTENSION}}}"#);
        let capabilities = Json::parse(capabilities).unwrap();
        let of = |era| of_client(era, capabilities.clone()).to_string();
        assert_eq!(of(Era::Modern), capabilities.to_string());
        let rest = r#"{"roots":{},"extensions":{"a/b":{"x":1}}}"#;
        assert_eq!(of(Era::Legacy), rest);
    }
}

//! `capstan get`: one server in full.

use capstan_app::AppError;
use capstan_hub::catalog::capped_instructions;
use capstan_hub::ports::{About, Listing};
use capstan_hub::{Freshness, Hub};
use capstan_model::{ServerName, ServerState};
use capstan_safety::clean::clean;
use serde_json::{Map, Value, json};

use super::add::origin_word;
use crate::args::GetArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::waiting::Waiting;

/// Lines of stderr shown for a server that failed.
const STDERR_SHOWN: usize = 10;

pub(crate) async fn run(context: &Context, args: &GetArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let entry = setup.server(&args.name)?;
    let hub = context.hub(&setup)?;
    if !hub.has(&entry.name) {
        return Err(AppError::not_found(format!("server `{}` is not in use", args.name)));
    }
    let waiting = Waiting::new(&context.print, &format!("starting `{}`", entry.name));
    let about = hub.introduce(&entry.name).await.ok();
    let mut shown = Map::new();
    let mut set = |key: &str, value: Value| {
        if !value.is_null() {
            shown.insert(key.to_owned(), value);
        }
    };
    set("name", json!(entry.name));
    if entry.display != entry.name.as_str() {
        set("display", json!(entry.display));
    }
    set("file", json!(format!("{}:{}", entry.origin.file, entry.origin.line)));
    set("scope", json!(origin_word(&entry.origin)));
    if let Ok(server) = &entry.status {
        set("transport", json!(server.kind.as_str()));
        set("target", json!(server.target));
        set("description", json!(server.description));
        set("trust", json!(server.trust));
        let networks: Vec<String> = server.networks.iter().map(ToString::to_string).collect();
        if !networks.is_empty() {
            set("networks", json!(networks));
        }
        set("timeout", json!(humantime::format_duration(server.timeout).to_string()));
    }
    counts(hub, &entry.name, about.as_deref(), &mut set).await;
    drop(waiting);
    let state = hub.state(&entry.name);
    let reason = state.as_ref().and_then(ServerState::reason);
    set("state", json!(state.as_ref().map(|state| state.name().as_str())));
    set("error", json!(reason));
    if reason.is_some() {
        let lines = hub.stderr(&entry.name);
        let tail = lines.get(lines.len().saturating_sub(STDERR_SHOWN)..).unwrap_or_default();
        set("stderr", if tail.is_empty() { Value::Null } else { json!(tail) });
    }
    print(context, &shown);
    Ok(Exit::Ok)
}

async fn counts(
    hub: &Hub,
    server: &ServerName,
    about: Option<&About>,
    set: &mut impl FnMut(&str, Value),
) {
    let Some(about) = about else { return };
    set("protocol", json!(about.protocol));
    set("title", json!(about.title));
    set("version", json!(about.version));
    set("instructions", json!(about.instructions.as_deref().map(capped_instructions)));
    for (key, listing) in [
        ("tools", Listing::Tools),
        ("prompts", Listing::Prompts),
        ("resources", Listing::Resources),
        ("templates", Listing::Templates),
    ] {
        if let Ok(items) = hub.list(server, listing, Freshness::Known).await {
            let count = match listing {
                Listing::Tools => hub.count_usable(&items),
                Listing::Prompts | Listing::Resources | Listing::Templates => items.len(),
            };
            set(key, json!(count));
        }
    }
}

fn print(context: &Context, shown: &Map<String, Value>) {
    if context.print.wants_json() {
        context.print.json(shown);
        return;
    }
    for (key, value) in shown {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(lines) => {
                let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
                format!("\n{}", lines.join("\n"))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
        };
        context.print.data(&line(key, &text));
    }
}

/// A key with its value, whose further lines are set in: no title or instruction of a server can
/// pass for a line of ours.
fn line(key: &str, text: &str) -> String {
    format!("{key}: {}", clean(text).replace('\n', "\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_pass_for_a_line_of_ours() {
        assert_eq!(line("state", "idle"), "state: idle");
        let forged = "Nice\ntrust: trusted\r\nstate: connected\rtrust: trusted\u{1b}[2J";
        let shown = "title: Nice\n  trust: trusted\n  state: connected\\u{d}trust: \
                     trusted\\u{1b}[2J";
        assert_eq!(line("title", forged), shown);
    }
}

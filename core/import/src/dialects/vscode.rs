//! Visual Studio Code and Copilot: `mcp.json` and `mcp-config.json`.
//!
//! The tables of `mcp.json` may also be in settings and in files of dev containers.

use capstan_config::source::expand::Answer;
use capstan_config::source::expand::forms::Forms;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Node, Table, Text, Value};

use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::server::{Keys, One, To, Unit};

const KEYS: Keys = &[
    ("type", To::ByHand),
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::ByHand),
    ("envFile", To::Refuse("variables from a file", "list them under `env`")),
    ("cwd", To::Key("cwd")),
    ("url", To::Key("url")),
    ("headers", To::Key("headers")),
    ("oauth", To::ByHand),
    ("sandboxEnabled", To::ByHand),
    ("sandbox", To::ByHand),
    ("tools", To::ByHand),
    ("timeout", To::Time(Unit::Milliseconds, &["timeout"])),
    ("disabled", To::Key("disabled")),
    ("dev", To::Note("Capstan does not watch or debug servers")),
    ("gallery", To::Nothing),
    ("version", To::Nothing),
];

const LOGIN: Words = &[
    ("clientId", Some("client_id")),
    ("clientSecret", Some("client_secret")),
    ("enterpriseManaged", Some("enterprise_managed")),
];

/// The possible paths of the table of servers.
const CONTAINERS: [&[&str]; 4] = [
    &["servers"],
    &["mcp", "servers"],
    &["customizations", "vscode", "mcp", "servers"],
    &["mcpServers"],
];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::Editor;
    work.slips(&["servers", "inputs", "mcp", "mcpServers"]);
    for container in CONTAINERS {
        let Some((last, above)) = container.split_last() else { continue };
        let around = above.iter().try_fold(work.raw, |table, key| table.table(key));
        let Some(around) = around else { continue };
        inputs(work, around);
        if let Some(servers) = around.table(last) {
            work.servers(&container.join("."), servers, KEYS, finish);
            return;
        }
    }
}

fn finish(one: &mut One<'_>) {
    one.kind("type", &[("local", "stdio"), ("streamable-http", "http")]);
    environment(one);
    one.login("oauth", LOGIN);
    match (one.flag("sandboxEnabled"), one.raw.get("sandbox")) {
        (Some(true), _) => {
            let node = Node::yes(one.span("sandboxEnabled"));
            one.put("sandbox", "sandboxEnabled", node);
            if one.raw.get("sandbox").is_some() {
                one.note("sandbox", "its server is confined to what every program needs; import it, and list files and hosts under `sandbox`");
            }
        }
        (Some(false), _) | (None, None) => {}
        (None, Some(_)) => one.note("sandbox", "it applies only with `sandboxEnabled`"),
    }
    one.tools_or_all("tools");
}

/// Translates the variables; numbers become strings.
fn environment(one: &mut One<'_>) {
    let Some(entry) = one.raw.get("env") else { return };
    let mut node = entry.node.clone();
    if let Value::Table(table) = &mut node.value {
        for entry in table.entries.values_mut() {
            if let Value::Number(number) = &entry.node.value {
                entry.node.value = Value::Text(Text::plain(number.clone()));
            }
        }
    }
    one.put("env", "env", node);
}

/// Reads the inputs that the file asks for; only those with a default can be used.
fn inputs(work: &mut Work<'_>, around: &Table) {
    let Some(entry) = around.get("inputs") else { return };
    for input in entry.node.as_list().unwrap_or_default() {
        let text = |key: &str| {
            let entry = input.as_table().and_then(|table| table.get(key));
            entry.and_then(|entry| entry.node.as_text()).map(str::to_owned)
        };
        if let Some(id) = text("id") {
            // An input without a default is treated as undeclared.
            if let Some(default) = text("default") {
                work.conventions.inputs.insert(id, Answer::Given(default));
            }
        } else {
            let problem = Problem::warning("an input has no `id`").help("give it one");
            work.report.add(problem, "inputs", &input.span);
        }
    }
}

//! Cursor and Windsurf: `mcpServers` of `mcp.json` and `mcp_config.json`.

use capstan_config::source::expand::forms::Forms;

use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::server::{Keys, One, To};

const KEYS: Keys = &[
    ("type", To::ByHand),
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("envFile", To::Refuse("variables from a file", "list them under `env`")),
    ("cwd", To::Key("cwd")),
    ("url", To::Key("url")),
    ("serverUrl", To::Key("url")),
    ("headers", To::Key("headers")),
    ("auth", To::ByHand),
    ("disabled", To::Key("disabled")),
    ("enabled", To::Key("enabled")),
    ("description", To::Key("description")),
    ("disabledTools", To::Tools("hide")),
    ("alwaysAllow", To::Note("to run calls without asking, use `permissions`")),
];

const LOGIN: Words = &[
    ("CLIENT_ID", Some("client_id")),
    ("CLIENT_SECRET", Some("client_secret")),
    ("scopes", Some("scopes")),
];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::Editor;
    work.slips(&["mcpServers"]);
    if let Some(servers) = work.table("mcpServers") {
        work.servers("mcpServers", servers, KEYS, finish);
    }
}

fn finish(one: &mut One<'_>) {
    one.kind("type", &[("streamable-http", "http"), ("streamablehttp", "http")]);
    one.login("auth", LOGIN);
}

//! The reference page of the configuration, made from the schema.

use std::fmt::Write as _;

use serde_json::Value;

use crate::schema::schema;

/// The names of keys in the files of other programs.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "servers",
        "`mcpServers` (Claude, Cursor, avelino, LLxprt, Gemini), `mcp_servers` (Caliban, Codex), `server` (Caliban), `mcp.servers` (Zeph, opencode), `servers` (VS Code), `extensions` (goose), `context_servers` (Zed), `mcp` (opencode)",
    ),
    ("servers.NAME.type", "`transport` (Caliban)"),
    ("servers.NAME.command", "`cmd` (goose)"),
    ("servers.NAME.env", "`envs`, `env_keys` (goose), `environment` (opencode)"),
    ("servers.NAME.env_passthrough", "`env_vars` (Codex)"),
    ("servers.NAME.url", "`httpUrl` (LLxprt, Gemini), `uri` (goose)"),
    ("servers.NAME.headers", "`http_headers`, `env_http_headers`, `bearer_token_env_var` (Codex)"),
    (
        "servers.NAME.enabled",
        "`disabled` (Caliban, opencode), `mcp.allowed`, `mcp.excluded` (LLxprt, Gemini), `disabledMcpServers` (Claude)",
    ),
    (
        "servers.NAME.always_load",
        "`alwaysLoad` (Claude), `mcp.eagerServers` (LLxprt), `lazy = false` (Caliban)",
    ),
    (
        "servers.NAME.timeout",
        "`tool_timeout_sec` (Codex), `tool_timeout_secs` (Zeph), `request_timeout_ms` (Claude), `context_server_timeout` (Zed), `timeout.request` (opencode)",
    ),
    (
        "servers.NAME.startup_timeout",
        "`startup_timeout_sec`, `startup_timeout_ms` (Codex), `timeout` (Zeph, LLxprt, Gemini, goose), `timeout.startup` (opencode), `MCP_TIMEOUT` (Claude)",
    ),
    (
        "servers.NAME.trust",
        "`trust_level` (Zeph); `trust: true` (LLxprt, Gemini) is a rule `NAME__*` under `permissions.allow`",
    ),
    (
        "servers.NAME.expose",
        "`includeTools` (LLxprt, Gemini), `tool_allowlist`, `policy.allowed_tools` (Zeph), `enabled_tools` (Codex), `available_tools` (goose)",
    ),
    (
        "servers.NAME.hide",
        "`excludeTools` (LLxprt, Gemini), `policy.denied_tools` (Zeph), `disabled_tools` (Codex), `tools` (opencode)",
    ),
    ("servers.NAME.effect", "`tool_acl` (avelino)"),
    (
        "servers.NAME.permissions",
        "`default_tools_approval_mode`, `tools.TOOL.approval_mode` (Codex), `agent.tool_permissions.tools` (Zed), `permission` (opencode)",
    ),
    ("permissions.default", "`GOOSE_MODE` (goose), `agent.tool_permissions.default` (Zed)"),
    ("access", "`acl`, at the top or in `serverAuth` (avelino)"),
    ("access.strict", "`strictClassification` (avelino)"),
    ("gateway.auth", "`serverAuth` (avelino)"),
    ("gateway.auth.forwarded.trusted_source_cidrs", "`trustedSourceCidrs` (avelino)"),
    ("gateway.auth.oauth_as", "`oauthAs`, with the same keys in camel case (avelino)"),
    ("gateway.auth.oauth_as.access_token_ttl", "`accessTokenTtlSeconds` (avelino)"),
    ("gateway.auth.oauth_as.refresh_token_ttl", "`refreshTokenTtlSeconds` (avelino)"),
    ("gateway.auth.oauth_as.authorization_code_ttl", "`authorizationCodeTtlSeconds` (avelino)"),
    ("mcp.elicitation_queue", "`elicitation_queue_capacity` (Zeph)"),
    ("audit.arguments", "`log_arguments` (avelino)"),
    ("servers.NAME.elicitation", "`elicitation_enabled` (Zeph)"),
    ("servers.NAME.description", "`display_name` (goose)"),
];

/// Environment variables, their other names, and what they set.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("CAPSTAN_NO_MCP", "`CALIBAN_NO_MCP`", "`1` disables all servers"),
    (
        "CAPSTAN_MCP_TIMEOUT",
        "`CALIBAN_MCP_TIMEOUT`, `MCP_TIMEOUT`",
        "`startup_timeout` of servers that set none",
    ),
    (
        "CAPSTAN_MCP_TOOL_TIMEOUT",
        "`CALIBAN_MCP_TOOL_TIMEOUT`, `MCP_TOOL_TIMEOUT`",
        "`timeout` of servers that set none",
    ),
    (
        "CAPSTAN_MAX_MCP_OUTPUT_TOKENS",
        "`CALIBAN_MAX_MCP_OUTPUT_TOKENS`",
        "the number of tokens above which an answer comes in pages, as `screen.max_tokens`",
    ),
    ("CAPSTAN_MCP_OAUTH_PORT", "`CALIBAN_MCP_OAUTH_PORT`", "the port of a login's callback"),
];

const INTRODUCTION: &str = "\
<!-- Generated from core/config/src/settings/ by `./dev/bless`. -->

# Configuration

Native files are TOML; [files of other programs](../guide/configuration.md#files-of-other-programs)
are read in their own formats. Files are read in this order: the managed file, files named by `--config`
or `CAPSTAN_CONFIG`, the project's `.capstan/config.toml`, the user's `capstan/config.toml` in the
configuration folder. The first file that names a server defines it completely. The rules of all files
apply together; a project file cannot loosen the rules of other files.

In every string of a native file, `${VAR}` and `${VAR:-default}` are replaced by environment variables;
`${CAPSTAN_PROJECT_DIR}` is the root of the workspace. If a variable is unset, only the server that uses
it fails.

Durations and sizes are strings with a unit: `\"30s\"`, `\"10MiB\"`. A key that is not listed here is
an error. In files of other programs it is a warning, unless it restricts callers or calls. The JSON
Schema is [config.schema.json](config.schema.json).
";

/// Returns the reference page as Markdown.
pub fn reference() -> String {
    let schema = schema();
    let mut page = INTRODUCTION.to_owned();
    let server = at(&schema, "/properties/servers/additionalProperties");
    section(&mut page, "[servers.NAME]", "servers.NAME", server);
    if let Some(names) = elsewhere("servers") {
        let _ = writeln!(page, "\nOther programs call the table {names}.");
    }
    for table in [
        "permissions",
        "access",
        "tools",
        "mcp",
        "audit",
        "screen",
        "flows",
        "search",
        "gateway",
        "model",
    ] {
        let described = at(&schema, &format!("/properties/{table}"));
        section(&mut page, &format!("[{table}]"), table, described);
    }
    rules(&mut page, &schema);
    rates(&mut page, &schema);
    forms(&mut page, &schema);
    variables(&mut page);
    page
}

fn section(page: &mut String, title: &str, path: &str, table: &Value) {
    let _ = writeln!(page, "\n## `{title}`\n\n{}\n", text(table, "description"));
    page.push_str("| key | type | default | meaning | elsewhere |\n|---|---|---|---|---|\n");
    rows(page, "", path, table);
}

fn rows(page: &mut String, prefix: &str, path: &str, table: &Value) {
    for (key, property) in at(table, "/properties").as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        let default = match property.get("default") {
            Some(value) => format!("`{value}`"),
            None => String::new(),
        };
        let meaning = text(property, "description").replace('|', "\\|");
        let names = elsewhere(&path).unwrap_or_default();
        let kind = kind(property);
        let _ = writeln!(page, "| `{prefix}{key}` | {kind} | {default} | {meaning} | {names} |");
        rows(page, &format!("{prefix}{key}."), &path, property);
    }
}

/// The type of a key in words.
fn kind(property: &Value) -> String {
    if let Some(title) = at(property, "/title").as_str() {
        return title.to_owned();
    }
    if let Some(words) = at(property, "/enum").as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    match text(property, "type") {
        "array" => format!("list of {}s", kind(at(property, "/items"))),
        "object" if property.get("additionalProperties").is_some_and(Value::is_object) => {
            let tables = property.pointer("/additionalProperties/properties").is_some();
            if tables { "table of tables" } else { "table of strings" }.to_owned()
        }
        "object" => "table".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "number".to_owned(),
        other => other.to_owned(),
    }
}

fn rules(page: &mut String, schema: &Value) {
    page.push_str(
        "\n## Rules\n\nA rule is a pattern, or a table of these keys. Lists are checked in this \
         order: global deny, server deny, server ask, server allow, global ask, global allow, \
         `permissions.default`.\n\n| key | type | default | meaning | elsewhere |\n|---|---|---|---|---|\n",
    );
    let rule = at(schema, "/properties/permissions/properties/deny/items");
    for form in at(rule, "/anyOf").as_array().into_iter().flatten() {
        rows(page, "", "rule", form);
    }
}

fn rates(page: &mut String, schema: &Value) {
    page.push_str(
        "\n## Rates\n\nEach `[[tools.rates]]` is a table of these keys. A call is refused if \
         one of the rates that apply to it is used up: no period of length `every` contains more calls \
         than `limit`. Retries after a broken connection and the later parts of a call do not count.\n\n| key | type | default | meaning | elsewhere |\n|---|---|---|---|---|\n",
    );
    rows(page, "", "rate", at(schema, "/properties/tools/properties/rates/items"));
}

/// The keys of a server that have more than one form.
fn forms(page: &mut String, schema: &Value) {
    let server = "/properties/servers/additionalProperties/properties";
    for (title, key, form) in [
        ("OpenAPI documents\n\n`openapi` is a document, or a table of these keys.", "openapi", "1"),
        (
            "Credentials for OpenAPI documents\n\nEach `[servers.NAME.openapi.auth.SCHEME]`, where `SCHEME` is \
             the name of a security scheme of the document, is a table of these keys: `token`, or \
             `username` and `password`, or `client_id` and `client_secret`.",
            "openapi",
            "1/properties/auth/additionalProperties",
        ),
        (
            "Tools\n\nEach `[servers.NAME.tools.TOOL]` is a table of these keys.",
            "tools",
            "0/additionalProperties",
        ),
    ] {
        let _ = writeln!(page, "\n## {title}\n");
        page.push_str("| key | type | default | meaning | elsewhere |\n|---|---|---|---|---|\n");
        rows(page, "", key, at(schema, &format!("{server}/{key}/anyOf/{form}")));
    }
}

fn variables(page: &mut String) {
    page.push_str(
        "\n## Environment\n\nThe first name that is set applies. Times are in milliseconds; the \
         `CAPSTAN_` names also accept durations.\n\n| variable | other names | sets |\n|---|---|---|\n",
    );
    for (name, others, sets) in VARIABLES {
        let _ = writeln!(page, "| `{name}` | {others} | {sets} |");
    }
}

fn elsewhere(path: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(key, _)| *key == path).map(|(_, names)| *names)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a JSON pointer, or null.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

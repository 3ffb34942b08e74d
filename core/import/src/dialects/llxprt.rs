//! LLxprt Code and Gemini CLI: `mcpServers` and `mcp` of their `settings.json`.

use capstan_config::source::expand::forms::Forms;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Table, Value};

use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::server::{Keys, One, To, Unit, exactly};
use capstan_config::source::reader::AutoAllow;

const KEYS: Keys = &[
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("cwd", To::Key("cwd")),
    ("url", To::Key("url")),
    ("httpUrl", To::ByHand),
    ("headers", To::Key("headers")),
    ("type", To::ByHand),
    ("transport", To::ByHand),
    ("tcp", To::Refuse("a connection over plain TCP", "give it a `url`")),
    // The limit covers the connection and every call.
    ("timeout", To::Time(Unit::Milliseconds, &["timeout", "startup_timeout"])),
    ("trust", To::ByHand),
    ("description", To::Key("description")),
    ("includeTools", To::ByHand),
    ("excludeTools", To::Tools("hide")),
    ("oauth", To::ByHand),
    ("oauthClientId", To::ByHand),
    ("oauthClientSecret", To::ByHand),
    ("oauthAuthorizationUrl", To::ByHand),
    ("oauthTokenUrl", To::ByHand),
    ("oauthScopes", To::ByHand),
    ("authProviderType", To::ByHand),
    ("targetAudience", To::ByHand),
    ("targetServiceAccount", To::ByHand),
    ("extensionName", To::Nothing),
    ("extension", To::Nothing),
];

const LOGIN: Words = &[
    ("clientId", Some("client_id")),
    ("clientSecret", Some("client_secret")),
    ("authorizationUrl", Some("auth_url")),
    ("tokenUrl", Some("token_url")),
    ("registrationUrl", Some("registration_url")),
    ("issuer", Some("issuer")),
    ("scopes", Some("scopes")),
    ("audiences", Some("audience")),
    ("redirectUri", Some("redirect_uri")),
    ("tokenParamName", Some("token_parameter")),
];

const FLAT_LOGIN: [(&str, &str); 5] = [
    ("oauthClientId", "client_id"),
    ("oauthClientSecret", "client_secret"),
    ("oauthAuthorizationUrl", "auth_url"),
    ("oauthTokenUrl", "token_url"),
    ("oauthScopes", "scopes"),
];

const TRANSPORTS: [(&str, &str); 2] = [("streamable-http", "http"), ("streamable_http", "http")];

const PROGRAM: [&str; 4] = ["command", "args", "env", "cwd"];

/// Lists of server names: the key under `mcp`, and its older name at the top.
const LISTS: [(&str, &str); 3] = [
    ("allowed", "allowMCPServers"),
    ("excluded", "excludeMCPServers"),
    ("eagerServers", "eagerMCPServers"),
];

/// A value with its path.
struct Named<'a> {
    path: String,
    entry: &'a Entry,
}

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::Shell;
    work.slips(&["mcpServers", "mcp"]);
    let mcp = match work.raw.get("mcp") {
        Some(_) => work.table("mcp"),
        None => None,
    };
    let [allowed, excluded, eager] = LISTS.map(|(key, older)| named(work.raw, mcp, key, older));
    for list in [&allowed, &excluded].into_iter().flatten() {
        if list.entry.node.as_list().is_none() {
            let problem = Problem::error(format!("`{}` must be a list of servers", list.path))
                .help("write their names in brackets");
            work.report.add(problem, list.path.clone(), &list.entry.node.span);
        }
    }
    let mut auto_allows = Vec::new();
    if let Some(servers) = work.table("mcpServers") {
        work.servers("mcpServers", servers, KEYS, |one| {
            auto_allows.extend(finish(one));
            for (list, keep) in [(&allowed, true), (&excluded, false)] {
                if let Some(list) = list
                    && list.contains(&one.display) != keep
                {
                    one.switch_off(&list.path, list.entry.node.span.clone());
                }
            }
            if let Some(list) = eager.as_ref().filter(|list| list.contains(&one.display)) {
                let span = list.entry.node.span.clone();
                let node = Node::yes(span.clone());
                let path = Some(list.path.clone());
                one.out.put("always_load", Entry { path, ..Entry::new(span, node) });
            }
        });
    }
    work.conventions.auto_allows = auto_allows;
    command_line(work, mcp);
    notes(work, mcp);
}

fn finish(one: &mut One<'_>) -> Option<AutoAllow> {
    transport(one);
    one.login("oauth", LOGIN);
    one.flat_login(&FLAT_LOGIN);
    provider(one);
    include(one);
    match one.raw.get("trust").map(|entry| entry.node.as_bool()) {
        Some(Some(true)) => one.auto_allow(join(&one.path, "trust"), &one.span("trust"), "*"),
        Some(Some(false)) | None => None,
        Some(None) => {
            let message = format!("`{}` must be true or false", join(&one.path, "trust"));
            one.warn(
                "trust",
                Problem::error(message).help("remove it to approve calls one by one"),
            );
            None
        }
    }
}

/// Chooses the transport: `httpUrl` before `url` before `command`.
fn transport(one: &mut One<'_>) {
    let (http, url) = (one.raw.get("httpUrl"), one.raw.get("url").is_some());
    if let Some(http) = http {
        one.drop_keys(&["url"], "httpUrl");
        one.put("url", "httpUrl", http.node.clone());
        one.put_text("type", "httpUrl", "http");
        one.drop_keys(&PROGRAM, "httpUrl");
        return;
    }
    let key = if one.raw.get("type").is_some() { "type" } else { "transport" };
    one.kind(key, &TRANSPORTS);
    if url {
        one.drop_keys(&PROGRAM, "url");
    } else {
        one.drop_keys(&["headers"], "command");
    }
}

/// Translates a login by a cloud account.
fn provider(one: &mut One<'_>) {
    const KEYS: [(&str, &str); 3] = [
        ("authProviderType", "type"),
        ("targetAudience", "target_audience"),
        ("targetServiceAccount", "target_service_account"),
    ];
    let discovered = one.text("authProviderType") == Some("dynamic_discovery");
    let mut table = Table::default();
    for (key, ours) in KEYS {
        if let Some(entry) = one.raw.get(key) {
            let path = Some(join(&one.path, key));
            table.put(ours, Entry { path, ..entry.clone() });
        }
    }
    // The scopes of the token are beside those of a login.
    let scopes = one.raw.table("oauth").and_then(|oauth| oauth.get("scopes"));
    if let (Some(entry), Some("google_credentials")) = (scopes, one.text("authProviderType")) {
        let path = Some(format!("{}.oauth.scopes", one.path));
        table.put("scopes", Entry { path, ..entry.clone() });
    }
    if discovered {
        one.put_text("oauth", "authProviderType", "auto");
    } else if !table.entries.is_empty() {
        let key = KEYS.map(|(key, _)| key).into_iter().find(|key| one.raw.get(key).is_some());
        let key = key.unwrap_or("authProviderType");
        one.put("auth_provider", key, Node { value: Value::Table(table), span: one.span(key) });
    }
}

/// Translates the tools to offer: each is a name, optionally with arguments in brackets.
fn include(one: &mut One<'_>) {
    let Some(entry) = one.raw.get("includeTools") else { return };
    let mut node = entry.node.clone();
    if let Value::List(nodes) = &mut node.value {
        for node in nodes {
            if let Some(text) = node.as_text() {
                let name = text.split('(').next().unwrap_or(text);
                *node = Node::text(exactly(name), node.span.clone());
            }
        }
    }
    one.put("expose", "includeTools", node);
}

fn named<'a>(raw: &'a Table, mcp: Option<&'a Table>, key: &str, older: &str) -> Option<Named<'a>> {
    let newer = mcp.and_then(|mcp| mcp.get(key));
    let older = raw.get(older).map(|entry| Named { path: older.to_owned(), entry });
    newer.map(|entry| Named { path: join("mcp", key), entry }).or(older)
}

/// Translates a server that is given as one command line.
fn command_line<'a>(work: &mut Work<'a>, mcp: Option<&'a Table>) {
    let named = named(work.raw, mcp, "serverCommand", "mcpServerCommand");
    let Some(Named { path, entry }) = named else { return };
    let words = entry.node.as_text().and_then(words);
    let Some((command, args)) = words.as_deref().and_then(<[String]>::split_first) else {
        let problem = Problem::error(format!("`{path}` is not a command line"))
            .help("write the program and its arguments, as for a shell");
        work.report.add(problem, path, &entry.node.span);
        return;
    };
    let span = &entry.node.span;
    let mut one = work.begin("mcp", path.clone(), &entry.key, work.raw);
    let args = args.iter().map(|word| Node::text(word, span.clone())).collect();
    let parts =
        [("command", Node::text(command, span.clone())), ("args", Node::list(args, span.clone()))];
    for (key, node) in parts {
        let path = Some(path.clone());
        one.out.put(key, Entry { path, ..Entry::new(entry.key.clone(), node) });
    }
    work.add(one);
}

fn notes(work: &mut Work<'_>, mcp: Option<&Table>) {
    let lazy = mcp.and_then(|mcp| mcp.get("lazy"));
    if let Some(entry) = lazy.filter(|entry| entry.node.as_bool() == Some(true)) {
        let problem = Problem::warning("`mcp.lazy` has no effect in this version".to_owned())
            .help("you can keep it");
        work.report.add(problem, "mcp.lazy", &entry.key);
    }
    let auth = work.raw.table("auth").and_then(|auth| auth.get("noBrowser"));
    if let Some(entry) = auth.filter(|entry| entry.node.as_bool() == Some(true)) {
        let node = Node::no(entry.node.span.clone());
        let entry = Entry::new(entry.key.clone(), node);
        work.put("mcp", "login_browser", "auth.noBrowser".to_owned(), &entry);
    }
}

/// Splits a command line into words, with quotes and backslashes; `None` if a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().push(chars.next()?),
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

// === impl Named ===

impl Named<'_> {
    fn contains(&self, name: &str) -> bool {
        let list = self.entry.node.as_list().unwrap_or_default();
        list.iter().any(|node| node.as_text() == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_as_a_shell_would() {
        for (line, expected) in [
            ("npx -y  pkg", Some(vec!["npx", "-y", "pkg"])),
            ("a 'b c' \"d\\\"e\" f\\ g ''", Some(vec!["a", "b c", "d\"e", "f g", ""])),
            ("", Some(vec![])),
            ("a 'b", None),
            ("a \\", None),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(words(line), expected, "{line}");
        }
    }
}

//! Reads how a server is reached: its kind, and the keys of that kind.

use capstan_model::{Secret, SecretReference};
use capstan_safety::environment::hijacks;
use capstan_safety::mask::{mask_arguments, mask_url};
use indexmap::IndexMap;

use crate::fields::{Fields, Given};
use crate::settings::form::OneOf as _;
use crate::settings::server::words::Transport;
use crate::settings::server::{
    CliProgram, Fallback, KEYS_OF_KINDS, Kind, OpenApi, Program, Remote,
};
use crate::settings::server::{auth_provider, helper, openapi, preset};
use crate::source::problem::Problem;
use crate::source::tree::Text;
use crate::source::{Dialect, Scope, references};
use crate::url;

/// The kind of a server, and its target with secrets masked.
pub(super) struct Reached {
    pub(super) kind: Kind,
    pub(super) target: String,
}

/// Reads how the server is reached; `None` if that cannot be determined.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Reached> {
    let chosen = choose(fields);
    let what = chosen.map(|(what, _)| what);
    for (key, kinds) in KEYS_OF_KINDS {
        let (Some(entry), Some(what)) = (fields.entry(key), what) else { continue };
        let off = match *key {
            "cli" => entry.node.as_bool() == Some(false),
            "oauth" => entry.node.as_text() == Some("off"),
            // A table of tools has another meaning, and is checked by the code for that.
            "tools" => entry.node.as_list().is_none(),
            _ => false,
        };
        if !kinds.contains(&what) && !off {
            let message = format!("`{}` has no effect for {}", fields.key(key), what.article());
            let help = format!("remove `{}`", fields.word_for(key));
            fields.problem(key, Problem::error(message).help(help));
        }
    }
    let Some((what, fallback)) = chosen else {
        // The entry cannot be used, but its other mistakes are reported too.
        fields.texts("args");
        environment(fields);
        passthrough(fields);
        headers(fields);
        auth_provider::read(fields);
        return None;
    };
    match what {
        Transport::Stdio => {
            program(fields).map(|(program, target)| Reached { kind: Kind::Stdio(program), target })
        }
        Transport::Cli => cli(fields),
        Transport::Http => {
            let (remote, target) = remote(fields, fallback)?;
            Some(Reached { kind: Kind::Http(remote), target })
        }
        Transport::Sse => {
            let (remote, target) = remote(fields, fallback)?;
            Some(Reached { kind: Kind::Sse(remote), target })
        }
        Transport::OpenApi => {
            let (document, target) = openapi::read(fields)?;
            let kind = Kind::OpenApi(OpenApi { headers: headers(fields), ..document });
            Some(Reached { kind, target })
        }
    }
}

/// Decides on the kind: `type` if it is set, otherwise inferred from the other keys.
fn choose(fields: &mut Fields<'_, '_>) -> Option<(Transport, Fallback)> {
    let spoken = (fields.has("type"), fields.has("transport"));
    let declared =
        fields.word("type", Transport::WORDS).or(fields.word("transport", Transport::WORDS));
    if spoken == (true, true) {
        let message = format!("`{}` has both `type` and `transport`", fields.path());
        let help = "both name the same key; keep `type`";
        fields.problem("transport", Problem::error(message).help(help));
        return None;
    }
    let ways = ["command", "url", "openapi"];
    let mut given = ways.into_iter().filter(|key| fields.has(key));
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        let message = format!("`{}` has both `{first}` and `{second}`", fields.path());
        let help = "keep one of them, or define two servers";
        fields.problem(second, Problem::error(message).help(help));
        return None;
    }
    let cli = fields.flag("cli");
    match (declared, cli) {
        (Some(Transport::Cli), Some(false))
        | (
            Some(Transport::Stdio | Transport::Http | Transport::Sse | Transport::OpenApi),
            Some(true),
        ) => {
            let message = format!("`{}` does not fit its `type`", fields.key("cli"));
            fields.problem("cli", Problem::error(message).help("remove `cli`"));
            None
        }
        (Some(declared), _) => Some((declared, Fallback::Never)),
        // A `type` that could not be read is already reported; the kind is not inferred instead.
        (None, _) if spoken != (false, false) => None,
        (None, Some(true)) => Some((Transport::Cli, Fallback::Never)),
        (None, Some(false) | None) => infer(fields),
    }
}

fn infer(fields: &mut Fields<'_, '_>) -> Option<(Transport, Fallback)> {
    if fields.has("command") {
        return Some((Transport::Stdio, Fallback::Never));
    }
    if let Some(entry) = fields.peek("url") {
        let url = entry.node.as_text().unwrap_or_default();
        let sse = sse_comes_first(url, fields.report().file.dialect);
        return Some((
            if sse { Transport::Sse } else { Transport::Http },
            Fallback::OtherTransport,
        ));
    }
    if fields.has("openapi") {
        return Some((Transport::OpenApi, Fallback::Never));
    }
    let path = fields.path();
    let message = format!("`{path}` has neither a command nor an address");
    fields.problem("command", Problem::error(message).help("give it a `command` or a `url`"));
    None
}

/// True if an address without a type is first tried with the older SSE transport.
///
/// That is so if the program that the file belongs to does so, or if the path ends in `/sse`.
fn sse_comes_first(url: &str, dialect: Option<Dialect>) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    dialect == Some(Dialect::Llxprt) || path.trim_end_matches('/').ends_with("/sse")
}

fn cli(fields: &mut Fields<'_, '_>) -> Option<Reached> {
    let help = fields.string("cli_help").unwrap_or_else(|| "--help".to_owned());
    let depth = fields.count("cli_depth").unwrap_or(2);
    let only = only(fields);
    let presets = preset::read(fields);
    let (program, target) = program(fields)?;
    Some(Reached { kind: Kind::Cli(CliProgram { program, help, depth, only, presets }), target })
}

/// The allowed subcommands.
///
/// An entry that can never be a subcommand is an error: it would look like a limit and have no
/// effect.
fn only(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    let texts = fields.texts("cli_only")?;
    let key = fields.key("cli_only");
    for text in &texts {
        let words = || text.value.value.split_whitespace();
        if words().next().is_none() || words().any(|word| word.starts_with('-')) {
            let problem = Problem::error(format!(
                "`{key}` contains a word that is not a subcommand"
            ))
            .help("write the words of subcommands, as in \"remote add\"; flags go into `args`");
            fields.report().add(problem, key.clone(), &text.span);
        }
    }
    Some(texts.into_iter().map(|text| text.value.value.clone()).collect())
}

fn program(fields: &mut Fields<'_, '_>) -> Option<(Program, String)> {
    let args = fields.texts("args").unwrap_or_default();
    let env = environment(fields);
    let env_passthrough = passthrough(fields);
    let cwd = fields.string("cwd");
    if cwd.as_ref().is_some_and(String::is_empty) {
        let message = format!("`{}` is empty", fields.key("cwd"));
        fields.problem("cwd", Problem::error(message).help("name a folder, or remove `cwd`"));
    }
    let key = fields.key("args");
    for arg in args.iter().filter(|arg| arg.value.value.contains('\0')) {
        let problem = Problem::error(format!("`{key}` contains a NUL character"))
            .help("arguments of programs cannot contain it; remove it");
        fields.report().add(problem, key.clone(), &arg.span);
    }
    let command = command(fields)?;
    refuse_relative(fields, &command.value, cwd.as_deref());
    let mut target = vec![command.shown().to_owned()];
    target.extend(mask_arguments(args.iter().map(|arg| arg.value.shown())));
    let args = args.into_iter().map(|arg| arg.value.value.clone()).collect();
    let command = command.value.clone();
    Some((Program { command, args, env, cwd, env_passthrough }, target.join(" ")))
}

/// Reports a program whose path depends on the folder in which Capstan is started.
///
/// A file of the user applies in every folder: such a path would start the program that a folder
/// of others has under this name. Files of projects are reviewed with the project.
fn refuse_relative(fields: &mut Fields<'_, '_>, command: &str, cwd: Option<&str>) {
    let is_relative = command.contains('/') && !command.starts_with(['/', '~']);
    let is_fixed = cwd.is_some_and(|cwd| cwd.starts_with('/'));
    let is_everywhere = match fields.report().file.scope {
        Scope::Managed | Scope::User => true,
        Scope::Flag | Scope::Project => false,
    };
    if is_relative && !is_fixed && is_everywhere {
        let message = format!(
            "`{}` is a relative path, which is another program in each folder",
            fields.key("command")
        );
        let help = "write its whole path, beginning with `/`";
        fields.problem("command", Problem::error(message).help(help));
    }
}

fn command<'t>(fields: &mut Fields<'t, '_>) -> Option<&'t Text> {
    if !fields.has("command") {
        let message = format!("`{}` has no `command`", fields.path());
        let help = "give it the program to start, as in `command = \"npx\"`";
        fields.problem("command", Problem::error(message).help(help));
        return None;
    }
    let text = fields.text("command")?;
    let command = text.value.as_str();
    let key = fields.key("command");
    if command.trim().is_empty() || command.contains(['\0', '\n', '\r']) {
        let message = format!("`{key}` is not the name of a program");
        let help = "give the program to start, as in `command = \"npx\"`";
        fields.problem("command", Problem::error(message).help(help));
        return None;
    }
    if command.contains(char::is_whitespace) && !command.contains(['/', '\\']) {
        let message =
            format!("`{key}` contains a space; it is the name of a program, not a command line");
        let help = "put the words after the program into `args`";
        fields.problem("command", Problem::warning(message).help(help));
    }
    Some(text)
}

fn environment(fields: &mut Fields<'_, '_>) -> IndexMap<String, Secret<String>> {
    let declared = fields.string_map("env");
    let mut env = IndexMap::new();
    for (name, text) in declared {
        let key = fields.key_in("env", &name);
        refuse_variable(fields, &name, &key, &text.span);
        if text.value.value.contains('\0') {
            let problem = Problem::error(format!("`{key}` contains a NUL character"))
                .help("variables cannot contain it; remove it");
            fields.report().add(problem, key, &text.span);
        }
        env.insert(name, Secret::new(text.value.value.clone()));
    }
    env
}

fn passthrough(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let names = fields.texts("env_passthrough").unwrap_or_default();
    let key = fields.key("env_passthrough");
    for Given { value: name, span } in &names {
        refuse_variable(fields, &name.value, &key, span);
    }
    names.into_iter().map(|name| name.value.value.clone()).collect()
}

fn refuse_variable(
    fields: &mut Fields<'_, '_>,
    name: &str,
    key: &str,
    span: &std::ops::Range<usize>,
) {
    let problem = if hijacks(name) {
        Problem::error(format!("`{key}`: `{name}` can make the program run something else"))
            .help(format!("remove `{name}`; such variables are never passed to a server"))
    } else if name.is_empty() || name.contains(['=', '\0']) {
        Problem::error(format!("`{key}` is not the name of a variable"))
            .help("a name is not empty and contains no `=`")
    } else {
        return;
    };
    fields.report().add(problem, key, span);
}

fn remote(fields: &mut Fields<'_, '_>, fallback: Fallback) -> Option<(Remote, String)> {
    let headers = headers(fields);
    if !fields.has("url") {
        let message = format!("`{}` has no `url`", fields.path());
        let help = "give it an address, as in `url = \"https://example.com/mcp\"`";
        fields.problem("url", Problem::error(message).help(help));
        return None;
    }
    let headers_helper = helper::read(fields);
    let auth_provider = auth_provider::read(fields);
    let url = address(fields, "url", "https://example.com/mcp")?;
    let target = mask_url(url.shown());
    let url = url.value.clone();
    Some((Remote { url, headers, headers_helper, auth_provider, fallback }, target))
}

/// Returns the address under a key; `None` if requests cannot be sent to it.
pub(crate) fn address<'t>(
    fields: &mut Fields<'t, '_>,
    key: &'static str,
    example: &str,
) -> Option<&'t Text> {
    let text = fields.text(key)?;
    if references::is_native(fields) && !SecretReference::all(&text.value).is_empty() {
        // It is checked when the secret is known.
        return Some(text);
    }
    if let Err(fault) = url::check(&text.value) {
        let message = format!("`{}` {fault}", fields.key(key));
        let help = format!("write an address such as \"{example}\"");
        fields.problem(key, Problem::error(message).help(help));
        return None;
    }
    warn_port(fields, key, &text.value);
    Some(text)
}

/// Warns about a port that belongs to a protocol other than HTTP.
pub(crate) fn warn_port(fields: &mut Fields<'_, '_>, key: &'static str, url: &str) {
    let Some(port) = url::odd_port(url) else { return };
    let message =
        format!("`{}` has port {port}, which belongs to another protocol", fields.key(key));
    let help = "check the port: a service there may read the request as commands";
    fields.problem(key, Problem::warning(message).help(help));
}

fn headers(fields: &mut Fields<'_, '_>) -> IndexMap<String, Secret<String>> {
    let given = fields.string_map("headers");
    let mut headers = IndexMap::new();
    for (name, text) in given {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let key = fields.key_in("headers", &name);
        if name.is_empty() || !name.chars().all(token) {
            let problem = Problem::error(format!("`{key}` is not the name of a header"))
                .help("use letters, digits and `-`, as in `X-Api-Key`");
            fields.report().add(problem, key.clone(), &text.span);
        }
        // A line break would let the value of a variable add headers of its own.
        if text.value.value.chars().any(|c| c.is_control() && c != '\t') {
            let problem = Problem::error(format!("`{key}` contains a control character"))
                .help("remove line breaks and other control characters from the value");
            fields.report().add(problem, key, &text.span);
        }
        if name.eq_ignore_ascii_case("authorization") && names_no_credentials(&text.value.value) {
            continue;
        }
        headers.insert(name, Secret::new(text.value.value.clone()));
    }
    headers
}

/// True if an `Authorization` header has only a scheme, as when the variable of its token is empty.
fn names_no_credentials(value: &str) -> bool {
    let value = value.trim();
    value.is_empty() || ["bearer", "basic", "token"].iter().any(|s| value.eq_ignore_ascii_case(s))
}

// === impl Transport ===

impl Transport {
    fn article(self) -> &'static str {
        match self {
            Self::Stdio => "a stdio server",
            Self::Http => "an http server",
            Self::Sse => "an sse server",
            Self::Cli => "a cli server",
            Self::OpenApi => "an openapi server",
        }
    }
}

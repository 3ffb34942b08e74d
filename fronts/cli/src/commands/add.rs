//! `capstan add`: adds a server to a configuration file.

use std::path::Path;
use std::time::Duration;

use capstan_app::api::AddServer;
use capstan_app::{AppError, ConfigFile};
use capstan_config::Scope;
use capstan_config::edit::{
    NewDocument, NewProgram, NewRemote, NewServer, NewTarget, add_server, entry_text, put_server,
};
use capstan_import::servers::literal_secrets;
use capstan_model::ServerName;
use clap::Parser;

use super::check::check;
use super::{fixed_paths, networks};
use crate::args::{AddArgs, AfterUrl, Cli, Command, EntryArgs, ScopeArg, TransportArg};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;
use crate::print::set;

/// Programs that have their own `-e` option for variables.
const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];

/// The hint for a variable where a header is meant.
const AS_HEADER: &str = "write `-H 'Authorization: Bearer ${TOKEN}'`";

/// Merges the options after a URL with those before it.
pub(crate) fn lift_options(cli: &mut Cli) -> Result<(), AppError> {
    let Command::Add(args) = &mut cli.command else { return Ok(()) };
    if location_of(args) != Location::Elsewhere || args.words.is_empty() {
        return Ok(());
    }
    let after = AfterUrl::try_parse_from(args.words.split_off(1)).map_err(|error| {
        let text = error.render().to_string();
        let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        AppError::usage(format!("after the URL: {line}"))
            .hint("a URL takes no arguments; only options may follow it")
    })?;
    if let Some(TransportArg::Stdio | TransportArg::Cli) = after.entry.transport {
        return Err(AppError::usage("the transport of a URL is `http` or `sse`")
            .hint("remove `--transport`: it is found out from the URL"));
    }
    args.entry.add(after.entry);
    cli.options.add(after.options);
    Ok(())
}

pub(crate) async fn run(context: &Context, args: &AddArgs) -> Result<Exit, AppError> {
    check_name(args)?;
    let scope = args.entry.scope.map(scope_of);
    let file = context.app.configs.target(scope);
    let mut server = read(context, args, &file)?;
    let changes = fixed_paths::fix(context, &mut server, &file);
    // Validates the entry first, before any lookup or question.
    let alone = add_server("", &args.name, &server)?;
    if file.scope == Scope::Project && !context.is_attached() {
        refuse_shared_secrets(&args.name, &alone)?;
    }
    networks::allow(context, &args.name, &mut server).await?;
    if context.is_attached() {
        changes.tell(context);
        return add_to_gateway(context, args, &server).await;
    }
    let before = context.app.configs.environment.files.read(&file.path)?.unwrap_or_default();
    let is_replaced = args.entry.force && entry_text(&before, &args.name).is_ok();
    let write = if args.entry.force { put_server } else { add_server };
    context.app.configs.edit(&file, &|text| write(text, &args.name, &server))?;
    let setup = context.app.configs.load(&context.selection)?;
    let entry = setup.server(&args.name)?;
    let (path, scope) = (file.path.display(), file.scope.as_str());
    let slug = entry.name.as_str();
    let called = if slug == args.name { String::new() } else { format!(" as `{slug}`") };
    let done = if is_replaced { "replaced" } else { "added" };
    let at = if is_replaced { "in" } else { "to" };
    context.print.note(&format!("{done} `{}`{called} {at} {path} ({scope})", args.name));
    changes.tell(context);
    warn_missing_program(context, &server);
    if let Some(number) = args.entry.timeout.as_ref().filter(|text| is_short(text)) {
        context.print.warning(&format!("`--timeout {number}` is in milliseconds"));
        context.print.hint(&format!("`--timeout {number}s` is in seconds"));
    }
    context.print.note(&if entry.approved {
        format!("next: `capstan tools {slug}` lists its tools")
    } else {
        format!("next: `capstan trust` shows {path}, which is not trusted yet")
    });
    if let Some(option) = stray_option(args) {
        let command = args.words.first().map_or("the server", String::as_str);
        context.print.hint(&format!(
            "`{option}` follows the command, so it is passed to `{command}`; to set \
             it for Capstan, put it before the server's name"
        ));
    }
    let checked = check(context, &args.check, std::slice::from_ref(&args.name)).await;
    if context.print.wants_json() {
        let mut told = serde_json::json!({ "added": args.name, "file": file.path });
        if args.check.check {
            set(&mut told, "checked", checked);
        }
        context.print.json(&told);
    }
    Ok(Exit::Ok)
}

/// Refuses an entry with secrets for a project's file, which others get with the project.
fn refuse_shared_secrets(name: &str, entry: &str) -> Result<(), AppError> {
    let secrets = literal_secrets(name, entry);
    let Some(first) = secrets.first() else { return Ok(()) };
    let what = if secrets.len() == 1 { "a secret" } else { "secrets" };
    let message = format!("the entry has {what}, and a project's file is shared with others");
    Err(AppError::usage(message).hint(format!(
        "`--scope user` writes your own file; or set the variable `{first}`, and write \
         '${{{first}}}' instead of its value"
    )))
}

/// Refuses a name without letters, which says nothing in a list of tools.
fn check_name(args: &AddArgs) -> Result<(), AppError> {
    let name = &args.name;
    if name.trim().is_empty() || name.chars().any(char::is_alphabetic) {
        return Ok(());
    }
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let program = args.words.first().map_or("", String::as_str);
    let program = program.rsplit('/').next().unwrap_or_default();
    let suggested = match (digits.is_empty(), ServerName::from_display(program)) {
        (false, _) => format!("server-{digits}"),
        (true, Some(program)) => program.to_string(),
        (true, None) => "my-server".to_owned(),
    };
    Err(AppError::usage(format!("the name `{name}` has no letters"))
        .hint(format!("choose a name for its tools, for example `{suggested}`")))
}

/// Warns if the program of a new server cannot be started from here.
fn warn_missing_program(context: &Context, server: &NewServer) {
    let (NewTarget::Stdio(program) | NewTarget::Cli(program)) = &server.target else { return };
    if program.command.contains("${") {
        return;
    }
    let environment = &context.app.configs.environment;
    let own_path = program.env.get("PATH").cloned();
    let path = own_path.or_else(|| environment.variable("PATH"));
    let folder = environment.current_folder.as_path();
    let found =
        context.app.doctor.machine.find_program(&program.command, path.as_deref(), Some(folder));
    if let Err(reason) = found {
        context.print.warning(&reason);
        context.print.hint("install it before you use the server, or correct the command");
    }
}

/// Adds a server to a running gateway without writing it to a file.
async fn add_to_gateway(
    context: &Context,
    args: &AddArgs,
    server: &NewServer,
) -> Result<Exit, AppError> {
    if args.entry.scope.is_some() || args.entry.force {
        let option =
            if args.entry.force { "--force` replaces an entry of" } else { "--scope` selects" };
        let message = format!("`{option} a file, but `--attach` writes no file");
        return Err(AppError::usage(message)
            .hint("remove that option, or remove `--attach` to write the server to a file"));
    }
    if server.trust {
        return Err(AppError::usage("`--trust` cannot be used with `--attach`").hint(
            "remove `--attach`: a running gateway also follows changes of the configuration file",
        ));
    }
    let add = AddServer { name: args.name.clone(), text: add_server("", &args.name, server)? };
    let person = Person::watching(&context.print, "waiting for the gateway");
    let name = context.run(add, person).await?;
    context.print.note(&format!("added `{name}` to the gateway, until it ends"));
    if context.print.wants_json() {
        context.print.json(&serde_json::json!({ "added": args.name, "dynamic": true }));
    }
    Ok(Exit::Ok)
}

/// The first word after a command that looks like an option of ours, with its value hidden.
///
/// All words after a command belong to the server, so such a word may be correct.
fn stray_option(args: &AddArgs) -> Option<String> {
    let (command, rest) = args.words.split_first()?;
    let program = command.rsplit('/').next().unwrap_or_default();
    if location_of(args) != Location::Here || CONTAINERS.contains(&program) {
        return None;
    }
    let next = rest.iter().skip(1).map(Some).chain([None]);
    rest.iter().zip(next).find_map(|(word, next)| {
        let next = next.map_or("", String::as_str);
        let is_ours = match word.as_str() {
            "-e" | "--env" => next.contains('='),
            "-H" | "--header" => next.contains(':'),
            "-s" | "--scope" => matches!(next, "user" | "project"),
            "-t" | "--transport" => matches!(next, "stdio" | "http" | "sse" | "cli"),
            "--trust" | "--include-tools" | "--exclude-tools" => true,
            _ => false,
        };
        let name = next.split(['=', ':']).next().unwrap_or_default();
        match word.as_str() {
            // The value may be a secret.
            "-e" | "--env" if is_ours => Some(format!("{word} {name}=…")),
            "-H" | "--header" if is_ours => Some(format!("{word} '{name}: …'")),
            _ => is_ours.then(|| word.clone()),
        }
    })
}

/// Builds the server's entry from the command line; `file` is the file it is for.
fn read(context: &Context, args: &AddArgs, file: &ConfigFile) -> Result<NewServer, AppError> {
    let entry = &args.entry;
    let target = match (&entry.openapi, args.words.split_first()) {
        (Some(document), None) => document_of(context, entry, document, file)?,
        (Some(_), Some((word, _))) => {
            let message = format!("`--openapi` and `{word}` both say what the server is");
            return Err(AppError::usage(message).hint("remove one of them"));
        }
        (None, Some((target, rest))) => {
            check_words(args, target, rest)?;
            check_command(target, location_of(args))?;
            target_of(entry, target, rest.to_vec(), location_of(args))?
        }
        (None, None) => {
            return Err(AppError::usage("no command").hint(format!(
                "write the command or the URL after the name: `capstan add {} COMMAND…`",
                args.name
            )));
        }
    };
    Ok(NewServer {
        description: entry.description.clone(),
        timeout: entry.timeout.as_deref().map(timeout).transpose()?,
        trust: entry.trust,
        networks: networks::read(&entry.network)?,
        expose: entry.include_tools.clone(),
        hide: entry.exclude_tools.clone(),
        ..NewServer::new(target)
    })
}

/// Refuses a whole command line as one word.
fn check_words(args: &AddArgs, command: &str, rest: &[String]) -> Result<(), AppError> {
    let is_line = command.contains(char::is_whitespace) && !command.contains('/');
    if location_of(args) != Location::Here || !is_line || !rest.is_empty() {
        return Ok(());
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    let message = format!("the command is one word with spaces, not a program such as `{first}`");
    Err(AppError::usage(message).hint("give its words separately, without the quotes"))
}

/// Refuses a command that can only be a mistake: an option, or an address of another kind.
fn check_command(command: &str, location: Location) -> Result<(), AppError> {
    if location == Location::Here && command.starts_with('-') {
        let message = format!("`{command}` is an option, not a command");
        return Err(AppError::usage(message).hint(
            "write `capstan add [OPTIONS] NAME COMMAND…`; `capstan add --help` lists the options",
        ));
    }
    let slip = ["http:/", "https:/"].into_iter().find_map(|start| {
        command.strip_prefix(start).filter(|rest| !rest.starts_with('/')).map(|rest| (start, rest))
    });
    if let Some((start, rest)) = slip {
        let message = format!("`{start}` is not an address");
        return Err(AppError::usage(message).hint(format!("did you mean `{start}/{rest}`?")));
    }
    let scheme = command.split_once("://").map(|(scheme, _)| scheme);
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '+' | '-' | '.');
    let is_scheme = |scheme: &&str| !scheme.is_empty() && scheme.chars().all(is_sign);
    match scheme.filter(is_scheme) {
        Some(scheme) if !is_url(command) => {
            let message = format!("`{scheme}://` is not an address of an MCP server");
            Err(AppError::usage(message)
                .hint("servers are reached by `https://`, `http://` or `unix://`"))
        }
        Some(_) | None => Ok(()),
    }
}

/// True for an address of a server.
fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme);
    let is_known =
        |scheme| ["http", "https", "unix"].iter().any(|it| it.eq_ignore_ascii_case(scheme));
    scheme.is_some_and(is_known)
}

/// The location of the server: by `--openapi`, `--transport`, else by the first word.
fn location_of(args: &AddArgs) -> Location {
    match args.entry.transport {
        _ if args.entry.openapi.is_some() => Location::Document,
        Some(TransportArg::Http | TransportArg::Sse) => Location::Elsewhere,
        None if args.words.first().is_some_and(|word| is_url(word)) => Location::Elsewhere,
        Some(TransportArg::Stdio | TransportArg::Cli) | None => Location::Here,
    }
}

/// The location of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    /// A program on this machine.
    Here,
    /// Behind a URL.
    Elsewhere,
    /// Described by a document.
    Document,
}

/// The target for an OpenAPI document. A path is from here; in the file, it is from the file's
/// folder or absolute.
fn document_of(
    context: &Context,
    entry: &EntryArgs,
    document: &str,
    file: &ConfigFile,
) -> Result<NewTarget, AppError> {
    if !entry.env.is_empty() {
        let message = "`-e` sets variables of a command; an OpenAPI service takes headers (`-H`)";
        return Err(AppError::usage(message).hint(AS_HEADER));
    }
    let headers = entry.header.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
    if document.contains("://") || document.contains("${") {
        return Ok(NewTarget::OpenApi(NewDocument { document: document.to_owned(), headers }));
    }
    let environment = &context.app.configs.environment;
    let path = environment.current_folder.join(document);
    let real = environment.files.real_path(&path).map_err(|reason| {
        AppError::not_found(format!("the document {} cannot be read: {reason}", path.display()))
            .hint("give the path of an OpenAPI document, or its URL")
    })?;
    let project = file.path.parent().and_then(Path::parent);
    let inside = project.filter(|_| file.scope == Scope::Project && !context.is_attached());
    let inside = inside.and_then(|project| environment.files.real_path(project).ok());
    let written = match inside.and_then(|project| Some(real.strip_prefix(project).ok()?.to_owned()))
    {
        // A project may be at another place for others who use it.
        Some(inside) => Path::new("..").join(inside),
        None => real,
    };
    let document = written.display().to_string();
    Ok(NewTarget::OpenApi(NewDocument { document, headers }))
}

fn target_of(
    entry: &EntryArgs,
    target: &str,
    args: Vec<String>,
    location: Location,
) -> Result<NewTarget, AppError> {
    match location {
        Location::Elsewhere => {
            if !entry.env.is_empty() {
                let message = "`-e` sets variables of a command; a URL takes headers (`-H`)";
                return Err(AppError::usage(message).hint(AS_HEADER));
            }
            let headers = entry.header.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
            let remote = NewRemote { url: target.to_owned(), headers };
            Ok(match entry.transport {
                Some(TransportArg::Sse) => NewTarget::Sse(remote),
                Some(TransportArg::Http | TransportArg::Stdio | TransportArg::Cli) | None => {
                    NewTarget::Http(remote)
                }
            })
        }
        Location::Here | Location::Document => {
            if !entry.network.is_empty() {
                let message = "`--network` needs a URL; a command has no address";
                return Err(AppError::usage(message).hint("remove `--network`"));
            }
            if !entry.header.is_empty() {
                let message = "`-H` sets headers of a URL; a command takes variables (`-e`)";
                return Err(AppError::usage(message).hint("write `-e NAME='${NAME}'`"));
            }
            let env = entry.env.iter().map(|text| variable(text)).collect::<Result<_, _>>()?;
            let program = NewProgram { command: target.to_owned(), args, env };
            Ok(match entry.transport {
                Some(TransportArg::Cli) => NewTarget::Cli(program),
                Some(TransportArg::Stdio | TransportArg::Http | TransportArg::Sse) | None => {
                    NewTarget::Stdio(program)
                }
            })
        }
    }
}

fn variable(text: &str) -> Result<(String, String), AppError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        // It may be a secret whose name was left out, so it is not repeated.
        _ => Err(AppError::usage("a variable is not written as KEY=VALUE")
            .hint("write `-e NAME=value`, or `-e NAME='${NAME}'` to pass one of yours on")),
    }
}

fn header(text: &str) -> Result<(String, String), AppError> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        // The value may be a secret, so it is not repeated.
        _ => Err(AppError::usage("a header is not written as 'KEY: VALUE'").hint(AS_HEADER)),
    }
}

/// True for a bare number that was probably meant in seconds.
fn is_short(timeout: &str) -> bool {
    timeout.parse().is_ok_and(|milliseconds: u64| milliseconds < 1000)
}

/// Parses a duration; a bare number is milliseconds, for compatibility with earlier versions of the
/// option.
fn timeout(text: &str) -> Result<Duration, AppError> {
    if let Ok(milliseconds) = text.parse() {
        return Ok(Duration::from_millis(milliseconds));
    }
    humantime::parse_duration(text)
        .map_err(|_| AppError::usage(format!("`{text}` is not a duration")).hint("write `30s`"))
}

pub(crate) fn scope_of(scope: ScopeArg) -> Scope {
    match scope {
        ScopeArg::User => Scope::User,
        ScopeArg::Project => Scope::Project,
    }
}

//! `capstan call`: runs one tool.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use capstan_app::api::CallTool;
use capstan_app::{AppError, ErrorKind};
use capstan_model::Kind;
use capstan_text::answer::{self, Attachment};
use capstan_text::arguments::{ArgumentError, Given, Input, needs_input};
use capstan_text::form::Elicit;
use capstan_text::screen::has_person;
use capstan_wire::Json;

use super::read::write;
use crate::args::{AskArgs, CallArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::{Confirm, Manner, Person, Typed};

pub(crate) async fn run(context: &Context, args: &CallArgs) -> Result<Exit, AppError> {
    let manner = manner(args.elicit.as_deref(), args.ask)?;
    let typed = Typed::Arguments(read_words(&args.arguments, &args.tool).await?);
    let message = format!("calling `{}`", args.tool);
    let person = Person::new(&context.print, manner, typed, &message);
    let file = args.output.as_deref();
    check_writable(file)?;
    let max_tokens = context.print.max_tokens().filter(|_| file.is_none());
    let called = context.run(CallTool { name: args.tool.clone(), max_tokens }, person).await;
    let called = called.map_err(|error| with_full_name(context, args, error))?;
    match file.filter(|_| !called.is_error) {
        Some(file) => save(context, file, &called.result).map_err(|failure| {
            context.print.data(&answer::text(Kind::Tool, &called.result));
            failure.hint("the call was made, and its answer is printed instead")
        })?,
        None if context.print.wants_json() => context.print.bytes(called.result.as_bytes()),
        None => context.print.data(&answer::text(Kind::Tool, &called.result)),
    }
    if called.is_error {
        context.print.error(&format!("`{}` reported an error", called.id));
        return Ok(Exit::ToolError);
    }
    Ok(Exit::Ok)
}

/// Checks that a file can be written, before a call that may not be repeatable runs.
fn check_writable(file: Option<&Path>) -> Result<(), AppError> {
    let Some(file) = file else { return Ok(()) };
    let is_new = !file.exists();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let problem = if file.is_dir() {
        Some("it is a folder")
    } else {
        folder.is_some_and(|folder| !folder.is_dir()).then_some("its folder does not exist")
    };
    if let Some(problem) = problem {
        return Err(unwritable(file, problem));
    }
    match std::fs::OpenOptions::new().append(true).create(true).open(file) {
        Ok(_) if is_new => {
            // An unused file must not stay if the call is refused.
            drop(std::fs::remove_file(file));
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(unwritable(file, error)),
    }
}

fn unwritable(file: &Path, problem: impl std::fmt::Display) -> AppError {
    let failure = AppError::usage(format!("cannot write to {}: {problem}", file.display()));
    failure.hint("nothing was called; name a file in a folder that you can write to")
}

/// Writes an answer to a file: its images and other bytes, else its text.
///
/// Of several, each gets a file with a number. Text beside bytes is printed.
fn save(context: &Context, file: &Path, result: &Json) -> Result<(), AppError> {
    if context.print.wants_json() {
        return write(file, result.as_bytes());
    }
    let attached = answer::attachments(result);
    if attached.is_empty() {
        return write(file, answer::plain_text(result).as_bytes());
    }
    context.print.data(&answer::text(Kind::Tool, result));
    let is_one = attached.len() == 1;
    for (at, Attachment { mime, bytes }) in attached.iter().enumerate() {
        let file = if is_one { file.to_owned() } else { numbered(file, at + 1) };
        write(&file, bytes)?;
        let size = answer::size(bytes.len());
        context.print.note(&format!("wrote {} ({mime}, {size})", file.display()));
    }
    Ok(())
}

/// Adds a number to the name of a file: `a.png` becomes `a-2.png`.
fn numbered(file: &Path, number: usize) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let end = file.extension().map(|end| format!(".{}", end.to_string_lossy()));
    file.with_file_name(format!("{stem}-{number}{}", end.unwrap_or_default()))
}

/// Suggests `server__tool` for a tool without its server, and for a server and a tool in two words.
fn with_full_name(context: &Context, args: &CallArgs, error: AppError) -> AppError {
    if error.kind != ErrorKind::NotFound {
        return error;
    }
    let remembered = context.app.names.remembered(Kind::Tool);
    let ids = remembered.iter().flat_map(|(server, tools)| {
        let second = args.arguments.first().filter(|_| *server == args.tool);
        let wanted = second.unwrap_or(&args.tool);
        tools
            .iter()
            .filter(move |tool| *tool == wanted)
            .map(move |tool| format!("{server}__{tool}"))
    });
    match ids.collect::<Vec<_>>().as_slice() {
        [] => error,
        ids => {
            let ids: Vec<String> = ids.iter().map(|id| format!("`capstan call {id}`")).collect();
            error.hint(format!("did you mean {}?", ids.join(" or ")))
        }
    }
}

/// Parses the arguments for a tool without looking up its schema.
pub(super) async fn read_arguments(words: &[String], tool: &str) -> Result<Json, AppError> {
    let given = read_words(words, tool).await?;
    given.build(&Json::empty_object()).map_err(|error| bad_arguments(tool, &error))
}

fn bad_arguments(tool: &str, error: &ArgumentError) -> AppError {
    let usual = || format!("`capstan tools {tool}` shows its arguments");
    AppError::usage(format!("invalid arguments for `{tool}`: {error}"))
        .hint(error.hint().unwrap_or_else(usual))
}

/// The way in which the person who typed the command is asked.
pub(super) fn manner(choice: Option<&str>, ask: AskArgs) -> Result<Manner, AppError> {
    Ok(Manner { elicit: elicit(choice)?, confirm: Confirm::of(ask) })
}

/// The way in which questions of the server are answered: by a person if there is one, else
/// declined.
fn elicit(choice: Option<&str>) -> Result<Elicit, AppError> {
    let person = has_person();
    match choice {
        None | Some("ask") if person => Ok(Elicit::Ask),
        None | Some("decline") => Ok(Elicit::Decline),
        Some("defaults") => Ok(Elicit::Defaults),
        Some("ask") => Err(AppError::usage("`--elicit ask` needs a terminal")),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| AppError::usage(format!("cannot read `{path}`: {error}")))?;
            let values = Json::parse(text)
                .map_err(|_| AppError::usage(format!("`{path}` is not valid JSON")))?;
            Ok(Elicit::File(values))
        }
    }
}

/// The standard input and the files of this process.
struct Here;

impl Input for Here {
    fn stdin(&self, limit: usize) -> io::Result<Vec<u8>> {
        read(io::stdin(), limit)
    }

    fn file(&self, path: &str, limit: usize) -> io::Result<Vec<u8>> {
        read(File::open(path)?, limit)
    }
}

/// Reads to the end, but at most one byte more than allowed, so that more can be detected.
fn read(source: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads stdin and files that the words refer to.
///
/// It runs before anything is started and in its own thread, so that signals are handled and no
/// server waits.
async fn read_words(words: &[String], tool: &str) -> Result<Given, AppError> {
    let (words, is_slow) = (words.to_vec(), needs_input(words));
    let given = if is_slow {
        let read = tokio::task::spawn_blocking(|| Given::read(words, &Here));
        read.await.unwrap_or_else(|error| Err(ArgumentError::Stdin(io::Error::other(error))))
    } else {
        Given::read(words, &Here)
    };
    given.map_err(|error| bad_arguments(tool, &error))
}

//! `capstan read`: reads one resource.

use std::path::Path;

use capstan_app::AppError;
use capstan_app::api::{CompleteTemplate, ReadResource};
use capstan_model::Kind;
use capstan_text::answer::{self, sole_part};
use capstan_text::screen::stdout_is_terminal;
use capstan_wire::Json;

use super::call::manner;
use super::suggest;
use crate::args::ReadArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::{Person, Typed};

pub(crate) async fn run(context: &Context, args: &ReadArgs) -> Result<Exit, AppError> {
    let manner = manner(args.elicit.as_deref(), args.ask)?;
    let name = args.resource.strip_prefix('@').unwrap_or(&args.resource).to_owned();
    let message = format!("reading `{name}`");
    if let Some(typed) = &args.complete {
        let (argument, value) = suggest::split(typed);
        let typed = Typed::Completing(argument.clone(), args.words.clone());
        let person = Person::completing(&context.print, typed, &message);
        let complete = CompleteTemplate { name, argument, value };
        return Ok(suggest::show(context, &context.run(complete, person).await?));
    }
    let typed = Typed::Values(args.words.clone());
    let person = Person::new(&context.print, manner, typed, &message);
    let max_tokens = context.print.max_tokens().filter(|_| args.output.is_none());
    let read = ReadResource { name, fills_template: !args.words.is_empty(), max_tokens };
    let result = context.run(read, person).await?;
    let exit = deliver(context, args.output.as_deref(), &result)?;
    if let Some(next) = answer::next_page(&result) {
        context.print.hint(&format!("`capstan read '{next}'` shows the next page"));
    }
    Ok(exit)
}

/// Prints the content, or writes it to a file.
fn deliver(context: &Context, file: Option<&Path>, result: &Json) -> Result<Exit, AppError> {
    let sole = sole_part(result);
    match (file, sole) {
        (Some(file), _) if context.print.wants_json() => write(file, result.as_bytes())?,
        (Some(file), Some(part)) => write(file, part.as_bytes())?,
        (Some(_), None) => {
            let failure = AppError::usage("the resource has several contents");
            return Err(failure.hint("`--json --output FILE` writes everything"));
        }
        (None, _) if context.print.wants_json() => context.print.bytes(result.as_bytes()),
        // A pipe gets the content byte for byte; only output for a person is cleaned.
        (None, Some(part)) if !stdout_is_terminal() => context.print.raw(part.as_bytes()),
        (None, Some(_) | None) => context.print.data(&answer::text(Kind::Resource, result)),
    }
    Ok(Exit::Ok)
}

/// Writes a file, which is replaced if it exists.
pub(super) fn write(file: &Path, bytes: &[u8]) -> Result<(), AppError> {
    std::fs::write(file, bytes)
        .map_err(|error| AppError::usage(format!("cannot write to {}: {error}", file.display())))
        .map_err(|failure| failure.hint("name a file in a folder that you can write to"))
}

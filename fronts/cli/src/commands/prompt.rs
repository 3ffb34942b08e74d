//! `capstan prompt`: gets the messages of one prompt.

use capstan_app::AppError;
use capstan_app::api::{CompletePrompt, GetPrompt};
use capstan_model::Kind;
use capstan_text::answer;

use super::call::manner;
use super::suggest;
use crate::args::{PromptArgs, WaitArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::{Person, Typed};

pub(crate) async fn run(context: &Context, args: &PromptArgs) -> Result<Exit, AppError> {
    let manner = manner(args.elicit.as_deref(), args.ask)?;
    // A slash before the name, as in a chat, is accepted.
    let name = args.prompt.strip_prefix('/').unwrap_or(&args.prompt).to_owned();
    let message = format!("looking for `{name}`");
    let wait = Context::patience(&WaitArgs::default());
    if let Some(typed) = &args.complete {
        let (argument, value) = suggest::split(typed);
        let typed = Typed::Completing(argument.clone(), args.words.clone());
        let person = Person::completing(&context.print, typed, &message);
        let complete = CompletePrompt { name, argument, value, wait };
        return Ok(suggest::show(context, &context.run(complete, person).await?));
    }
    let typed = Typed::Values(args.words.clone());
    let person = Person::new(&context.print, manner, typed, &message);
    let result = context
        .run(GetPrompt { name, wait, max_tokens: context.print.max_tokens() }, person)
        .await?;
    if context.print.wants_json() {
        context.print.bytes(result.as_bytes());
    } else {
        context.print.data(&answer::text(Kind::Prompt, &result));
    }
    Ok(Exit::Ok)
}

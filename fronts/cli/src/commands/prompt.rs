//! `capstan prompt`: gets the messages of one prompt.

use std::ffi::OsString;

use capstan_app::AppError;
use capstan_app::api::{CompletePrompt, GetPrompt};
use capstan_model::Kind;
use capstan_text::answer;

use super::call::manner;
use super::options::{own, take_options};
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
    let result = context.run(GetPrompt { name, wait }, person).await?;
    if context.print.wants_json() {
        context.print.bytes(result.as_bytes());
    } else {
        context.print.data(&answer::text(Kind::Prompt, &result));
    }
    Ok(Exit::Ok)
}

/// Moves our own options from among the words of a prompt to before them.
///
/// The server decides which `--name` arguments a prompt has, so our parser cannot know them; every
/// word that is not one of our options is left to the prompt.
pub(crate) fn normalise(command: &clap::Command, words: Vec<OsString>) -> Vec<OsString> {
    let Some(prompt) = command.find_subcommand("prompt") else { return words };
    let own = |word: &OsString| own(&[command, prompt], word.to_str()?);
    let mut words = words.into_iter();
    let mut before: Vec<OsString> = words.by_ref().take(1).collect();
    let Some(verb) = take_options(&mut words, &mut before, own) else { return before };
    let is_prompt = verb == "prompt";
    before.push(verb);
    if !is_prompt {
        before.extend(words);
        return before;
    }
    let mut theirs: Vec<OsString> = Vec::new();
    while let Some(word) = take_options(&mut words, &mut before, own) {
        let is_end = word == "--";
        if !(is_end && theirs.is_empty()) {
            theirs.push(word);
        }
        if is_end {
            theirs.extend(words.by_ref());
        }
    }
    if !theirs.is_empty() {
        before.push("--".into());
    }
    before.extend(theirs);
    before
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        assert_eq!(normalise(&Cli::command(), words(typed)), words(expected), "{typed}");
    }

    #[test]
    fn what_is_not_ours_is_left_to_the_prompt() {
        check("capstan prompt s:p --a b --c=d e", "capstan prompt -- s:p --a b --c=d e");
        check("capstan prompt s:p", "capstan prompt -- s:p");
        check("capstan prompt s:p --json=x -5", "capstan prompt -- s:p --json=x -5");
    }

    #[test]
    fn our_own_options_may_stand_anywhere_before_a_double_dash() {
        check("capstan prompt s:p a=b --json", "capstan prompt --json -- s:p a=b");
        check("capstan prompt --json s:p --a b", "capstan prompt --json -- s:p --a b");
        check("capstan --config f prompt p --debug", "capstan --config f prompt --debug -- p");
        check(
            "capstan prompt p x --elicit defaults --complete=a=b --demo",
            "capstan prompt --elicit defaults --complete=a=b --demo -- p x",
        );
        check("capstan prompt p -- --json", "capstan prompt -- p -- --json");
        check("capstan prompt -- p --json", "capstan prompt -- p --json");
    }

    #[test]
    fn help_and_other_commands_stay_as_they_are() {
        for line in [
            "capstan",
            "capstan --version",
            "capstan prompt",
            "capstan prompt --help",
            "capstan prompts --json x",
            "capstan call prompt --json a=b",
            "capstan --json list",
        ] {
            check(line, line);
        }
        check("capstan prompt p --help", "capstan prompt --help -- p");
    }
}

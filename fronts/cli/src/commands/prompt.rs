//! `capstan prompt`: gets the messages of one prompt.

use std::ffi::OsString;
use std::sync::Arc;

use capstan_app::{AppError, nearest};
use capstan_hub::catalog::Reference;
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Call, Hub};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, ServerName, Target};
use capstan_text::answer;
use capstan_text::arguments::slots::{self, SlotError};
use capstan_wire::{Json, compose};

use super::call::manner;
use super::offers::{Refusal, arguments_of, of_all, remember};
use super::options::{own, take_options};
use super::suggest::{suggest, typing};
use super::tools::tell_missing;
use crate::args::{PromptArgs, WaitArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::operator::Person;
use crate::waiting::Waiting;

pub(crate) async fn run(context: &Context, args: &PromptArgs) -> Result<Exit, AppError> {
    let manner = manner(&context.print, args.elicit.as_deref(), args.ask)?;
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let caller = Caller::operator(Front::Cli);
    // A slash before the name, as in a chat, does no harm.
    let typed = args.prompt.strip_prefix('/').unwrap_or(&args.prompt);
    if let Some(beginning) = &args.complete {
        return complete(context, hub, typed, beginning, &args.words).await;
    }
    let attempt = hub.begin(&Call::new(caller.clone(), Target::prompt(typed), None));
    let (id, prompt) = match find(context, hub, &caller, typed).await {
        Ok(found) => found,
        Err(refusal) => return Err(refusal.record(attempt)),
    };
    let values = match slots::fill(&args.words, &arguments_of(&prompt.definition)) {
        Ok(values) => values,
        Err(error) => return Err(misfit(&id, &error).record(attempt)),
    };

    let call = Call::new(caller, Target::prompt(id.to_string()), Some(&object_of(&values)));
    let waiting = Waiting::new(&context.print, &format!("getting `{id}`"));
    let person = Arc::new(Person::new(context.print.clone(), manner, waiting));
    let screened = attempt.call(&hub.session(), call, person).await?;
    if context.print.wants_json() {
        context.print.bytes(screened.result().as_bytes());
    } else {
        context.print.data(&answer::text(Kind::Prompt, screened.result()));
    }
    Ok(Exit::Ok)
}

/// Prints what the value of an argument could become.
async fn complete(
    context: &Context,
    hub: &Hub,
    typed: &str,
    beginning: &str,
    words: &[String],
) -> Result<Exit, AppError> {
    let found = find(context, hub, &Caller::operator(Front::Cli), typed).await;
    let (id, prompt) = found.map_err(Refusal::show)?;
    let slots = arguments_of(&prompt.definition);
    let typing = typing(Reference::Prompt(id.item.clone()), beginning, words, &slots);
    let typing = typing.map_err(|error| misfit(&id, &error).show())?;
    suggest(context, hub, &id.server, &typing).await
}

/// The prompt that is meant, by its id or by its bare name.
async fn find(
    context: &Context,
    hub: &Hub,
    caller: &Caller,
    typed: &str,
) -> Result<(ItemId, Item), Refusal> {
    // Where a server is named that nobody knows, that name is wrong; nobody needs to be started.
    let names_server = typed.contains(':') || typed.contains("__");
    let is_bare = hub.id_of(typed).is_none() && !names_server;
    if is_bare && !hub.may_be_public(typed) {
        return find_bare(context, hub, typed).await;
    }
    let waiting = Waiting::new(&context.print, &format!("looking for `{typed}`"));
    let found = hub.find_prompt(caller, typed).await;
    drop(waiting);
    match found {
        Err(CallError::Unknown { .. }) if is_bare => find_bare(context, hub, typed).await,
        found => Ok(found?),
    }
}

/// The only prompt of that name, whoever has it.
async fn find_bare(context: &Context, hub: &Hub, name: &str) -> Result<(ItemId, Item), Refusal> {
    let gathered = of_all(context, hub, Listing::Prompts, &WaitArgs::default()).await;
    remember(context, Kind::Prompt, &gathered);
    let visible = hub.visible_items(&gathered, Kind::Prompt, &Caller::operator(Front::Cli));
    let id = |server: &ServerName| ItemId { server: server.clone(), item: name.to_owned() };
    let found: Vec<_> = visible.iter().filter(|(_, item)| item.name == name).collect();
    match found.as_slice() {
        [(server, item)] => Ok((id(server), (*item).clone())),
        [] => {
            tell_missing(context, hub, &gathered);
            let names = visible.iter().map(|(_, item)| item.name.as_str());
            let nearest = nearest(name, names).map(ToOwned::to_owned).into_iter().collect();
            Err(CallError::Unknown { kind: Kind::Prompt, name: name.to_owned(), nearest }.into())
        }
        several => {
            let ids: Vec<String> =
                several.iter().map(|(server, _)| format!("`{}`", id(server))).collect();
            let problem = "several servers have a prompt of that name".to_owned();
            let error = CallError::InvalidArguments { item: name.to_owned(), problem };
            Err(Refusal::from(error).hint(format!("name one of {}", ids.join(", "))))
        }
    }
}

fn misfit(id: &ItemId, error: &SlotError) -> Refusal {
    let shows = format!("`capstan prompts {id}` shows what it takes");
    Refusal::misfit(id.to_string(), error, shows)
}

fn object_of(values: &[(String, String)]) -> Json {
    let texts: Vec<Json> = values.iter().map(|(_, value)| compose::string(value)).collect();
    let members: Vec<(&str, &Json)> =
        values.iter().zip(&texts).map(|((name, _), text)| (name.as_str(), text)).collect();
    compose::object(&members)
}

/// Moves our own options from among the words of a prompt to before them.
///
/// What a prompt is given as `--name` is decided by its server, so no parser of ours can know it;
/// whatever is not ours is left to the prompt.
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

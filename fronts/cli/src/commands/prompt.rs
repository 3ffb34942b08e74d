//! `capstan prompt`: gets the messages of one prompt.

use std::ffi::OsString;
use std::sync::Arc;

use capstan_hub::catalog::Reference;
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Call, Hub};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, ServerName, Target};
use capstan_wire::{Json, compose};
use clap::CommandFactory;

use super::call::elicit;
use super::offers::{Refusal, arguments_of, of_all};
use super::prompts::remember;
use super::suggest::{suggest, typing};
use super::tools::tell_missing;
use crate::answer;
use crate::args::{Cli, PromptArgs, WaitArgs};
use crate::arguments::slots::{self, SlotError};
use crate::context::{Context, nearest};
use crate::exit::{Exit, Failure};
use crate::operator::Person;
use crate::waiting::Waiting;

pub(crate) async fn run(context: &Context, args: &PromptArgs) -> Result<Exit, Failure> {
    let elicit = elicit(args.elicit.as_deref())?;
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    let caller = Caller::operator(Front::Cli);
    // A slash before the name, as in a chat, does no harm.
    let typed = args.prompt.strip_prefix('/').unwrap_or(&args.prompt);
    let asked = Call::new(caller.clone(), Target::prompt(typed), None);
    let found = find(context, hub, &caller, typed).await;
    let (id, prompt) = found.map_err(|refusal| refusal.record(hub, &asked))?;
    let slots = arguments_of(&prompt.definition);
    if let Some(beginning) = &args.complete {
        let of = Reference::Prompt(id.item.clone());
        let typing = typing(of, beginning, &args.words, &slots);
        let typing = typing.map_err(|error| misfit(&id, &error).show())?;
        return suggest(context, hub, &id.server, &typing).await;
    }
    let values = slots::fill(&args.words, &slots);
    let values = values.map_err(|error| misfit(&id, &error).record(hub, &asked))?;

    let call = Call::new(caller, Target::prompt(id.to_string()), Some(&object_of(&values)));
    let waiting = Waiting::new(context.print, &format!("getting `{id}`"));
    let person = Arc::new(Person::new(context.print, elicit, waiting));
    let screened = hub.call(&hub.session(), call, person).await?;
    if context.print.wants_json() {
        context.print.bytes(screened.result().as_bytes());
    } else {
        context.print.data(&answer::text(Kind::Prompt, screened.result()));
    }
    Ok(Exit::Ok)
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
    if hub.id_of(typed).is_none() && !names_server {
        return find_bare(context, hub, typed).await;
    }
    let _waiting = Waiting::new(context.print, &format!("looking for `{typed}`"));
    Ok(hub.find_prompt(caller, typed).await?)
}

/// The only prompt of that name, whoever has it.
async fn find_bare(context: &Context, hub: &Hub, name: &str) -> Result<(ItemId, Item), Refusal> {
    let gathered = of_all(context, hub, Listing::Prompts, &WaitArgs::default()).await;
    remember(context, &gathered);
    let visible = hub.visible_items(&gathered, Kind::Prompt, Front::Cli);
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

/// How many words an option of ours is.
enum Own {
    Alone,
    WithValue,
}

/// Moves our own options from among the words of a prompt to before them.
///
/// What a prompt is given as `--name` is decided by its server, so no parser of ours can know it;
/// whatever is not ours is left to the prompt.
pub(crate) fn normalise(words: Vec<OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let Some(prompt) = command.find_subcommand("prompt") else { return words };
    let own = |word: &OsString| own(&[&command, prompt], word.to_str()?);
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

/// Takes options of ours as long as there are any; the first word that is none.
fn take_options(
    words: &mut impl Iterator<Item = OsString>,
    taken: &mut Vec<OsString>,
    own: impl Fn(&OsString) -> Option<Own>,
) -> Option<OsString> {
    loop {
        let word = words.next()?;
        match own(&word) {
            Some(Own::Alone) => taken.push(word),
            Some(Own::WithValue) => {
                taken.push(word);
                taken.extend(words.next());
            }
            None => return Some(word),
        }
    }
}

/// Whether a word is an option of ours.
fn own(commands: &[&clap::Command], word: &str) -> Option<Own> {
    if matches!(word, "-h" | "--help" | "-V" | "--version") {
        return Some(Own::Alone);
    }
    let option = word.strip_prefix("--")?;
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    let options = commands.iter().flat_map(|command| command.get_arguments());
    let known = options.into_iter().find(|argument| argument.get_long() == Some(name))?;
    match (known.get_action().takes_values(), value) {
        (true, None) => Some(Own::WithValue),
        (true, Some(_)) | (false, None) => Some(Own::Alone),
        // A switch has no value, so this is for an argument of the same name.
        (false, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        assert_eq!(normalise(words(typed)), words(expected), "{typed}");
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

//! `capstan approvals`: answers, for running gateways, what their rules ask about.

use std::collections::HashSet;
use std::time::Duration;

use capstan_hub::approvals::{Answer, Answered, Extent, OpenQuestion, Span, Stands, Width};
use serde_json::{Value, json};

use crate::args::{ApprovalsArgs, ApprovalsCommand};
use crate::clean::one_line;
use crate::confirm;
use crate::context::Context;
use crate::desks::Seen;
use crate::exit::{Exit, Failure};
use crate::form::{Prompter, Terminal};
use crate::print::{stderr_is_terminal, stdin_is_terminal, width};
use crate::table::table;

/// Longest name that is shown in a line of its own.
const MAX_NAME: usize = 200;

/// What a person can answer to a question that has just come. More is for `approvals yes`.
const CHOICES: [Answer; 4] = [
    Answer::Yes(Extent::Once),
    Answer::Yes(Extent::Wider(Width::Item, Span::Session)),
    Answer::Yes(Extent::Wider(Width::Item, Span::Saved)),
    Answer::No,
];

pub(crate) async fn run(context: &Context, args: &ApprovalsArgs) -> Result<Exit, Failure> {
    match &args.command {
        None | Some(ApprovalsCommand::List) => list(context).await,
        Some(ApprovalsCommand::Yes(args)) => {
            let extent = confirm::extent(args.width.width(), args.span.span());
            answer(context, &args.id, Answer::Yes(extent)).await
        }
        Some(ApprovalsCommand::No(args)) => answer(context, &args.id, Answer::No).await,
        Some(ApprovalsCommand::Watch) => watch(context).await,
    }
}

async fn list(context: &Context) -> Result<Exit, Failure> {
    let seen = context.host.questions().await?;
    if context.print.wants_json() {
        let questions: Vec<Value> = seen.questions.iter().map(to_json).collect();
        context.print.json(&json!({ "gateways": seen.gateways, "questions": questions }));
        return Ok(Exit::Ok);
    }
    if seen.questions.is_empty() {
        say_nothing(context, &seen);
        return Ok(Exit::Ok);
    }
    let headers = ["ID", "STATE", "CALLER", "TOOL", "EFFECT", "RULE", "AGE", "ARGUMENTS"];
    let rows: Vec<Vec<String>> = seen.questions.iter().map(row).collect();
    context.print.data(&table(&headers, &rows, width()));
    Ok(Exit::Ok)
}

fn say_nothing(context: &Context, seen: &Seen) {
    if seen.gateways == 0 {
        context.print.note("no gateway of yours is running");
        context.print.hint("`capstan serve --http` starts one; its questions are shown here");
    } else {
        context.print.note("no call waits for an answer");
    }
}

async fn answer(context: &Context, id: &str, answer: Answer) -> Result<Exit, Failure> {
    let (answered, place) = context.host.answer(id, answer).await?;
    if context.print.wants_json() {
        let outcome = match answered {
            Answered::Runs => "runs",
            Answered::RunsWhenRepeated => "runs_when_repeated",
            Answered::Refused => "refused",
        };
        context.print.json(&json!({ "id": id, "outcome": outcome, "saved": place }));
        return Ok(Exit::Ok);
    }
    let text = match answered {
        Answered::Runs => "it runs now",
        Answered::RunsWhenRepeated => "approved; it runs when it is called again",
        Answered::Refused => "refused",
    };
    context.print.note(text);
    if let Some(place) = place {
        context.print.note(&format!("allowed from now on by {place}"));
    }
    Ok(Exit::Ok)
}

/// Shows questions as they come, and asks about each where there is somebody to ask.
async fn watch(context: &Context) -> Result<Exit, Failure> {
    let asks = stdin_is_terminal() && stderr_is_terminal() && !context.print.wants_json();
    let mut known: HashSet<String> = HashSet::new();
    let mut seen = context.host.questions().await?;
    say_nothing_at_first(context, &seen);
    loop {
        known.retain(|id| seen.questions.iter().any(|question| question.id == *id));
        let new = |question: &&OpenQuestion| {
            question.stands != Stands::Approved && !known.contains(&question.id)
        };
        let fresh: Vec<OpenQuestion> = seen.questions.iter().filter(new).cloned().collect();
        for question in fresh {
            known.insert(question.id.clone());
            if context.print.wants_json() {
                context.print.json(&to_json(&question));
            } else if asks {
                decide(context, question).await?;
            } else {
                context.print.data(&line(&question));
            }
        }
        seen = context.host.questions_after(seen).await?;
    }
}

fn say_nothing_at_first(context: &Context, seen: &Seen) {
    if seen.questions.is_empty() && !context.print.wants_json() {
        say_nothing(context, seen);
        context.print.note("waiting for questions, until Ctrl-C");
    }
}

/// Asks a person. What they close stays open for others.
async fn decide(context: &Context, question: OpenQuestion) -> Result<(), Failure> {
    let id = question.id.clone();
    let asked = tokio::task::spawn_blocking(move || ask(&mut Terminal, &question));
    let Some(said) = asked.await.unwrap_or_default() else { return Ok(()) };
    match answer(context, &id, said).await {
        // Somebody was faster, or the answer does not fit; the next question may be another.
        Err(failure) => {
            context.print.failure(&failure);
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

fn ask(prompter: &mut dyn Prompter, question: &OpenQuestion) -> Option<Answer> {
    prompter.say(&line(question));
    let item = one_line(&question.item, MAX_NAME);
    let word = |answer: &Answer| match answer {
        Answer::Yes(extent) => confirm::choice(*extent, "", &item),
        Answer::No => "no".to_owned(),
    };
    let mut choices: Vec<String> = CHOICES.iter().map(word).collect();
    choices.push("cancel (it stays open)".to_owned());
    let shown: Vec<&str> = choices.iter().map(String::as_str).collect();
    let chosen = prompter.select("Run it?", &shown, 0).ok()?;
    CHOICES.get(chosen).copied()
}

fn line(question: &OpenQuestion) -> String {
    let OpenQuestion { id, item, arguments, rule, .. } = question;
    let effect = question.effect.map_or("", |effect| effect.as_str());
    let text = format!("{id}  {}  `{item}` ({effect}, {rule}) {arguments}", who(question));
    one_line(&text, MAX_NAME * 4)
}

fn row(question: &OpenQuestion) -> Vec<String> {
    vec![
        question.id.clone(),
        question.stands.as_str().to_owned(),
        who(question),
        question.item.clone(),
        question.effect.map_or("", |effect| effect.as_str()).to_owned(),
        question.rule.clone(),
        age(question),
        question.arguments.clone(),
    ]
}

/// The caller, and what its program calls itself.
fn who(question: &OpenQuestion) -> String {
    match &question.client {
        Some(client) => format!("{} ({client})", question.caller),
        None => question.caller.clone(),
    }
}

fn age(question: &OpenQuestion) -> String {
    match question.stands {
        Stands::Waiting | Stands::Open => {
            humantime::format_duration(Duration::from_secs(question.age.as_secs())).to_string()
        }
        Stands::Approved => String::new(),
    }
}

/// The arguments as an object, always; where so much was cut that they are none any more, the text
/// stands in one.
fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Value::Object(members),
        Ok(Value::Null) | Err(_) if text.is_empty() => json!({}),
        Ok(_) | Err(_) => json!({ "…": text }),
    }
}

fn to_json(question: &OpenQuestion) -> Value {
    json!({
        "id": question.id,
        "state": question.stands.as_str(),
        "caller": question.caller,
        "client": question.client,
        "kind": question.kind.as_str(),
        "item": question.item,
        "arguments": arguments(&question.arguments),
        "effect": question.effect.map(capstan_model::Effect::as_str),
        "rule": question.rule,
        "age_seconds": question.age.as_secs(),
    })
}

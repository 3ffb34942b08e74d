//! `capstan approvals`: answers the open questions of running gateways.

use std::collections::HashSet;
use std::time::Duration;

use capstan_app::api::ApprovalAnswered;
use capstan_app::{AppError, ErrorKind, Pending};
use capstan_hub::approvals::{Answer, Answered, Extent, Masks, OpenQuestion, Span, Stands, Width};
use capstan_text::clean::one_line;
use capstan_text::confirm;
use capstan_text::form::{Prompter, Terminal};
use capstan_text::panel::{self, After};
use capstan_text::screen::{has_person, stdout_is_terminal};
use serde_json::{Value, json};

use crate::args::{ApprovalsArgs, ApprovalsCommand, ShowArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::set;

/// Maximum length of a name that is shown on its own line.
const MAX_NAME: usize = 200;

/// Length of a shortened digest.
const DIGEST_START: usize = 12;

/// Number of columns if there is no terminal.
const PLAIN_COLUMNS: usize = 100;

/// The choices for a question that `watch` shows. `approvals yes` has more options.
const CHOICES: [Answer; 4] = [
    Answer::Yes(Extent::Once),
    Answer::Yes(Extent::Wider(Width::Item, Span::Session)),
    Answer::Yes(Extent::Wider(Width::Item, Span::Saved)),
    Answer::No,
];

pub(crate) async fn run(context: &Context, args: &ApprovalsArgs) -> Result<Exit, AppError> {
    match &args.command {
        None | Some(ApprovalsCommand::List) => list(context).await,
        Some(ApprovalsCommand::Yes(args)) => {
            let extent = confirm::extent(args.width.width(), args.span.span());
            answer(context, &args.id, Answer::Yes(extent)).await
        }
        Some(ApprovalsCommand::No(args)) => answer(context, &args.id, Answer::No).await,
        Some(ApprovalsCommand::Show(args)) => show(context, args).await,
        Some(ApprovalsCommand::Watch) => watch(context).await,
    }
}

async fn list(context: &Context) -> Result<Exit, AppError> {
    let seen = context.app.approvals.list().await?;
    if context.print.wants_json() {
        let mut questions: Vec<Value> = seen.questions.iter().map(to_json).collect();
        if seen.missed.is_some() {
            for question in &mut questions {
                set(question, "incomplete", true);
            }
        }
        context.print.json(&questions);
        return Ok(tell_missed(context, &seen));
    }
    if seen.questions.is_empty() {
        say_nothing(context, &seen);
        return Ok(tell_missed(context, &seen));
    }
    let headers = ["ID", "STATE", "CALLER", "TOOL", "EFFECT", "RULE", "AGE", "ARGUMENTS"];
    let rows: Vec<Vec<String>> = seen.questions.iter().map(row).collect();
    context.print.table(&headers, &rows);
    context.print.hint("`capstan approvals show ID` shows a call with all of its arguments");
    Ok(tell_missed(context, &seen))
}

/// Reports a gateway that could not be asked; without its questions, the list is incomplete.
fn tell_missed(context: &Context, seen: &Pending) -> Exit {
    let Some(error) = &seen.missed else { return Exit::Ok };
    context.print.warning(&error.message);
    if let Some(hint) = &error.hint {
        context.print.hint(hint);
    }
    Exit::Unreachable
}

/// Shows one call with all of its arguments, page by page on a terminal.
async fn show(context: &Context, args: &ShowArgs) -> Result<Exit, AppError> {
    let id = &args.id;
    let question = context.app.approvals.show(id).await?;
    let masks = if args.unmasked { Masks::Nothing } else { Masks::Secrets };
    let question = question.in_full(masks);
    if context.print.wants_json() {
        context.print.json(&to_json(&question));
        return Ok(Exit::Ok);
    }
    if question.stands == Stands::Approved {
        context.print.data(&approved(&question));
        return Ok(Exit::Ok);
    }
    let masked = question.arguments.masked;
    if can_page(context) {
        let paged = tokio::task::spawn_blocking(move || {
            // Closing the pager is no error.
            drop(confirm::present(&mut Terminal, &shown(&question), 2, After::Nothing));
        });
        drop(paged.await);
    } else {
        let shown = shown(&question);
        let mut lines = confirm::head(&shown, PLAIN_COLUMNS);
        lines.extend(panel::lines(&question.arguments.text, usize::MAX));
        context.print.data(&lines.join("\n"));
    }
    if masked > 0 {
        context
            .print
            .hint(&format!("`capstan approvals show {id} --unmasked` shows masked values"));
    }
    context.print.hint(&format!("`capstan approvals yes {id}` approves it, `no {id}` refuses it"));
    Ok(Exit::Ok)
}

/// The description of a call that is already approved.
fn approved(question: &OpenQuestion) -> String {
    let OpenQuestion { item, caller, arguments, .. } = question;
    let expires = seconds(question.expires);
    format!(
        "approved, and not used yet: {} `{}`\n  caller     {}\n  sha256     {}\n  expires    in {expires}\n\
         only the digest of its arguments is kept",
        question.kind.as_str(),
        one_line(item, MAX_NAME),
        one_line(caller, MAX_NAME),
        arguments.sha256,
    )
}

/// True if a person can page through the output.
fn can_page(context: &Context) -> bool {
    has_person() && stdout_is_terminal() && !context.print.wants_json()
}

/// A question in display form.
fn shown(question: &OpenQuestion) -> confirm::Shown<'_> {
    let effect = question.effect.map_or("", |effect| effect.as_str());
    let facts = vec![
        ("id", question.id.clone()),
        ("effect", effect.to_owned()),
        ("caller", who(question)),
        ("rule", question.rule.clone()),
        ("expires", format!("in {}", seconds(question.expires))),
    ];
    let OpenQuestion { kind, server, name, arguments, .. } = question;
    let unmasked = || question.clone().in_full(Masks::Nothing).arguments;
    let unmasked = (question.raw.is_some() && arguments.masked > 0).then(unmasked);
    confirm::Shown { kind: *kind, server, name, facts, arguments, unmasked }
}

fn seconds(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

fn say_nothing(context: &Context, seen: &Pending) {
    if seen.gateways == 0 {
        context.print.note("no gateway of yours is running");
        context
            .print
            .hint("`capstan serve --http` starts one; calls that wait for approval are shown here");
    } else {
        context.print.note("no call waits for approval");
    }
}

async fn answer(context: &Context, id: &str, answer: Answer) -> Result<Exit, AppError> {
    let ApprovalAnswered { outcome: answered, saved: place } =
        context.app.approvals.answer(id, answer).await?;
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

/// Shows questions as they arrive, and asks about each if a person is present.
async fn watch(context: &Context) -> Result<Exit, AppError> {
    let asks = has_person() && !context.print.wants_json();
    let mut known: HashSet<String> = HashSet::new();
    let mut seen = context.app.approvals.list().await?;
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
        seen = context.app.approvals.list_after(seen).await;
    }
}

fn say_nothing_at_first(context: &Context, seen: &Pending) {
    if seen.questions.is_empty() && !context.print.wants_json() {
        say_nothing(context, seen);
        context.print.note("waiting for calls that need approval; stop with Ctrl-C");
    }
}

/// Asks a person. A question that the person closes stays open for others.
async fn decide(context: &Context, question: OpenQuestion) -> Result<(), AppError> {
    let id = question.id;
    // It may have been answered in the meantime.
    let question = match context.app.approvals.show(&id).await {
        Ok(question) => question.in_full(Masks::Secrets),
        Err(failure) => {
            if failure.kind != ErrorKind::NotFound {
                context.print.failure(&failure);
            }
            return Ok(());
        }
    };
    let asked = tokio::task::spawn_blocking(move || ask(&mut Terminal, &question));
    let Some(said) = asked.await.unwrap_or_default() else { return Ok(()) };
    match answer(context, &id, said).await {
        // Another shell was faster, or the answer does not fit; continue with the next question.
        Err(failure) => {
            context.print.failure(&failure);
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

fn ask(prompter: &mut dyn Prompter, question: &OpenQuestion) -> Option<Answer> {
    let name = confirm::quotable(&question.name, '`');
    let word = |answer: &Answer| match answer {
        Answer::Yes(extent) => confirm::choice(*extent, "", &name),
        Answer::No => "no".to_owned(),
    };
    let mut choices: Vec<String> = CHOICES.iter().map(word).collect();
    choices.push("cancel (it stays open)".to_owned());
    let no = CHOICES.len() - 1;
    let chosen = confirm::run_it(prompter, &shown(question), &choices, no)?;
    CHOICES.get(chosen).copied()
}

fn line(question: &OpenQuestion) -> String {
    let OpenQuestion { id, item, rule, .. } = question;
    let effect = question.effect.map_or("", |effect| effect.as_str());
    let arguments = summary(question);
    let text = format!("{id}  {}  `{item}` ({effect}, {rule}) {arguments}", who(question));
    one_line(&text, MAX_NAME * 4)
}

/// The arguments on one line. The remark comes first, because the arguments begin with a bracket.
fn summary(question: &OpenQuestion) -> String {
    let arguments = &question.arguments;
    if arguments.shortened {
        let sha256 = arguments.sha256.get(..DIGEST_START).unwrap_or_default();
        return format!("({}, sha256 {sha256}) {}", arguments.summary(), arguments.text);
    }
    arguments.text.clone()
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
        summary(question),
    ]
}

/// The caller, with the client's own name in quotes, because the client chose it.
fn who(question: &OpenQuestion) -> String {
    match &question.client {
        Some(client) => format!("{} (\"{}\")", question.caller, confirm::quotable(client, '"')),
        None => question.caller.clone(),
    }
}

fn age(question: &OpenQuestion) -> String {
    match question.stands {
        Stands::Waiting | Stands::Open => seconds(question.age),
        Stands::Approved => String::new(),
    }
}

/// The arguments, always as an object; shortened text that no longer parses as an object is wrapped
/// in one.
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
        "server": question.server,
        "name": question.name,
        "arguments": arguments(&question.arguments.text),
        "arguments_bytes": question.arguments.bytes,
        "arguments_sha256": question.arguments.sha256,
        "arguments_shortened": question.arguments.shortened,
        "effect": question.effect.map(capstan_model::Effect::as_str),
        "rule": question.rule,
        "age_seconds": question.age.as_secs(),
        "expires_seconds": question.expires.as_secs(),
    })
}

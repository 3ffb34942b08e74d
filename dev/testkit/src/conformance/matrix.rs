//! What the tools do that tests of our own call, through every transport and revision.

use std::time::Duration;

use serde_json::{Value, json};

use super::ask::{Question, filled, said, sampled};
use super::call::{Call, Keep};
use super::library::WATCHED;
use super::lock;
use super::message::{Fault, INVALID_PARAMS, Reply};
use super::seal::random;
use super::server::Change;
use super::session::{Running, Visit};
use super::suite::Outcome;
use crate::fixture::{LONG_NUMBER, WEIRD};

/// The error code of 2025-11-25 for a call that needs a visit to a URL first.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The most notifications that `progress` sends of each kind.
const MOST_STEPS: u64 = 1000;

/// The most questions that `several_questions` puts.
const MOST_QUESTIONS: u64 = 20;

/// The longest that `wait_for_cancel` waits.
const LONGEST: Duration = Duration::from_mins(5);

/// Where a person is sent when the caller names no place.
const PLACE: &str = "https://example.com/visit";

/// Runs a tool for tests of our own.
pub(super) async fn run(call: &Call) -> Outcome {
    let reply = match call.request.text("/name") {
        "progress" => progress(call),
        "wait_for_cancel" => wait_for_cancel(call).await,
        "elicit_form" => {
            let message = or(call.text("message"), "Who are you?");
            let name = json!({ "name": { "type": "string", "title": "Name", "maxLength": 40 } });
            let question = Question::form("answer", message, &name);
            Reply::text(said(&call.ask_one(question, Keep::Sealed).await?))
        }
        "elicit_url" => elicit_url(call).await?,
        "url_required" => url_required(call).await?,
        "finish_visit" => finish_visit(call),
        "sample" => {
            let question = Question::sample("sample", or(call.text("prompt"), "Say hello"), 100);
            Reply::text(sampled(&call.ask_one(question, Keep::Sealed).await?))
        }
        "roots" => {
            let answer = call.ask_one(Question::roots("roots"), Keep::Sealed).await?;
            Reply::text(answer.get("roots").cloned().unwrap_or_default().to_string())
        }
        "several_questions" => several_questions(call).await?,
        "trigger_tools" => call.server.change(&Change::Tools),
        "trigger_prompts" => call.server.change(&Change::Prompts),
        "trigger_resources" => call.server.change(&Change::Resources),
        "trigger_update" => {
            call.server.change(&Change::Resource(or(call.text("uri"), WATCHED).to_owned()))
        }
        "long_number" => Reply::Raw(LONG_NUMBER.to_owned()),
        "weird" => Reply::Raw(WEIRD.to_owned()),
        "echo" => {
            let arguments = call.request.params.get("arguments").cloned();
            Reply::text(arguments.unwrap_or_else(|| json!({})).to_string())
        }
        "client" => client(call),
        _ => return Ok(None),
    };
    Ok(Some(reply))
}

/// Progress and log messages in turn, in an order that can be checked.
fn progress(call: &Call) -> Reply {
    let steps = call.number("steps", 3, MOST_STEPS);
    for step in 1..=steps {
        call.progress(step, steps, &format!("step {step}"));
        call.log("info", &format!("log {step}"));
    }
    Reply::text(format!("{steps} steps"))
}

/// The resource `test://events` tells that it began and how it ended.
async fn wait_for_cancel(call: &Call) -> Reply {
    let tag = or(call.text("tag"), "untagged");
    call.server.happened(format!("started {tag}"));
    call.progress(0, 1, "waiting");
    tokio::select! {
        () = Running::over(&call.cancelled) => {
            call.server.happened(format!("cancelled {tag}"));
            Reply::Silence
        }
        () = tokio::time::sleep(LONGEST) => Reply::failed("nobody cancelled it"),
    }
}

async fn elicit_url(call: &Call) -> Result<Reply, Reply> {
    let visit = format!("visit-{:08x}", random() >> 32);
    let question = Question::url("visit", &visit, or(call.text("url"), PLACE));
    let answer = call.ask_one(question, Keep::Sealed).await?;
    let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
    if accepted && !call.revision.is_modern() {
        complete(call, &visit);
    }
    Ok(Reply::text(said(&answer)))
}

/// Fails until the visit is made; in the modern era it asks for it.
async fn url_required(call: &Call) -> Result<Reply, Reply> {
    if call.revision.is_modern() {
        return elicit_url(call).await;
    }
    let url = or(call.text("url"), PLACE);
    let mut visits = lock(&call.session.visits);
    if visits.get(url) == Some(&Visit::Made) {
        return Ok(Reply::text("visited"));
    }
    visits.insert(url.to_owned(), Visit::Asked);
    drop(visits);
    // The URL is the name of the visit, so that it is finished by the name that was given.
    let visit =
        json!({ "mode": "url", "message": "Please visit", "url": url, "elicitationId": url });
    let fault = Fault::new(URL_ELICITATION_REQUIRED, "a visit to a page is needed first");
    Err(fault.with(json!({ "elicitations": [visit] })).into())
}

/// Plays the person who has been to the page.
fn finish_visit(call: &Call) -> Reply {
    let visit = call.text("elicitationId");
    let known =
        lock(&call.session.visits).get_mut(visit).map(|state| *state = Visit::Made).is_some();
    if !known {
        return Fault::new(INVALID_PARAMS, format!("no visit `{visit}` was asked for")).into();
    }
    complete(call, visit);
    Reply::text("finished")
}

fn complete(call: &Call, visit: &str) {
    call.notify("notifications/elicitation/complete", &json!({ "elicitationId": visit }));
}

/// One question after the other, each of which needs the answer before it.
async fn several_questions(call: &Call) -> Result<Reply, Reply> {
    let mut answers = Vec::new();
    for number in 1..=call.number("count", 3, MOST_QUESTIONS) {
        let message = format!("Question {number}, after {answers:?}");
        let text = json!({ "text": { "type": "string" } });
        let question = Question::form(&format!("question{number}"), &message, &text);
        let answer = call.ask_one(question, Keep::Sealed).await?;
        answers.push(filled(&answer, "text"));
    }
    Ok(Reply::text(answers.join(", ")))
}

/// What the server knows of its client.
fn client(call: &Call) -> Reply {
    let told =
        json!({ "revision": call.revision.name(), "capabilities": call.capabilities.clone() });
    Reply::text(told.to_string())
}

fn or<'a>(given: &'a str, otherwise: &'a str) -> &'a str {
    if given.is_empty() { otherwise } else { given }
}

//! The protocol of the socket: JSON-RPC, one message per line.

use std::time::Duration;

use capstan_hub::approvals::{
    Answer, Answered, Extent, OpenQuestion, ShownArguments, Span, Stands, Width,
};
use capstan_model::{Effect, Kind};
use capstan_wire::Json;
use serde::{Deserialize, Serialize};

/// Lists the open questions.
pub(crate) const LIST: &str = "approvals/list";

/// Lists the open questions once their revision is another, or after a timeout.
pub(crate) const WATCH: &str = "approvals/watch";

/// Shows one question with all of its arguments.
pub(crate) const SHOW: &str = "approvals/show";

/// Answers a question.
pub(crate) const ANSWER: &str = "approvals/answer";

/// Reports which configuration is in force.
pub(crate) const ABOUT: &str = "gateway/about";

/// Runs an operation of the API for a shell.
pub(crate) const RUN: &str = "api/run";

/// Sends an event of the operation to the shell.
pub(crate) const EVENT: &str = "api/event";

/// Asks the shell a question of the operation.
pub(crate) const ASK: &str = "api/ask";

/// The error of an operation that does not run here; nothing was done.
///
/// It is meant for another configuration or version, or too many are running.
pub(crate) const NOT_HERE: i64 = -32002;

/// The error of an answer to a question that is not open.
pub(crate) const UNKNOWN_QUESTION: i64 = -32001;

/// The error of an answer that is not accepted.
pub(crate) const NOT_TAKEN: i64 = -32000;

/// The params of [`WATCH`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Watch {
    /// The known revision.
    pub(crate) revision: u64,
    /// Maximum wait for another one, in milliseconds.
    pub(crate) wait: u64,
}

/// The params of [`SHOW`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Show {
    pub(crate) id: String,
}

/// The result of [`LIST`] and [`WATCH`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) revision: u64,
    pub(crate) questions: Vec<Question>,
}

/// The result of [`ABOUT`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) digest: String,
}

/// One question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    id: String,
    caller: String,
    client: Option<String>,
    kind: String,
    item: String,
    // An older gateway does not send the members with a default.
    #[serde(default)]
    server: String,
    #[serde(default)]
    name: String,
    arguments: String,
    /// The complete arguments, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
    #[serde(default)]
    bytes: usize,
    #[serde(default)]
    sha256: String,
    #[serde(default)]
    masked: usize,
    #[serde(default)]
    shortened: bool,
    effect: Option<String>,
    rule: String,
    state: String,
    age: u64,
    #[serde(default)]
    expires: u64,
}

/// The params of [`ANSWER`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerParams {
    pub(crate) id: String,
    answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<String>,
}

/// The result of [`ANSWER`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    outcome: String,
    /// The file that a rule was written to.
    pub(crate) saved: Option<String>,
}

// === impl Question ===

impl From<OpenQuestion> for Question {
    fn from(question: OpenQuestion) -> Self {
        Self {
            id: question.id,
            caller: question.caller,
            client: question.client,
            kind: question.kind.as_str().to_owned(),
            item: question.item,
            server: question.server,
            name: question.name,
            arguments: question.arguments.text,
            raw: question.raw.map(|raw| raw.as_str().to_owned()),
            bytes: question.arguments.bytes,
            sha256: question.arguments.sha256,
            masked: question.arguments.masked,
            shortened: question.arguments.shortened,
            effect: question.effect.map(|effect| effect.as_str().to_owned()),
            rule: question.rule,
            state: question.stands.as_str().to_owned(),
            age: milliseconds(question.age),
            expires: milliseconds(question.expires),
        }
    }
}

impl Question {
    /// Converts the question; `None` if it has unknown values.
    pub(crate) fn read(self) -> Option<OpenQuestion> {
        let kinds = [Kind::Tool, Kind::Resource, Kind::Prompt];
        let effects = [Effect::Read, Effect::Write, Effect::Unknown];
        let states = [Stands::Waiting, Stands::Open, Stands::Approved];
        let effect = match self.effect {
            Some(word) => Some(effects.into_iter().find(|effect| effect.as_str() == word)?),
            None => None,
        };
        Some(OpenQuestion {
            id: self.id,
            caller: self.caller,
            client: self.client,
            kind: kinds.into_iter().find(|kind| kind.as_str() == self.kind)?,
            item: self.item,
            server: self.server,
            name: self.name,
            arguments: ShownArguments {
                text: self.arguments,
                bytes: self.bytes,
                sha256: self.sha256,
                masked: self.masked,
                shortened: self.shortened,
            },
            raw: self.raw.and_then(|raw| Json::parse(raw).ok()),
            effect,
            rule: self.rule,
            stands: states.into_iter().find(|state| state.as_str() == self.state)?,
            age: Duration::from_millis(self.age),
            expires: Duration::from_millis(self.expires),
        })
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

// === impl AnswerParams ===

impl AnswerParams {
    pub(crate) fn new(id: &str, answer: Answer) -> Self {
        let (word, width, span) = match answer {
            Answer::No => ("no", None, None),
            Answer::Yes(Extent::Once) => ("yes", None, None),
            Answer::Yes(Extent::Wider(width, span)) => {
                ("yes", Some(width.as_str().to_owned()), Some(span.as_str().to_owned()))
            }
        };
        Self { id: id.to_owned(), answer: word.to_owned(), width, span }
    }

    /// Converts the answer; `None` if it has unknown values, which must not become a yes.
    pub(crate) fn read(&self) -> Option<Answer> {
        match (self.answer.as_str(), &self.width, &self.span) {
            ("no", None, None) => Some(Answer::No),
            ("yes", None, None) => Some(Answer::Yes(Extent::Once)),
            ("yes", Some(width), Some(span)) => {
                Some(Answer::Yes(Extent::Wider(Width::parse(width)?, Span::parse(span)?)))
            }
            _ => None,
        }
    }
}

// === impl Outcome ===

impl Outcome {
    pub(crate) fn new(answered: &Answered, saved: Option<String>) -> Self {
        let outcome = match answered {
            Answered::Runs => "runs",
            Answered::RunsWhenRepeated => "runs_when_repeated",
            Answered::Refused => "refused",
        };
        Self { outcome: outcome.to_owned(), saved }
    }

    pub(crate) fn read(&self) -> Option<Answered> {
        let all = [Answered::Runs, Answered::RunsWhenRepeated, Answered::Refused];
        all.into_iter().find(|answered| Self::new(answered, None).outcome == self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_arrives_as_it_was_given() {
        let wider = |span| Width::ALL.map(|width| Answer::Yes(Extent::Wider(width, span)));
        let mut all = vec![Answer::No, Answer::Yes(Extent::Once)];
        all.extend(wider(Span::Session));
        all.extend(wider(Span::Saved));
        for answer in all {
            assert_eq!(AnswerParams::new("k7f2", answer).read(), Some(answer));
        }
    }

    #[test]
    fn a_question_of_an_older_gateway_is_read() {
        let text = r#"{"id":"k7f2","caller":"me","client":null,"kind":"tool","item":"f__t",
            "arguments":"{}","effect":"write","rule":"default","state":"open","age":5}"#;
        let question = serde_json::from_str::<Question>(text).unwrap().read().unwrap();
        assert_eq!((question.id.as_str(), question.raw), ("k7f2", None));
    }

    #[test]
    fn what_is_not_understood_is_no_yes() {
        for text in [
            r#"{"id":"a","answer":"yes","width":"everything","span":"saved"}"#,
            r#"{"id":"a","answer":"yes","width":"tool"}"#,
            r#"{"id":"a","answer":"yes","span":"saved"}"#,
            r#"{"id":"a","answer":"Yes"}"#,
            r#"{"id":"a","answer":"no","width":"tool","span":"saved"}"#,
            r#"{"id":"a","answer":""}"#,
        ] {
            let said: AnswerParams = serde_json::from_str(text).unwrap();
            assert_eq!(said.read(), None, "{text}");
        }
    }
}

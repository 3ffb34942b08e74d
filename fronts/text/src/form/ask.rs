//! Asks a person the questions of a form.

use capstan_hub::ports::{Elicitation, Reply, Want};
use capstan_model::ServerName;
use capstan_model::secret::MASK;
use capstan_wire::{Json, compose};

use super::field::{self, Field};
use super::page;
use super::prompt::{Closed, Prompter};
use super::rule::{Choice, Kind};
use super::{Answer, shown};
use crate::clean::wrap;
use crate::panel::{self, After, Room, Seen};

/// Number of our lines around a server's message.
const ROOM: Room = Room { above: 1, below: 6, after: After::Question };

/// Number of columns beside a server's message.
const MARGIN: usize = 4;

/// The choice that leaves an optional field out.
const LEAVE_OUT: &str = "(leave out)";

/// The choice before or after the questions themselves.
pub(super) enum Decision {
    Yes,
    Decline,
    Cancel,
}

/// Asks a person and returns the answer. Closing any question cancels the whole form.
pub fn ask(prompter: &mut dyn Prompter, elicitation: &Elicitation) -> Reply {
    let (server, message) = (&elicitation.server, &elicitation.message);
    let asked = match &elicitation.want {
        Want::Form(schema) => form(prompter, server, message, schema),
        Want::Visit(url) => page::visit(prompter, server, message, url),
    };
    asked.unwrap_or(Reply::Cancel)
}

fn form(
    prompter: &mut dyn Prompter,
    server: &ServerName,
    message: &str,
    schema: &Json,
) -> Result<Reply, Closed> {
    prompter.say(&format!("`{server}` asks:"));
    if say_message(prompter, message)? == Seen::Refused {
        return Ok(Reply::Decline);
    }
    let fields = match field::read(schema) {
        Ok(fields) => fields,
        Err(error) => {
            prompter.say(&format!("declined: {error}"));
            return Ok(Reply::Decline);
        }
    };
    for Field { label, .. } in fields.iter().filter(|field| field.secret) {
        prompter.say(&format!(
            "warning: `{label}` looks like a secret; your answer is sent to `{server}`"
        ));
    }
    match decide(prompter, &format!("Answer `{server}`?"), "answer")? {
        Decision::Yes => {}
        Decision::Decline => return Ok(Reply::Decline),
        Decision::Cancel => return Ok(Reply::Cancel),
    }
    let mut answer = Answer::default();
    for field in &fields {
        if let Some(value) = ask_field(prompter, server, field)? {
            answer.put(field, value);
        }
    }
    Ok(Reply::Accept(Some(answer.into_json())))
}

/// Shows the server's message, page by page if it is long.
pub(super) fn say_message(prompter: &mut dyn Prompter, message: &str) -> Result<Seen, Closed> {
    let (columns, _) = prompter.size();
    // Runs of blanks count as one, so that padding cannot push words to the beginning of a line.
    let message = wrap(message, columns.saturating_sub(MARGIN)).join("\n");
    panel::show(prompter, &panel::lines(&message, columns), ROOM)
}

/// Asks whether to take part at all.
pub(super) fn decide(
    prompter: &mut dyn Prompter,
    question: &str,
    yes: &str,
) -> Result<Decision, Closed> {
    Ok(match prompter.select(question, &[yes, "decline", "cancel"], 0)? {
        0 => Decision::Yes,
        1 => Decision::Decline,
        _ => Decision::Cancel,
    })
}

/// Asks until the answer satisfies the field's rules.
fn ask_field(
    prompter: &mut dyn Prompter,
    server: &ServerName,
    field: &Field,
) -> Result<Option<Json>, Closed> {
    if let Some(description) = &field.description
        && say_message(prompter, description)? == Seen::Refused
    {
        return Err(Closed);
    }
    // The server's name comes first, because the label is text from the server.
    let question = format!("{server} › {}{}:", field.label, remark(field));
    loop {
        let given = match &field.kind {
            Kind::Text { .. } | Kind::Integer(_) | Kind::Number(_) => {
                typed(prompter, &question, field)?
            }
            Kind::Boolean => Ok(yes_or_no(prompter, &question, field)?),
            Kind::Choice(options) => Ok(one_of(prompter, &question, field, options)?),
            Kind::Choices { options, .. } => some_of(prompter, &question, field, options)?,
        };
        match given {
            Ok(value) => return Ok(value),
            Err(reason) => prompter.say(&format!("  {reason}")),
        }
    }
}

/// The remark after the label: an example, the default, or that the field is optional.
fn remark(field: &Field) -> String {
    let example = match field.kind {
        Kind::Text { format: Some(format), .. } => format!(", {}", format.example()),
        Kind::Text { format: None, .. }
        | Kind::Integer(_)
        | Kind::Number(_)
        | Kind::Boolean
        | Kind::Choice(_)
        | Kind::Choices { .. } => String::new(),
    };
    match (&field.default, &field.kind) {
        (Some(_), _) if field.secret => format!("{example} [{MASK}]"),
        (Some(default), Kind::Text { .. }) => {
            format!("{example} [{}]", shown(&default.read::<String>().unwrap_or_default()))
        }
        (Some(default), Kind::Integer(_) | Kind::Number(_)) => {
            format!("{example} [{}]", shown(default.as_str()))
        }
        // These kinds preselect their default.
        (Some(_), Kind::Boolean | Kind::Choice(_) | Kind::Choices { .. }) => String::new(),
        (None, _) if field.required => example,
        (None, _) => format!("{example} (optional)"),
    }
}

/// An answer, no answer, or the reason why the question must be asked again.
type Given = Result<Option<Json>, String>;

fn typed(prompter: &mut dyn Prompter, question: &str, field: &Field) -> Result<Given, Closed> {
    let text = if field.secret { prompter.secret(question)? } else { prompter.text(question)? };
    if !text.is_empty() {
        return Ok(match field.kind.parse(&text) {
            Ok(value) => Ok(Some(value)),
            Err(fault) => Err(format!("that {fault}")),
        });
    }
    Ok(match &field.default {
        Some(default) => Ok(Some(default.clone())),
        None if field.required => Err("an answer is needed".to_owned()),
        None => Ok(None),
    })
}

fn yes_or_no(
    prompter: &mut dyn Prompter,
    question: &str,
    field: &Field,
) -> Result<Option<Json>, Closed> {
    let default = field.default.as_ref().map(|default| default.as_str() == "true");
    let yes = if field.required || default.is_some() {
        prompter.confirm(question, default)?
    } else {
        match prompter.select(question, &["yes", "no", LEAVE_OUT], 2)? {
            0 => true,
            1 => false,
            _ => return Ok(None),
        }
    };
    Ok(Json::from_value(&yes).ok())
}

fn one_of(
    prompter: &mut dyn Prompter,
    question: &str,
    field: &Field,
    options: &[Choice],
) -> Result<Option<Json>, Closed> {
    let mut titles: Vec<&str> = options.iter().map(|option| option.title.as_str()).collect();
    let default = field.default.as_ref();
    let place = default.and_then(|value| options.iter().position(|o| o.value == *value));
    if !field.required {
        titles.push(LEAVE_OUT);
    }
    let start = place.unwrap_or(if field.required { 0 } else { options.len() });
    let chosen = prompter.select(question, &titles, start)?;
    Ok(options.get(chosen).map(|option| option.value.clone()))
}

fn some_of(
    prompter: &mut dyn Prompter,
    question: &str,
    field: &Field,
    options: &[Choice],
) -> Result<Given, Closed> {
    let titles: Vec<&str> = options.iter().map(|option| option.title.as_str()).collect();
    let default = field.default.as_ref().and_then(|list| capstan_wire::object::items(list).ok());
    let default = default.unwrap_or_default();
    let places = options.iter().enumerate().filter(|(_, option)| default.contains(&option.value));
    let start: Vec<usize> = places.map(|(place, _)| place).collect();
    let chosen = prompter.multi_select(question, &titles, &start)?;
    if chosen.is_empty() && !field.required {
        return Ok(Ok(None));
    }
    let values = chosen.into_iter().filter_map(|place| Some(&options.get(place)?.value));
    let list = compose::array(values);
    Ok(match field.kind.check(&list) {
        Ok(()) => Ok(Some(list)),
        Err(fault) => Err(format!("that {fault}")),
    })
}

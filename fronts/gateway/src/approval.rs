//! The question whether a call may run, as a client can be asked it.

use capstan_hub::ports::Question;
use capstan_model::Effect;
use capstan_wire::{Json, compose, object};

/// Longest arguments that are shown in a question.
const MAX_SHOWN: usize = 500;

/// The question whether a call may run, as a form.
pub(crate) fn approval_form(question: &Question) -> Json {
    let Question { id, kind, arguments, effect, rule } = question;
    let mut shown = arguments.to_string();
    if shown.len() > MAX_SHOWN {
        shown.truncate(shown.floor_char_boundary(MAX_SHOWN));
        shown.push('…');
    }
    let message = format!(
        "Capstan asks: may the {} `{}` of the server `{}` run? It is a {}. Arguments: {shown} \
         (rule: {rule})",
        kind.as_str(),
        id.item,
        id.server,
        match effect {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Unknown => "call of unknown effect",
        },
    );
    let text = compose::string;
    let field = compose::object(&[
        ("type", &text("boolean")),
        ("title", &text("Allow this call")),
        ("description", &text("Yes runs it once; anything else does not run it.")),
    ]);
    let schema = compose::object(&[
        ("type", &text("object")),
        ("properties", &compose::object(&[("allow", &field)])),
        ("required", &compose::array(&[text("allow")])),
    ]);
    compose::object(&[("message", &text(&message)), ("requestedSchema", &schema)])
}

/// Whether an answer to it says yes.
pub(crate) fn is_yes(answer: &Json) -> bool {
    object::get_string(answer, "action").as_deref() == Some("accept")
        && object::at_path(answer, "content.allow").is_some_and(|json| json.as_bytes() == b"true")
}

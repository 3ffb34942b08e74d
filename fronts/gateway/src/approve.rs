//! The question whether a call may run, as a form that a client shows.

use capstan_hub::approvals::{Extent, Span, Width};
use capstan_hub::ports::Question;
use capstan_model::Effect;
use capstan_wire::{Json, compose, object};

/// Only this call; what is meant when nothing is said.
const ONCE: &str = "once";

/// This tool, in the operator's configuration.
const ALWAYS: &str = "always";

/// The question as the params of an elicitation.
pub(crate) fn form(question: &Question) -> Json {
    let Question { id, kind, effect, rule, offers, .. } = question;
    let message = format!(
        "Capstan asks: may the {} `{}` of the server `{}` run? It is a {}. Arguments: {} \
         (rule: {rule})",
        kind.as_str(),
        id.item,
        id.server,
        match effect {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Unknown => "call of unknown effect",
        },
        question.shown_arguments(),
    );
    let text = compose::string;
    let allow = compose::object(&[
        ("type", &text("boolean")),
        ("title", &text("Allow this call")),
        ("description", &text("Yes runs it; anything else does not run it.")),
    ]);
    let words: Vec<(&str, &str)> = offers.iter().filter_map(|extent| word(*extent)).collect();
    let names: Vec<Json> = words.iter().map(|(name, _)| text(name)).collect();
    let titles: Vec<Json> = words.iter().map(|(_, title)| text(title)).collect();
    let remember = compose::object(&[
        ("type", &text("string")),
        ("title", &text("And from now on")),
        ("enum", &compose::array(&names)),
        ("enumNames", &compose::array(&titles)),
        ("default", &text(ONCE)),
    ]);
    let mut fields = vec![("allow", &allow)];
    if names.len() > 1 {
        fields.push(("remember", &remember));
    }
    let schema = compose::object(&[
        ("type", &text("object")),
        ("properties", &compose::object(&fields)),
        ("required", &compose::array(&[text("allow")])),
    ]);
    compose::object(&[("message", &text(&message)), ("requestedSchema", &schema)])
}

/// What a client answered: how far its yes reaches, or `None` for a no.
///
/// A word that was not offered widens nothing.
pub(crate) fn answer(answer: &Json, question: &Question) -> Option<Extent> {
    let accepts = object::get_string(answer, "action").as_deref() == Some("accept");
    let allows = object::at_path(answer, "content.allow");
    if !accepts || allows.is_none_or(|json| json.as_bytes() != b"true") {
        return None;
    }
    let content = object::get(answer, "content")?;
    let chosen = object::get_string(&content, "remember").unwrap_or_default();
    let mut offers = question.offers.iter();
    let offered = offers.find(|extent| word(**extent).is_some_and(|(word, _)| word == chosen));
    Some(offered.copied().unwrap_or(Extent::Once))
}

/// The word and the title of an extent; `None` for what no client is offered.
fn word(extent: Extent) -> Option<(&'static str, &'static str)> {
    let title = match extent {
        Extent::Once => return Some((ONCE, "Ask again next time")),
        Extent::Wider(Width::Item, Span::Saved) => {
            return Some((ALWAYS, "Allow this tool for ever, for every client"));
        }
        // Who writes wider rules than that does it in the configuration, or in a shell.
        Extent::Wider(_, Span::Saved) => return None,
        Extent::Wider(Width::Item, Span::Session) => "Allow this tool for this session",
        Extent::Wider(Width::Arguments, Span::Session) => {
            "Allow this tool with these arguments for this session"
        }
        Extent::Wider(Width::ServerReads, Span::Session) => {
            "Allow whatever this server only reads for this session"
        }
        Extent::Wider(Width::Server, Span::Session) => {
            "Allow everything of this server for this session"
        }
    };
    match extent {
        Extent::Wider(width, Span::Session) => Some((width.as_str(), title)),
        Extent::Once | Extent::Wider(_, Span::Saved) => None,
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::{By, Caller, ItemId, Kind};

    use super::*;

    fn question(offers: Vec<Extent>) -> Question {
        Question {
            caller: Caller::anonymous().into(),
            id: ItemId { server: "files".parse().unwrap(), item: "write".to_owned() },
            kind: Kind::Tool,
            arguments: json(r#"{"path":"x","token":"y"}"#),
            effect: Effect::Write,
            rule: "permissions.default: ask-writes".to_owned(),
            by: By::Default,
            offers,
        }
    }

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn all() -> Vec<Extent> {
        let wider = |span| Width::ALL.map(|width| Extent::Wider(width, span));
        let once = [Extent::Once];
        once.into_iter().chain(wider(Span::Session)).chain(wider(Span::Saved)).collect()
    }

    fn words(offers: Vec<Extent>) -> Option<String> {
        let form = form(&question(offers));
        let field = object::at_path(&form, "requestedSchema.properties.remember")?;
        object::get(&field, "enum").map(|words| words.to_string())
    }

    #[test]
    fn a_client_is_offered_what_the_road_offers_and_of_what_lasts_only_the_tool() {
        assert_eq!(words(vec![Extent::Once]), None);
        assert_eq!(
            words(all()).unwrap(),
            r#"["once","arguments","tool","server_reads","server","always"]"#
        );
        let message = object::get_string(&form(&question(all())), "message").unwrap();
        assert!(message.contains("`write` of the server `files`"), "{message}");
        assert!(message.contains(r#"{"path":"x","token":"***"}"#), "{message}");
    }

    #[test]
    fn only_a_plain_yes_is_one_and_it_reaches_no_further_than_was_offered() {
        let some = vec![Extent::Once, Extent::Wider(Width::Item, Span::Session)];
        let item = Some(Extent::Wider(Width::Item, Span::Session));
        for (said, expected) in [
            (r#"{"action":"accept","content":{"allow":true}}"#, Some(Extent::Once)),
            (
                r#"{"action":"accept","content":{"allow":true,"remember":"once"}}"#,
                Some(Extent::Once),
            ),
            (r#"{"action":"accept","content":{"allow":true,"remember":"tool"}}"#, item),
            (
                r#"{"action":"accept","content":{"allow":true,"remember":"server"}}"#,
                Some(Extent::Once),
            ),
            (
                r#"{"action":"accept","content":{"allow":true,"remember":"always"}}"#,
                Some(Extent::Once),
            ),
            (r#"{"action":"accept","content":{"allow":true,"remember":7}}"#, Some(Extent::Once)),
            (r#"{"action":"accept","content":{"allow":false,"remember":"tool"}}"#, None),
            (r#"{"action":"accept","content":{"allow":"true"}}"#, None),
            (r#"{"action":"accept","content":{"remember":"tool"}}"#, None),
            (r#"{"action":"accept"}"#, None),
            (r#"{"action":"decline","content":{"allow":true}}"#, None),
            (r#"{"action":"cancel"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(answer(&json(said), &question(some.clone())), expected, "{said}");
        }
    }
}

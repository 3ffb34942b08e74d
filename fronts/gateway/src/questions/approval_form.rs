//! The approval question for a call, as a form that a client shows.

use capstan_hub::approvals::{Extent, Layout, Span, Width};
use capstan_hub::ports::Question;
use capstan_model::Effect;
use capstan_safety::clean::quotable;
use capstan_wire::{Json, compose, object};

/// Approves only this call.
const ONCE: &str = "once";

/// Approves this tool permanently, in the operator's configuration.
const ALWAYS: &str = "always";

/// Maximum length of arguments in a question to a client, in bytes.
const MAX_ARGUMENTS: usize = 2000;

/// Composes the question as the params of an elicitation.
pub(crate) fn form(question: &Question) -> Json {
    let text = compose::string;
    let message = message(question);
    let offers = &question.offers;
    let allow = compose::object(&[
        ("type", &text("boolean")),
        ("title", &text("Allow this call")),
        ("description", &text("Yes runs the call; any other answer refuses it.")),
    ]);
    let words: Vec<(&str, &str)> = offers.iter().filter_map(|extent| word(*extent)).collect();
    let names: Vec<Json> = words.iter().map(|(name, _)| text(name)).collect();
    let titles: Vec<Json> = words.iter().map(|(_, title)| text(title)).collect();
    // One question for each tool in a session, unless its user chooses otherwise.
    let tool = Width::Item.as_str();
    let default = words.iter().map(|(name, _)| *name).find(|name| *name == tool).unwrap_or(ONCE);
    let remember = compose::object(&[
        ("type", &text("string")),
        ("title", &text("And from now on")),
        ("enum", &compose::array(&names)),
        ("enumNames", &compose::array(&titles)),
        ("default", &text(default)),
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

/// The question as text.
///
/// The caller's text comes last and on its own line, so that it cannot be confused with Capstan's
/// text.
fn message(question: &Question) -> String {
    let Question { id, kind, effect, rule, open, .. } = question;
    let effect = match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Unknown => "call of unknown effect",
    };
    let arguments = question.shown_arguments(Layout::Line(MAX_ARGUMENTS));
    let all = match open {
        Some(open) if arguments.shortened => {
            format!(" `capstan approvals show {open}` shows all of them.")
        }
        Some(_) | None => String::new(),
    };
    format!(
        "Capstan asks: may the {} `{}` of the server `{}` run? It is a {effect}. Rule: {}. \
         Arguments: {}, SHA-256 {}.{all}\n│ {}",
        kind.as_str(),
        quotable(&id.item),
        id.server,
        quotable(rule),
        arguments.summary(),
        arguments.sha256,
        arguments.text,
    )
}

/// The extent of the approval in a client's answer; `None` for a refusal.
///
/// An extent that was not offered counts as `ONCE`.
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

/// The value and the title of an extent; `None` for extents that clients are not offered.
fn word(extent: Extent) -> Option<(&'static str, &'static str)> {
    let title = match extent {
        Extent::Once => return Some((ONCE, "Ask again next time")),
        Extent::Wider(Width::Item, Span::Saved) => {
            return Some((ALWAYS, "Always allow this tool, for every client"));
        }
        // Wider rules than that are set in the configuration or in a shell.
        Extent::Wider(_, Span::Saved) => return None,
        Extent::Wider(Width::Item, Span::Session) => "Allow this tool for this session",
        Extent::Wider(Width::Arguments, Span::Session) => {
            "Allow this tool with these arguments for this session"
        }
        Extent::Wider(Width::ServerReads, Span::Session) => {
            "Allow all reads of this server for this session"
        }
        Extent::Wider(Width::Server, Span::Session) => {
            "Allow all calls of this server for this session"
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
            open: Some("k7f2".to_owned()),
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
    fn the_form_remembers_the_tool_for_the_session_unless_its_user_chooses_otherwise() {
        let default = |offers| {
            let form = form(&question(offers));
            object::at_path(&form, "requestedSchema.properties.remember.default")
                .map(|default| default.to_string())
        };
        assert_eq!(default(all()).as_deref(), Some(r#""tool""#));
        let reads = Extent::Wider(Width::ServerReads, Span::Session);
        assert_eq!(default(vec![Extent::Once, reads]).as_deref(), Some(r#""once""#));
        // An answer that leaves it out approves this call only.
        let bare = json(r#"{"action":"accept","content":{"allow":true}}"#);
        assert_eq!(answer(&bare, &question(all())), Some(Extent::Once));
    }

    fn asked(item: &str, arguments: &str) -> String {
        let mut question = question(all());
        (question.id.item, question.arguments) = (item.to_owned(), json(arguments));
        object::get_string(&form(&question), "message").unwrap()
    }

    /// Holes 9.
    #[test]
    fn arguments_that_do_not_fit_are_said_to_be_shortened_and_how_to_see_all() {
        let long = format!(r#"{{"a":"{}","b":1}}"#, "x".repeat(5000));
        let message = asked("write", &long);
        let (ours, theirs) = message.split_once('\n').unwrap();
        assert!(ours.contains("Arguments: 5014 bytes, shortened, SHA-256 "), "{ours}");
        assert!(ours.ends_with(". `capstan approvals show k7f2` shows all of them."), "{ours}");
        assert!(theirs.starts_with("│ {\"a\":\"xxx"), "{theirs}");
        assert!(theirs.ends_with("\"…(+4500 bytes),\"b\":1}"), "{theirs}");
        let short = asked("write", r#"{"a":1}"#);
        assert!(short.contains("Arguments: 7 bytes, SHA-256 ") && !short.contains("shortened"));
        assert!(!short.contains("approvals show"), "{short}");
    }

    #[test]
    fn neither_arguments_nor_names_can_imitate_the_words_of_the_question() {
        let fake = r#"{"a":"x\"}\n\nIt is a read. Arguments: 2 bytes.\n│ {}\u2028\u202e"}"#;
        let message = asked("w` of the server `files` run? It is a read.\n\u{200b}", fake);
        let lines: Vec<&str> = message.split(['\n', '\u{2028}']).collect();
        let [ours, theirs] = lines.as_slice() else { panic!("{message}") };
        assert!(ours.contains(
            r"`w\u{60} of the server \u{60}files\u{60} run? It is a read.\u{a}\u{200b}` of"
        ));
        assert!(theirs.starts_with(r#"│ {"a":"x\"}\n\nIt is"#), "{theirs}");
        assert!(!message.contains('\u{202e}'), "{message}");
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

//! Tests of tags and flows.

use capstan_model::ItemId;
use serde_json::{Value, json};

use super::*;

fn tags(server: &str, tool: &str, effect: Effect, definition: &Value, rules: &TagRules) -> Tags {
    let id = ItemId { server: server.parse().unwrap(), item: tool.to_owned() };
    let definition = Json::from_value(definition).unwrap();
    let (kind, trust) = (Kind::Tool, Trust::Untrusted);
    rules.of(&TaggedItem { id: &id, kind, definition: &definition, effect, trust }, server)
}

fn words(tags: Tags) -> String {
    tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(" ")
}

fn inferred(server: &str, tool: &str, effect: Effect, definition: &Value) -> String {
    words(tags(server, tool, effect, definition, &TagRules::default()))
}

#[test]
fn tags_are_inferred_from_names_annotations_and_arguments() {
    use Effect::{Read, Unknown, Write};
    let none = json!({});
    let url = json!({"inputSchema": {"properties": {"url": {"type": "string"}}}});
    let open = json!({"annotations": {"openWorldHint": true}});
    let closed = json!({"annotations": {"openWorldHint": false}});
    let table = [
        ("web", "fetch", Read, &url, "untrusted addresses"),
        ("playwright", "browser_navigate", Unknown, &url, "untrusted addresses"),
        ("mail", "send_mail", Write, &none, "sends"),
        ("mail", "read_mail", Read, &none, "untrusted private"),
        ("gh", "create_issue", Write, &none, "sends"),
        ("gh", "list_issues", Read, &none, "untrusted"),
        ("fs", "read_file", Read, &none, "private"),
        ("fs", "write_file", Write, &none, ""),
        ("box", "run_command", Unknown, &none, "private sends"),
        ("math", "add", Read, &none, ""),
        ("math", "add", Write, &open, "sends"),
        ("math", "add", Read, &open, "untrusted"),
        // A server that nobody trusts does not talk itself out of a tag.
        ("mail", "send_mail", Write, &closed, "sends"),
        ("web", "fetch", Read, &closed, "untrusted"),
    ];
    for (server, tool, effect, definition, expected) in table {
        assert_eq!(inferred(server, tool, effect, definition), expected, "{server} {tool}");
    }
}

#[test]
fn a_tool_elsewhere_that_does_more_than_read_sends_its_arguments_out() {
    let of = |place, effect| {
        let rules = TagRules { place, ..TagRules::default() };
        words(tags("crm", "update_row", effect, &json!({}), &rules))
    };
    assert_eq!(of(Place::Elsewhere, Effect::Write), "sends");
    assert_eq!(of(Place::Elsewhere, Effect::Unknown), "private sends");
    assert_eq!(of(Place::Elsewhere, Effect::Read), "private");
    assert_eq!(of(Place::Here, Effect::Write), "");
}

#[test]
fn only_a_trusted_server_can_say_that_its_world_is_closed() {
    let closed = Json::from_value(&json!({"annotations": {"openWorldHint": false}})).unwrap();
    let id = ItemId { server: "mail".parse().unwrap(), item: "send_mail".to_owned() };
    let (kind, effect) = (Kind::Tool, Effect::Write);
    let of = |trust| {
        let item = TaggedItem { id: &id, kind, definition: &closed, effect, trust };
        words(TagRules::default().of(&item, "mail"))
    };
    assert_eq!((of(Trust::Trusted), of(Trust::Untrusted)), (String::new(), "sends".to_owned()));
    assert_eq!(of(Trust::Sandboxed), "sends");
}

#[test]
fn lists_of_the_operator_replace_what_is_inferred_and_those_of_a_project_add_to_it() {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (untrusted, sends) = (owned(&[]), owned(&["get_*"]));
    let of = |lists, tool, effect| {
        let given = [Some(&*untrusted), None, Some(&*sends)];
        let rules = TagRules::new(given, lists, Place::Here).unwrap();
        words(tags("mail", tool, effect, &json!({}), &rules))
    };
    assert_eq!(of(ListedTags::Replace, "get_mail", Effect::Read), "private sends");
    assert_eq!(of(ListedTags::Replace, "send_mail", Effect::Write), "");
    assert_eq!(of(ListedTags::Add, "get_mail", Effect::Read), "untrusted private sends");
    assert_eq!(of(ListedTags::Add, "send_mail", Effect::Write), "sends");
    assert!(
        TagRules::new([Some(&["[".to_owned()]), None, None], ListedTags::Add, Place::Here).is_err()
    );
}

#[test]
fn resources_are_tagged_by_their_scheme_and_prompts_not_at_all() {
    let of = |kind, uri: &str| {
        let id = ItemId { server: "s".parse().unwrap(), item: uri.to_owned() };
        let (definition, effect) = (Json::empty_object(), Effect::Read);
        let trust = Trust::Trusted;
        let item = TaggedItem { id: &id, kind, definition: &definition, effect, trust };
        words(TagRules::default().of(&item, "s"))
    };
    assert_eq!(of(Kind::Resource, "https://a.example/x"), "untrusted");
    assert_eq!(of(Kind::Resource, "FILE:///home/x"), "private");
    assert_eq!(of(Kind::Resource, "demo://1"), "");
    assert_eq!(of(Kind::Prompt, "send_mail"), "");
}

#[test]
fn a_rule_meets_only_calls_that_end_its_flow() {
    let deny = FlowAction::Deny;
    let rules = FlowRules { untrusted_then_send: deny, private_then_send: FlowAction::Ask };
    let met = |rules: FlowRules, tags: &[Tag]| {
        let tags = tags.iter().fold(Tags::NONE, |all, tag| all.with(*tag));
        rules.ending_with(tags).map(|(flow, verdict)| (flow.key(), verdict)).collect::<Vec<_>>()
    };
    let both =
        [("flows.untrusted_then_send", Verdict::Deny), ("flows.private_then_send", Verdict::Ask)];
    assert_eq!(met(rules, &[Tag::Sends]), both);
    assert_eq!(met(rules, &[Tag::Addresses]), both[1..]);
    assert_eq!(met(rules, &[Tag::Untrusted, Tag::Private]), []);
    assert_eq!(met(FlowRules::default(), &[Tag::Sends, Tag::Addresses]), []);
    assert!(rules.are_on() && !FlowRules::default().are_on());
    assert!(Flow::is_rule(
        &Flow::PrivateThenSend
            .ruling(Verdict::Ask, &ItemId { server: "s".parse().unwrap(), item: "t".to_owned() })
            .rule
    ));
    assert!(!Flow::is_rule("permissions.deny"));
}

#[test]
fn tags_survive_storage() {
    for bits in 0..=15 {
        assert_eq!(Tags::from_bits(bits).bits(), bits);
    }
    assert_eq!(Tags::from_bits(0b1001_0001), Tags::NONE.with(Tag::Untrusted));
}

//! Tests of the map of URIs: equal URIs, templates, forged forms, skills, streams.

use super::*;

fn server(name: &str) -> ServerName {
    name.parse().unwrap()
}

fn list(names: &[&str]) -> Arc<[Item]> {
    let item = |name: &&str| Item { name: (*name).to_owned(), definition: Json::empty_object() };
    names.iter().map(item).collect()
}

/// A map that learned these lists in this order.
fn learned(lists: &[(Listing, &str, &[&str])]) -> Uris {
    let uris = Uris::default();
    for (listing, name, names) in lists {
        uris.learn(*listing, &server(name), &list(names));
    }
    uris
}

fn shown(uris: &Uris, name: &str, uri: &str) -> String {
    uris.shown(&server(name), uri).unwrap_or_else(|| uri.to_owned())
}

fn owner(uris: &Uris, uri: &str) -> String {
    uris.resolve(uri).map_or_else(String::new, |id| format!("{} {}", id.server, id.item))
}

const RESOURCES: Listing = Listing::Resources;
const TEMPLATES: Listing = Listing::Templates;

#[test]
fn a_uri_that_two_servers_have_is_shown_twice_and_leads_to_both() {
    let uris = learned(&[(RESOURCES, "a", &["f://x"]), (RESOURCES, "b", &["f://x"])]);
    assert_eq!(shown(&uris, "a", "f://x"), "f://x");
    assert_eq!(shown(&uris, "b", "f://x"), "capstan://b/f://x");
    assert_eq!(owner(&uris, "f://x"), "a f://x");
    assert_eq!(owner(&uris, "capstan://b/f://x"), "b f://x");
}

#[test]
fn whatever_a_server_shows_leads_back_to_it_and_goes_on_doing_so() {
    // Each row: what `good` has, what `evil` says, before or after.
    let rows: &[[&[&str]; 4]] = &[
        [&["ui://clock/app.html"], &[], &["ui://clock/app.html"], &[]],
        [&["f://x"], &[], &["capstan://good/f://x"], &[]],
        [&["ui://x"], &[], &["ui://good.capstan/x"], &[]],
        [&[], &["note://{id}"], &["note://1"], &[]],
        [&[], &["note://{id}"], &[], &["note://1{rest}"]],
        [&[], &["note://{id}"], &[], &["{+any}"]],
        [&["note://1"], &[], &[], &["note://{id}"]],
        [&["note://1"], &[], &[], &["note://{id}", "{+any}", "capstan://good/{+any}"]],
    ];
    for [resources, templates, evil, evil_templates] in rows {
        let good: &[_] = &[(RESOURCES, "good", *resources), (TEMPLATES, "good", *templates)];
        let bad: &[_] = &[(RESOURCES, "evil", *evil), (TEMPLATES, "evil", *evil_templates)];
        let own = ["f://x", "ui://x", "ui://clock/app.html", "note://1", "note://12", "new://1"];
        for order in [[good, bad], [bad, good]] {
            let uris = learned(&order.concat());
            for uri in own {
                for name in ["good", "evil"] {
                    let seen = shown(&uris, name, uri);
                    assert_eq!(owner(&uris, &seen), format!("{name} {uri}"), "{seen}");
                }
            }
            for forged in ["capstan://good/f://x", "ui://good.capstan/x", "capstan://good/new://1"]
            {
                let seen = shown(&uris, "evil", forged);
                assert_eq!(owner(&uris, &seen), format!("evil {forged}"));
                assert!(owner(&uris, forged).starts_with("good "), "{forged}");
            }
        }
        // A URI that was shown before stays, whatever is listed afterwards.
        let uris = learned(good);
        let before: Vec<String> = own.iter().map(|uri| shown(&uris, "good", uri)).collect();
        for (listing, name, items) in bad {
            uris.learn(*listing, &server(name), &list(items));
        }
        for (uri, seen) in own.iter().zip(&before) {
            assert_eq!(owner(&uris, seen), format!("good {uri}"), "{seen}");
        }
    }
}

#[test]
fn a_template_that_overlaps_with_another_servers_is_shown_with_its_server() {
    let uris =
        learned(&[(TEMPLATES, "a", &["f://{x}"]), (TEMPLATES, "b", &["f://{y}.md", "g://{y}"])]);
    let template = |name: &str, text: &str| uris.shown_template(&server(name), text);
    assert_eq!(template("a", "f://{x}"), None);
    assert_eq!(template("b", "f://{y}.md").as_deref(), Some("capstan://b/f://{y}.md"));
    assert_eq!(template("b", "g://{y}"), None);
    assert_eq!(owner(&uris, "f://1.md"), "a f://1.md");
    assert_eq!(owner(&uris, "capstan://b/f://1.md"), "b f://1.md");
    assert_eq!(
        (owner(&uris, "g://1"), owner(&uris, "g://{y}")),
        ("b g://1".into(), "b g://{y}".into())
    );
}

#[test]
fn a_uri_that_is_not_listed_belongs_to_the_only_server_with_resources() {
    let uris = learned(&[(RESOURCES, "a", &["f://x"])]);
    assert_eq!(owner(&uris, "g://1"), "a g://1");
    uris.learn(TEMPLATES, &server("b"), &list(&["h://{x}"]));
    assert_eq!(owner(&uris, "g://1"), "");
}

#[test]
fn links_to_web_pages_stay_unless_a_server_lists_them() {
    let uris = learned(&[(RESOURCES, "a", &["https://a.example/x"])]);
    for link in ["https://a.example/", "HTTP://b.example", "data:text/plain,x"] {
        assert_eq!((shown(&uris, "a", link), shown(&uris, "b", link)), (link.into(), link.into()));
    }
    assert_eq!(shown(&uris, "b", "https://a.example/x"), "capstan://b/https://a.example/x");
}

#[test]
fn the_page_of_a_tool_belongs_to_its_server_even_if_it_is_not_listed() {
    let tool = |page: &str| -> Arc<[Item]> {
        let text = format!(r#"{{"name":"t","_meta":{{"ui":{{"resourceUri":"{page}"}},"x":1.0}}}}"#);
        [Item { name: "t".to_owned(), definition: Json::parse(text).unwrap() }].into()
    };
    let uris = Uris::default();
    let own = tool("ui://app");
    uris.learn(Listing::Tools, &server("a"), &own);
    uris.learn(Listing::Tools, &server("b"), &own);
    uris.learn(RESOURCES, &server("b"), &list(&["ui://app"]));
    assert_eq!(owner(&uris, "ui://app"), "a ui://app");
    assert_eq!(uris.shown_in(&server("a"), &own[0].definition, TOOL), None);
    let seen = uris.shown_in(&server("b"), &own[0].definition, TOOL).unwrap();
    assert_eq!(seen.as_str(), tool("ui://b.capstan/app")[0].definition.as_str());
}

#[test]
fn the_files_of_a_skill_are_shown_in_one_form() {
    let skill = |at: &str| {
        let text = format!(
            r#"{{"uri":"{at}/SKILL.md","frontmatter":{{"name":"pdf","uri":"x"}},"resources":[{{"uri":"{at}/SKILL.md"}},{{"uri":"{at}/a/b.md","size":1}}]}}"#
        );
        Json::parse(text).unwrap()
    };
    let uris = Uris::default();
    let own = skill("skill://pdf");
    assert_eq!(uris.shown_skill(&server("a"), &own), None);
    assert_eq!(uris.shown_skill(&server("b"), &own), Some(skill("skill://b.capstan/pdf")));
    assert_eq!(owner(&uris, "skill://pdf/a/other.md"), "a skill://pdf/a/other.md");
    let uris = learned(&[(RESOURCES, "evil", &["skill://pdf/a/b.md"])]);
    assert_eq!(uris.shown_skill(&server("a"), &own), Some(skill("skill://a.capstan/pdf")));
}

#[test]
fn a_server_that_is_removed_gives_up_what_it_owned() {
    let uris = learned(&[(RESOURCES, "a", &["f://x"]), (RESOURCES, "b", &["f://x"])]);
    let kept = uris.then([server("a"), server("b")]);
    kept.learn(RESOURCES, &server("b"), &list(&["f://x"]));
    assert_eq!(owner(&kept, "f://x"), "a f://x");
    let after = uris.then([server("b")]);
    after.learn(RESOURCES, &server("b"), &list(&["f://x"]));
    assert_eq!(owner(&after, "f://x"), "b f://x");
}

#[test]
fn a_server_owns_only_so_many_uris_and_the_rest_still_leads_to_it() {
    let uris = Uris::default();
    for number in 0..=MAX_OWNED {
        uris.shown(&server("a"), &format!("f://{number}"));
    }
    let last = shown(&uris, "a", &format!("f://{MAX_OWNED}"));
    assert_eq!(last, format!("capstan://a/f://{MAX_OWNED}"));
    assert_eq!(owner(&uris, &last), format!("a f://{MAX_OWNED}"));
}

#[test]
fn a_streamed_answer_is_rewritten_like_a_whole_one() {
    let uris = Arc::new(learned(&[(RESOURCES, "a", &["f://x"]), (RESOURCES, "b", &["f://x"])]));
    let text = r#"{"content":[{"type":"resource_link","uri":"f://x"},{"type":"text","text":"f://x"}],"structuredContent":{"uri":"f://x"},"contents":[{"uri":"f:\/\/x","blob":"AA=="}]}"#;
    let shown = text
        .replacen(r#""uri":"f://x""#, r#""uri":"capstan://b/f://x""#, 1)
        .replace(r#""f:\/\/x""#, r#""capstan://b/f://x""#);
    let result = Json::parse(text).unwrap();
    assert_eq!(uris.shown_result(&server("a"), &result), None);
    assert_eq!(uris.shown_result(&server("b"), &result).unwrap().as_str(), shown);
    for size in [1, 2, 7, 64, 1000] {
        for (name, expected) in [("a", text), ("b", &shown)] {
            let mut streamed = StreamedUris::new(&uris, &server(name));
            let pieces = text.as_bytes().chunks(size).map(Bytes::copy_from_slice);
            let out: Vec<Bytes> = pieces.map(|piece| streamed.push(piece)).collect();
            assert_eq!(out.concat(), expected.as_bytes(), "{name} {size}");
        }
    }
}

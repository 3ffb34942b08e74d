//! Formats an MCP result for a person: text as text, everything else as a one-line description.

mod pretty;
mod single_content;

use capstan_model::Kind;
use capstan_wire::{Json, object};

pub use self::single_content::{Attachment, attachments, sole_part};

use self::pretty::pretty;
use crate::clean::one_line;
use capstan_safety::clean::clean;

/// Maximum length of the excerpt of an unknown block.
const MAX_EXCERPT: usize = 200;

/// Maximum length of an address, title or type in a line of ours.
const MAX_WORD: usize = 500;

/// Formats a result, safe for a terminal and without a newline at the end.
pub fn text(kind: Kind, result: &Json) -> String {
    let text = match kind {
        Kind::Tool => tool(result),
        Kind::Resource => resource(result),
        Kind::Prompt => prompt(result),
    };
    clean(&text).trim_end_matches('\n').to_owned()
}

/// The blocks of a `tools/call` result, or its structured content if there are no blocks.
fn tool(result: &Json) -> String {
    let content = list(result, "content");
    let has_blocks = content.as_ref().is_some_and(|blocks| !blocks.is_empty());
    match (content, object::get(result, "structuredContent")) {
        (Some(content), _) if has_blocks => blocks(&content),
        (_, Some(structured)) => pretty(&structured),
        (Some(_), None) => String::new(),
        (None, None) => pretty(result),
    }
}

/// The text of a `tools/call` result as the server wrote it, for a file.
pub fn plain_text(result: &Json) -> String {
    let blocks = list(result, "content").unwrap_or_default();
    let texts: Vec<String> =
        blocks.iter().filter_map(|block| object::get_string(block, "text")).collect();
    match (texts.is_empty(), object::get(result, "structuredContent")) {
        (false, _) => texts.join("\n"),
        (true, Some(structured)) => structured.as_str().to_owned(),
        (true, None) => result.as_str().to_owned(),
    }
}

/// The address of the next page, if the result is a page of a long answer and not its last.
pub fn next_page(result: &Json) -> Option<String> {
    let page = object::get(&object::get(result, "_meta")?, "capstan/page")?;
    let next = object::get_string(&page, "next")?;
    next.starts_with("capstan://answers/").then_some(next)
}

/// The parts of a `resources/read` result.
fn resource(result: &Json) -> String {
    let Some(contents) = list(result, "contents") else { return pretty(result) };
    let parts = contents.iter().map(|part| part_of_resource(part, heads(&contents)));
    join(parts)
}

/// The messages of a `prompts/get` result, each with its role.
fn prompt(result: &Json) -> String {
    let Some(messages) = list(result, "messages") else { return pretty(result) };
    let message = |message: &Json| {
        let role = word(message, "role").unwrap_or_else(|| "?".to_owned());
        let text = match object::get(message, "content") {
            // The content of a message is one block by specification, but some servers send
            // several.
            Some(content) => match object::items(&content) {
                Ok(several) => blocks(&several),
                Err(_) => block(&content, Heads::Hidden),
            },
            None => excerpt("message", message),
        };
        format!("{role}: {text}")
    };
    join(messages.iter().map(message))
}

/// Shows or hides the address above embedded text.
#[derive(Clone, Copy)]
enum Heads {
    Shown,
    Hidden,
}

/// Shows addresses only if there are several parts, which the reader must tell apart.
fn heads(blocks: &[Json]) -> Heads {
    if blocks.len() > 1 { Heads::Shown } else { Heads::Hidden }
}

fn blocks(content: &[Json]) -> String {
    join(content.iter().map(|piece| block(piece, heads(content))))
}

fn block(block: &Json, heads: Heads) -> String {
    let Some(kind) = word(block, "type") else { return excerpt("unknown", block) };
    let shown = match kind.as_str() {
        "text" => object::get_string(block, "text"),
        "image" | "audio" => media(&kind, block),
        "resource" => object::get(block, "resource").map(|part| part_of_resource(&part, heads)),
        "resource_link" => link(block),
        _ => None,
    };
    shown.unwrap_or_else(|| excerpt(&kind, block))
}

fn media(kind: &str, block: &Json) -> Option<String> {
    let data = object::get_string(block, "data")?;
    let mime = word(block, "mimeType").unwrap_or_else(|| "unknown type".to_owned());
    Some(format!("[{kind}: {mime}, {}]", size(decoded_len(&data))))
}

fn link(block: &Json) -> Option<String> {
    let uri = word(block, "uri")?;
    let title = word(block, "title").or_else(|| word(block, "name"));
    Some(match title {
        Some(title) => format!("[link: {title} <{uri}>]"),
        None => format!("[link: <{uri}>]"),
    })
}

/// The text of a part, with or without its address, or a line that describes its bytes.
fn part_of_resource(part: &Json, heads: Heads) -> String {
    let uri = word(part, "uri").unwrap_or_else(|| "no address".to_owned());
    let mime = word(part, "mimeType").unwrap_or_else(|| "unknown type".to_owned());
    match (object::get_string(part, "text"), object::get_string(part, "blob"), heads) {
        (Some(text), _, Heads::Shown) => format!("[resource: {uri}]\n{text}"),
        (Some(text), _, Heads::Hidden) => text,
        (None, Some(blob), _) => {
            format!("[resource: {mime}, {}, {uri}]", size(decoded_len(&blob)))
        }
        (None, None, _) => excerpt("resource", part),
    }
}

/// A line with an excerpt of an unknown block.
fn excerpt(kind: &str, block: &Json) -> String {
    format!("[{kind}: {}]", one_line(block.as_str(), MAX_EXCERPT))
}

/// A string member, reduced to one line so that it cannot break out of the line it is shown in.
fn word(json: &Json, key: &str) -> Option<String> {
    let word = one_line(&object::get_string(json, key)?, MAX_WORD);
    (!word.is_empty()).then_some(word)
}

fn list(json: &Json, key: &str) -> Option<Vec<Json>> {
    object::items(&object::get(json, key)?).ok()
}

/// Joins pieces with newlines.
fn join(pieces: impl Iterator<Item = String>) -> String {
    pieces.collect::<Vec<String>>().join("\n")
}

/// The number of bytes that a base64 text encodes.
fn decoded_len(base64: &str) -> usize {
    let is_digit = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'=';
    base64.bytes().filter(is_digit).count() * 3 / 4
}

/// A number of bytes in readable units.
pub fn size(bytes: usize) -> String {
    const KIB: usize = 1024;
    const MIB: usize = 1024 * KIB;
    // Computed in tenths, to avoid rounding of floats.
    let tenths = |unit: usize| (bytes * 10).div_ceil(unit);
    let in_unit = |tenths: usize, name: &str| format!("{}.{} {name}", tenths / 10, tenths % 10);
    match bytes {
        ..KIB => format!("{bytes} B"),
        KIB..MIB => in_unit(tenths(KIB), "KiB"),
        MIB.. => in_unit(tenths(MIB), "MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, result: &str, shown: &str) {
        assert_eq!(text(kind, &Json::parse(result.to_owned()).unwrap()), shown, "{result}");
    }

    #[track_caller]
    fn check_blocks(blocks: &str, shown: &str) {
        check(Kind::Tool, &format!(r#"{{"content":[{blocks}]}}"#), shown);
    }

    #[test]
    fn text_blocks_stand_under_each_other() {
        check_blocks(r#"{"type":"text","text":"one"},{"type":"text","text":"two\n"}"#, "one\ntwo");
        check_blocks("", "");
    }

    #[test]
    fn what_is_no_text_is_named() {
        check_blocks(
            r#"{"type":"image","mimeType":"image/png","data":"AAAAAAA="}"#,
            "[image: image/png, 5 B]",
        );
        let data = "A".repeat(16384);
        check_blocks(
            &format!(r#"{{"type":"audio","data":"{data}"}}"#),
            "[audio: unknown type, 12.0 KiB]",
        );
        check_blocks(
            r#"{"type":"resource_link","uri":"file:///a","name":"a","title":"The A"}"#,
            "[link: The A <file:///a>]",
        );
        check_blocks(r#"{"type":"resource_link","uri":"file:///a"}"#, "[link: <file:///a>]");
        check_blocks(
            r#"{"type":"resource","resource":{"uri":"x:b","mimeType":"a/b","blob":"AAAA"}}"#,
            "[resource: a/b, 3 B, x:b]",
        );
    }

    #[test]
    fn embedded_text_has_a_head_only_among_others() {
        let part = r#"{"type":"resource","resource":{"uri":"file:///a","text":"inside"}}"#;
        check_blocks(part, "inside");
        check_blocks(&format!("{part},{part}"), {
            "[resource: file:///a]\ninside\n[resource: file:///a]\ninside"
        });
    }

    #[test]
    fn structured_content_speaks_where_no_block_does() {
        let number = "123456789012345678901234567890.10";
        check(
            Kind::Tool,
            &format!(r#"{{"content":[],"structuredContent":{{"n":{number}}}}}"#),
            &format!("{{\n  \"n\": {number}\n}}"),
        );
        check(Kind::Tool, r#"{"structuredContent":{}}"#, "{}");
        check(
            Kind::Tool,
            r#"{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}"#,
            "t",
        );
    }

    #[test]
    fn messages_of_a_prompt_have_their_role() {
        check(
            Kind::Prompt,
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}},
                {"role":"assistant","content":[{"type":"text","text":"yes"}]}]}"#,
            "user: hi\nassistant: yes",
        );
    }

    #[test]
    fn the_parts_of_a_resource_are_shown() {
        check(Kind::Resource, r#"{"contents":[{"uri":"x:a","text":"t"}]}"#, "t");
        check(
            Kind::Resource,
            r#"{"contents":[{"uri":"x:a","text":"t"},{"uri":"x:b","blob":"AA=="}]}"#,
            "[resource: x:a]\nt\n[resource: unknown type, 1 B, x:b]",
        );
    }

    #[test]
    fn odd_shapes_are_shown_as_they_are() {
        for kind in [Kind::Tool, Kind::Resource, Kind::Prompt] {
            for odd in ["null", "7", "[]", "\"x\"", "{}", r#"{"content":{}}"#, r#"{"contents":1}"#]
            {
                let json = Json::parse(odd.to_owned()).unwrap();
                assert_eq!(text(kind, &json), pretty(&json), "{odd}");
            }
        }
        check_blocks(
            r#"7,null,{"type":"text"},{"type":"text","text":1}"#,
            "[unknown: 7]\n[unknown: null]\n[text: {\"type\":\"text\"}]\n\
             [text: {\"type\":\"text\",\"text\":1}]",
        );
        check_blocks(r#"{"type":"image"}"#, r#"[image: {"type":"image"}]"#);
        check_blocks(r#"{"type":"resource"}"#, r#"[resource: {"type":"resource"}]"#);
        check_blocks(r#"{"type":"resource_link"}"#, r#"[resource_link: {"type":"resource_link"}]"#);
        check(Kind::Prompt, r#"{"messages":[{},3]}"#, "?: [message: {}]\n?: [message: 3]");
        check(Kind::Resource, r#"{"contents":[{"uri":"x:"}]}"#, r#"[resource: {"uri":"x:"}]"#);
    }

    #[test]
    fn an_unknown_block_is_cut() {
        let long = format!(r#"{{"type":"video","x":"{}"}}"#, "y".repeat(1000));
        let json = Json::parse(format!(r#"{{"content":[{long}]}}"#)).unwrap();
        let shown = text(Kind::Tool, &json);
        assert!(shown.starts_with("[video: {") && shown.ends_with("…]"), "{shown}");
        assert_eq!(shown.chars().count(), "[video: ]".len() + MAX_EXCERPT);
    }

    #[test]
    fn nothing_a_server_writes_reaches_the_terminal_raw() {
        let evil = r"\u001b]0;t\u0007\u202e\u009b";
        let all = [
            format!(r#"{{"type":"text","text":"{evil}"}}"#),
            format!(r#"{{"type":"{evil}"}}"#),
            format!(r#"{{"type":"image","mimeType":"{evil}\n","data":""}}"#),
            format!(r#"{{"type":"resource_link","title":"{evil}\n","uri":"{evil}\n"}}"#),
            format!(r#"{{"type":"resource","resource":{{"uri":"{evil}\n","text":"{evil}"}}}}"#),
            format!(r#"{{"type":"resource","resource":{{"uri":"{evil}\n","blob":""}}}}"#),
        ];
        for block in &all {
            let json = Json::parse(format!(r#"{{"content":[{block}]}}"#)).unwrap();
            let shown = text(Kind::Tool, &json);
            assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}', '\n']), "{shown:?}");
        }
        let structured = "{\"structuredContent\":{\"a\":\"\u{202e}\"}}".to_owned();
        let shown = text(Kind::Tool, &Json::parse(structured).unwrap());
        assert!(!shown.contains('\u{202e}'), "{shown:?}");
    }
}

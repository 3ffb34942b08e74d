//! Formats JSON text on several lines without parsing its values.
//!
//! A parser would change long numbers; here every value keeps its bytes.

use capstan_wire::Json;

/// Formats JSON with one member or item per line, indented by two spaces per level.
pub(crate) fn pretty(json: &Json) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth: usize = 0;
    let mut rest = json.as_str();
    while let Some(c) = rest.chars().next() {
        let length = if c == '"' { string_len(rest) } else { c.len_utf8() };
        let (token, after) = rest.split_at(length);
        rest = after;
        match c {
            '{' | '[' => {
                out.push(c);
                let inner = rest.trim_start();
                if inner.starts_with(['}', ']']) {
                    out.push_str(inner.get(..1).unwrap_or_default());
                    rest = inner.get(1..).unwrap_or_default();
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            _ => out.push_str(token),
        }
    }
    out
}

/// The length of the string at the beginning of `text`, including both quotes.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, shown: &str) {
        assert_eq!(pretty(&Json::parse(json.to_owned()).unwrap()), shown);
    }

    #[test]
    fn every_value_keeps_its_bytes() {
        check(
            r#"{"a":1.000e5,"b":[1, 2],"c":{},"d":[ ],"e":"x: {[,\"\\"}"#,
            "{\n  \"a\": 1.000e5,\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": {},\n  \"d\": [],\n  \
             \"e\": \"x: {[,\\\"\\\\\"\n}",
        );
    }

    #[test]
    fn a_value_alone_stays_as_it_is() {
        for json in ["1", "null", r#""a \" b""#, "{}", "[]", "-0.10"] {
            check(json, json);
        }
    }

    #[test]
    fn laying_out_twice_changes_nothing() {
        let json = r#"[{"a":[[],{"b":"ü\n"}]},"世"]"#;
        let once = pretty(&Json::parse(json.to_owned()).unwrap());
        check(&once, &once);
    }
}

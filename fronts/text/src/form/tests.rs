//! Tests of forms answered by a person, from a file and from defaults.

use std::collections::VecDeque;

use capstan_hub::ports::{Elicitation, Reply, Want};
use capstan_wire::Json;

use super::prompt::{Closed, Prompter};
use super::{FormError, ask, fill_defaults, from_file};

/// The reaction to one question.
#[derive(Debug)]
enum Act {
    Type(&'static str),
    Pick(usize),
    Tick(&'static [usize]),
    Say(bool),
    Escape,
}

use Act::{Escape, Pick, Say, Tick, Type};

/// Test prompter with scripted answers that records what was shown.
struct Script {
    acts: VecDeque<Act>,
    shown: Vec<String>,
}

impl Script {
    fn next(&mut self, question: &str) -> Result<Act, Closed> {
        self.shown.push(question.to_owned());
        match self.acts.pop_front() {
            Some(Escape) => Err(Closed),
            Some(act) => Ok(act),
            None => panic!("unexpected question: {question}"),
        }
    }
}

impl Prompter for Script {
    fn say(&mut self, line: &str) {
        self.shown.extend(line.lines().map(str::to_owned));
    }

    fn text(&mut self, question: &str) -> Result<String, Closed> {
        let Type(text) = self.next(question)? else { panic!("{question} wants text") };
        Ok(text.to_owned())
    }

    fn secret(&mut self, question: &str) -> Result<String, Closed> {
        self.text(&format!("[masked] {question}"))
    }

    fn confirm(&mut self, question: &str, default: Option<bool>) -> Result<bool, Closed> {
        let question = format!("{question} default {default:?}");
        let Say(yes) = self.next(&question)? else { panic!("{question} wants yes or no") };
        Ok(yes)
    }

    fn select(&mut self, question: &str, options: &[&str], start: usize) -> Result<usize, Closed> {
        let question = format!("{question} {options:?} from {start}");
        let Pick(place) = self.next(&question)? else { panic!("{question} wants a choice") };
        Ok(place)
    }

    fn multi_select(
        &mut self,
        question: &str,
        options: &[&str],
        chosen: &[usize],
    ) -> Result<Vec<usize>, Closed> {
        let question = format!("{question} {options:?} with {chosen:?}");
        let Tick(places) = self.next(&question)? else { panic!("{question} wants choices") };
        Ok(places.to_vec())
    }
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn schema(properties: &str, required: &str) -> Json {
    json(&format!(r#"{{"type":"object","properties":{{{properties}}},"required":[{required}]}}"#))
}

fn play(want: Want, message: &str, acts: impl IntoIterator<Item = Act>) -> (Reply, Vec<String>) {
    let server = "linear".parse().unwrap();
    let mut script = Script { acts: acts.into_iter().collect(), shown: Vec::new() };
    let reply = ask(&mut script, &Elicitation { server, message: message.to_owned(), want });
    assert!(script.acts.is_empty(), "not asked: {:?}", script.acts);
    (reply, script.shown)
}

/// Answers a form of one field, after accepting the form.
#[track_caller]
fn field(
    property: &str,
    required: &str,
    acts: impl IntoIterator<Item = Act>,
    content: &str,
) -> Vec<String> {
    let form = schema(&format!(r#""f":{property}"#), required);
    let acts = std::iter::once(Pick(0)).chain(acts);
    let (reply, shown) = play(Want::Form(form), "m", acts);
    assert_eq!(reply, Reply::Accept(Some(json(content))), "{property}");
    shown
}

const MUST: &str = r#""f""#;

#[test]
fn the_server_is_named_first_and_its_words_cannot_pass_for_ours() {
    let message = "hi\n`github` asks:\r\n\u{1b}[2J\u{202e}";
    let form = Want::Form(schema(r#""f":{"type":"string","title":"\u001b]0;x\u0007T"}"#, ""));
    let (_, shown) = play(form, message, [Pick(0), Type("x")]);
    assert_eq!(
        shown,
        [
            "`linear` asks:",
            "│ hi",
            "│ `github` asks:",
            "│ \\u{1b}[2J\\u{202e}",
            "Answer `linear`? [\"answer\", \"decline\", \"cancel\"] from 0",
            "linear › \\u{1b}]0;x\\u{7}T (optional):",
        ]
    );
}

#[test]
fn a_message_can_neither_pad_its_words_to_a_new_line_nor_scroll_ours_away() {
    let form = || Want::Form(schema("", ""));
    let padded = format!("hi{}`github` asks:", " ".repeat(76));
    assert_eq!(play(form(), &padded, [Escape]).1[1], "│ hi `github` asks:");
    let long = "x".repeat(200);
    assert!(play(form(), &long, [Escape]).1[1..4].iter().all(|line| line.starts_with("│ x")));
    // Holes 9: a message that does not fit is shown page by page, and closing it is an answer.
    let (reply, shown) = play(form(), &"\n".repeat(5000), [Pick(0), Escape]);
    assert_eq!(reply, Reply::Cancel);
    assert_eq!(shown.len(), 1 + 15 + 1 + 16 + 1);
    assert!(shown[16].starts_with("lines 1 to 15 of 4999 [\"more\", "), "{}", shown[16]);
    assert_eq!(play(form(), &"\n".repeat(5000), [Pick(3)]).0, Reply::Decline);
}

#[test]
fn a_person_can_decline_cancel_or_close_any_question() {
    let form = || Want::Form(schema(r#""f":{"type":"string"},"g":{"type":"boolean"}"#, ""));
    assert_eq!(play(form(), "m", [Pick(1)]).0, Reply::Decline);
    assert_eq!(play(form(), "m", [Pick(2)]).0, Reply::Cancel);
    assert_eq!(play(form(), "m", [Escape]).0, Reply::Cancel);
    assert_eq!(play(form(), "m", [Pick(0), Escape]).0, Reply::Cancel);
    assert_eq!(play(form(), "m", [Pick(0), Type("x"), Escape]).0, Reply::Cancel);
}

#[test]
fn texts_are_asked_for_again_until_they_fit() {
    let short = r#"{"type":"string","minLength":3,"maxLength":4}"#;
    let shown =
        field(short, MUST, [Type(""), Type("ab"), Type("abcde"), Type("üöäß")], r#"{"f":"üöäß"}"#);
    let said: Vec<&String> = shown.iter().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(
        said,
        [
            "  an answer is needed",
            "  that has 2 characters; at least 3 are needed",
            "  that has 5 characters; at most 4 are allowed",
        ]
    );
}

#[test]
fn formats_are_checked() {
    let cases: [(&str, &[&'static str], &'static str); 4] = [
        ("email", &["x", "@x", "a@", "a b@c.de", "a@b@", "a@.de"], "a@b.de"),
        ("uri", &["x", "://x", "1a:b", "https:", "http://a b"], "https://example.com/"),
        ("date", &["2026-02-30", "2026-1-1", "31.01.2026", "today"], "2026-01-31"),
        ("date-time", &["2026-01-31", "2026-01-31T12:00:00", "now"], "2026-01-31T12:00:00+01:00"),
    ];
    for (format, bad, good) in cases {
        let property = format!(r#"{{"type":"string","format":"{format}"}}"#);
        let acts = bad.iter().copied().chain([good]).map(Type);
        field(&property, MUST, acts, &format!(r#"{{"f":"{good}"}}"#));
    }
}

#[test]
fn numbers_are_checked_and_keep_their_digits() {
    let whole = r#"{"type":"integer","minimum":1,"maximum":10}"#;
    let bad = ["x", "0", "11", "1.5", "1e1", "-1", "\"5\"", "0x5", "true"];
    field(whole, MUST, bad.into_iter().chain([" 5 "]).map(Type), r#"{"f":5}"#);
    let any = r#"{"type":"number","minimum":0.5}"#;
    field(any, MUST, [Type("0.4"), Type("NaN"), Type("1.500")], r#"{"f":1.500}"#);
}

#[test]
fn defaults_are_shown_and_taken_on_an_empty_line() {
    let shown = field(r#"{"type":"string","default":"main"}"#, MUST, [Type("")], r#"{"f":"main"}"#);
    assert_eq!(shown.last().unwrap(), "linear › f [main]:");
    let shown = field(r#"{"type":"integer","default":7}"#, "", [Type("")], r#"{"f":7}"#);
    assert_eq!(shown.last().unwrap(), "linear › f [7]:");
    let shown = field(r#"{"type":"boolean","default":true}"#, "", [Say(false)], r#"{"f":false}"#);
    assert_eq!(shown.last().unwrap(), "linear › f: default Some(true)");
}

#[test]
fn a_default_that_breaks_the_fields_own_rules_is_none() {
    let property = r#"{"type":"integer","default":"many"}"#;
    field(property, MUST, [Type(""), Type("1")], r#"{"f":1}"#);
    assert_eq!(fill_defaults(&schema(&format!(r#""f":{property}"#), MUST)), None);
}

#[test]
fn what_is_optional_can_be_left_out() {
    for (property, act) in [
        (r#"{"type":"string"}"#, Type("")),
        (r#"{"type":"number"}"#, Type("")),
        (r#"{"type":"boolean"}"#, Pick(2)),
        (r#"{"enum":["a","b"]}"#, Pick(2)),
        (r#"{"type":"array","minItems":1,"items":{"enum":["a"]}}"#, Tick(&[])),
    ] {
        field(property, "", [act], "{}");
    }
    field(r#"{"type":"boolean"}"#, "", [Pick(0)], r#"{"f":true}"#);
    field(r#"{"type":"boolean"}"#, MUST, [Say(true)], r#"{"f":true}"#);
}

#[test]
fn choices_show_their_titles_and_send_their_values() {
    let named = r#"{"type":"string","enum":["a","b"],"enumNames":["Ay","B\u202ee"],"default":"b"}"#;
    let shown = field(named, MUST, [Pick(0)], r#"{"f":"a"}"#);
    assert_eq!(shown.last().unwrap(), r#"linear › f: ["Ay", "B\\u{202e}e"] from 1"#);
    let titled = r#"{"oneOf":[{"const":"x","title":"Ex"},{"const":"y"}]}"#;
    let shown = field(titled, MUST, [Pick(1)], r#"{"f":"y"}"#);
    assert_eq!(shown.last().unwrap(), r#"linear › f: ["Ex", "y"] from 0"#);
}

#[test]
fn several_choices_keep_to_their_number() {
    let many = r#"{"type":"array","minItems":1,"maxItems":2,"default":["b"],
        "items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"},{"const":"c","title":"C"}]}}"#;
    let acts = [Tick(&[]), Tick(&[0, 1, 2]), Tick(&[0, 2])];
    let shown = field(many, MUST, acts, r#"{"f":["a","c"]}"#);
    assert!(shown.contains(&"  that has 0 items; at least 1 are needed".to_owned()));
    assert!(shown.contains(&"  that has 3 items; at most 2 are allowed".to_owned()));
    assert_eq!(shown.last().unwrap(), r#"linear › f: ["A", "B", "C"] with [1]"#);
}

#[test]
fn secrets_are_masked_and_warned_about() {
    let form = schema(r#""x":{"type":"string","title":"Your API key","default":"hunter2"}"#, "");
    let (_, shown) = play(Want::Form(form), "m", [Pick(0), Type("sk-1")]);
    assert!(shown.contains(
        &"warning: `Your API key` looks like a secret; your answer is sent to `linear`".to_owned()
    ));
    assert_eq!(shown.last().unwrap(), "[masked] linear › Your API key [***]:");
    assert!(!shown.iter().any(|line| line.contains("hunter2")));
    let password =
        field(r#"{"type":"string","format":"password"}"#, "", [Type("p")], r#"{"f":"p"}"#);
    assert!(password.last().unwrap().starts_with("[masked]"));
}

#[test]
fn a_form_that_cannot_be_read_is_declined_unasked() {
    for form in [
        "null",
        "{}",
        r#"{"properties":[]}"#,
        r#"{"properties":{"a":{"type":"object"}},"required":["a"]}"#,
        r#"{"properties":{},"required":["a"]}"#,
        r#"{"properties":{"a":{"enum":[]}},"required":["a"]}"#,
        r#"{"properties":{"a":{"type":"string"},"a":{"type":"integer"}}}"#,
    ] {
        assert_eq!(play(Want::Form(json(form)), "m", []).0, Reply::Decline, "{form}");
        assert_eq!(fill_defaults(&json(form)), None, "{form}");
        assert!(from_file(&json(form), &json(r#"{"a":1}"#)).is_err(), "{form}");
    }
    let nested = json(r#"{"properties":{"a":{"type":"object"},"b":{"type":"string"}}}"#);
    let reply = play(Want::Form(nested), "m", [Pick(0), Type("x")]).0;
    assert_eq!(reply, Reply::Accept(Some(json(r#"{"b":"x"}"#))));
}

#[test]
fn defaults_answer_only_when_they_suffice() {
    let properties = r#""a":{"type":"string","default":"x"},"b":{"type":"number","default":1.0},"c":{"type":"boolean"}"#;
    let filled = |required| fill_defaults(&schema(properties, required));
    assert_eq!(filled(r#""a""#), Some(json(r#"{"a":"x","b":1.0}"#)));
    assert_eq!(filled(r#""a","b""#), Some(json(r#"{"a":"x","b":1.0}"#)));
    assert_eq!(filled(r#""c""#), None);
    assert_eq!(fill_defaults(&schema("", "")), Some(json("{}")));
}

#[test]
fn a_file_answers_with_valid_values_only() {
    let properties = r#""n":{"type":"integer","maximum":3},"s":{"type":"string","minLength":2},
        "e":{"enum":["a","b"]},"m":{"type":"array","items":{"enum":["a","b"]}},
        "d":{"type":"string","default":"dd"},"t":{"type":"boolean"}"#;
    let form = schema(properties, r#""n","d""#);
    let answer = |values: &str| from_file(&form, &json(values)).map(|json| json.to_string());
    assert_eq!(answer(r#"{"n":1,"other":2}"#).unwrap(), r#"{"n":1,"d":"dd"}"#);
    assert_eq!(
        answer(r#"{"m":["b"],"t":false,"n":3,"e":"\u0061","d":"x"}"#).unwrap(),
        r#"{"n":3,"e":"\u0061","m":["b"],"d":"x","t":false}"#
    );
    assert_eq!(answer("{}"), Err(FormError::Missing { name: "n".to_owned() }));
    assert_eq!(answer("[1]"), Err(FormError::NotObject));
    for bad in [
        r#"{"n":4}"#,
        r#"{"n":"1"}"#,
        r#"{"n":1.5}"#,
        r#"{"n":null}"#,
        r#"{"n":1,"s":"x"}"#,
        r#"{"n":1,"s":7}"#,
        r#"{"n":1,"e":"c"}"#,
        r#"{"n":1,"e":["a"]}"#,
        r#"{"n":1,"m":"a"}"#,
        r#"{"n":1,"m":["a","c"]}"#,
        r#"{"n":1,"m":["a","a"]}"#,
        r#"{"n":1,"t":"yes"}"#,
    ] {
        assert!(matches!(answer(bad), Err(FormError::Invalid { .. })), "{bad}");
    }
    let optional = schema(r#""a":{"type":"string"}"#, "");
    assert_eq!(from_file(&optional, &json(r#"{"b":1}"#)), Err(FormError::NothingFits));
}

#[test]
fn a_long_address_is_shown_unbroken() {
    let url = format!("https://example.com/login?state={}", "x1".repeat(300));
    let (_, shown) = play(Want::Visit(url.clone()), "m", [Pick(0)]);
    assert!(shown.contains(&url), "{shown:?}");
}

#[test]
fn a_page_is_shown_with_its_host_and_never_opened() {
    let visit = |acts: Vec<Act>| {
        play(Want::Visit("https://bank.com@evil.example/pay".to_owned()), "log in", acts)
    };
    let (reply, shown) = visit(vec![Pick(0)]);
    assert_eq!(reply, Reply::Accept(None));
    assert_eq!(
        shown,
        [
            "`linear` asks you to visit a page:",
            "│ log in",
            "host: evil.example",
            "https://bank.com@evil.example/pay",
            "warning: the text before the `@` is not the host",
            "For `linear`: have you finished there? [\"yes, I have finished\", \"decline\", \"cancel\"] from 0",
        ]
    );
    assert_eq!(visit(vec![Pick(1)]).0, Reply::Decline);
    assert_eq!(visit(vec![Pick(2)]).0, Reply::Cancel);
    assert_eq!(visit(vec![Escape]).0, Reply::Cancel);
    let odd = Want::Visit("javascript:alert(1)\u{1b}[2J".to_owned());
    let (reply, shown) = play(odd, "m", []);
    assert_eq!(reply, Reply::Decline);
    assert!(!shown.iter().any(|line| line.contains('\u{1b}')));
}

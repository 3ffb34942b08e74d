//! Tests of typed arguments and the JSON they become.

use std::io;

use capstan_wire::Json;

use super::given::MAX_INPUT;
use super::{ArgumentError, Given, Input};

const ISSUE: &str = r##"{
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "what it is about"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "open": {"type": "boolean"},
        "state": {"enum": ["open", "closed", 3, null]},
        "kind": {"const": "bug"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"$ref": "#/$defs/id"}},
        "places": {"type": "array", "items": {"type": "object"}},
        "free": {"type": "array"},
        "owner": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "limit": {"type": ["integer", "string", "boolean"]},
        "one_or_many": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "number_or_list": {"type": ["integer", "array"], "items": {"type": "integer"}},
        "any": {},
        "author": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
                           "home": {"$ref": "#/$defs/home"}},
            "required": ["name"]
        },
        "flat.key": {"type": "integer"},
        "endless": {"$ref": "#/$defs/endless"},
        "api_key": {"type": "integer"}
    },
    "$defs": {
        "id": {"type": "integer"},
        "home": {"type": "object", "properties": {"zip": {"type": "string"}}},
        "endless": {"type": "array", "items": {"$ref": "#/$defs/endless"}}
    }
}"##;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

/// Stdin, and files by their paths.
struct Texts<'a> {
    stdin: Option<&'a str>,
    files: &'a [(&'a str, &'a [u8])],
}

impl Input for Texts<'_> {
    fn stdin(&self, _: usize) -> io::Result<Vec<u8>> {
        let text = self.stdin.ok_or_else(|| io::Error::other("stdin was read"))?;
        Ok(text.as_bytes().to_vec())
    }

    fn file(&self, path: &str, limit: usize) -> io::Result<Vec<u8>> {
        let (_, bytes) =
            self.files.iter().find(|(name, _)| *name == path).ok_or(io::ErrorKind::NotFound)?;
        Ok(bytes.iter().take(limit + 1).copied().collect())
    }
}

fn given(schema: &str, words: &[&str], input: &Texts<'_>) -> Result<Json, ArgumentError> {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    Given::read(words, input)?.build(&json(schema))
}

pub(super) fn typed(schema: &str, words: &[&str]) -> Result<Json, ArgumentError> {
    given(schema, words, &Texts { stdin: None, files: &[] })
}

fn piped(schema: &str, text: &str) -> Result<Json, ArgumentError> {
    given(schema, &["-"], &Texts { stdin: Some(text), files: &[] })
}

const FILES: &[(&str, &[u8])] = &[
    ("note.txt", b"two\nlines\n"),
    ("five", b"5\n"),
    ("list.json", b"[\"a\", \"b,c\"]\n"),
    ("author.json", b"{\"name\": \"Eve\"}"),
    ("secret", b"s3cret-words"),
    ("photo.png", b"\x89PNG\xff"),
    ("nul", b"a\0b"),
    ("empty", b""),
];

fn with_files(words: &[&str]) -> Result<Json, ArgumentError> {
    given(ISSUE, words, &Texts { stdin: None, files: FILES })
}

#[track_caller]
fn gives(words: &[&str], arguments: &str) {
    assert_eq!(typed(ISSUE, words).unwrap().as_str(), arguments, "{words:?}");
}

#[track_caller]
fn refuses(schema: &str, words: &[&str], message: &str) {
    assert_eq!(typed(schema, words).unwrap_err().to_string(), message, "{words:?}");
}

#[test]
fn values_get_the_type_of_the_schema() {
    gives(&[], "{}");
    gives(&["title=5"], r#"{"title":"5"}"#);
    gives(&["title="], r#"{"title":""}"#);
    gives(&["title=a=b:=c"], r#"{"title":"a=b:=c"}"#);
    gives(&["count=-5", "title=x"], r#"{"count":-5,"title":"x"}"#);
    gives(&["open=yes"], r#"{"open":true}"#);
    gives(&["open=0"], r#"{"open":false}"#);
    gives(&["state=closed"], r#"{"state":"closed"}"#);
    gives(&["state=3"], r#"{"state":3}"#);
    gives(&["state=null"], r#"{"state":null}"#);
    gives(&["kind=bug"], r#"{"kind":"bug"}"#);
    gives(&["owner=null"], r#"{"owner":null}"#);
    gives(&["owner=me"], r#"{"owner":"me"}"#);
    gives(&["any=7"], r#"{"any":7}"#);
    gives(&["any=seven"], r#"{"any":"seven"}"#);
}

#[test]
fn of_several_types_the_one_that_can_be_told_wins() {
    gives(&["limit=10"], r#"{"limit":10}"#);
    gives(&["limit=all"], r#"{"limit":"all"}"#);
    gives(&["limit=true"], r#"{"limit":true}"#);
    gives(&["limit=yes"], r#"{"limit":"yes"}"#);
    gives(&["one_or_many=a,b"], r#"{"one_or_many":"a,b"}"#);
    gives(&["one_or_many=[\"a\"]"], r#"{"one_or_many":["a"]}"#);
    gives(&["one_or_many=a", "one_or_many=b"], r#"{"one_or_many":["a","b"]}"#);
    gives(&["number_or_list=5"], r#"{"number_or_list":5}"#);
    gives(&["number_or_list=5", "number_or_list=6"], r#"{"number_or_list":[5,6]}"#);
}

#[test]
fn numbers_keep_their_digits() {
    let long = "123456789012345678901234567890";
    gives(&[&format!("count={long}")], &format!(r#"{{"count":{long}}}"#));
    gives(&["ratio=1.500e-3"], r#"{"ratio":1.500e-3}"#);
    gives(&["any:=1.0"], r#"{"any":1.0}"#);
    gives(&[r#"{"ratio": 1.10, "x":[1 ]}"#], r#"{"ratio": 1.10, "x":[1 ]}"#);
}

#[test]
fn lists_are_repeated_or_json_and_a_comma_separates_nothing() {
    gives(&["tags=a", "tags=b,c"], r#"{"tags":["a","b,c"]}"#);
    gives(&["tags=Smith, John"], r#"{"tags":["Smith, John"]}"#);
    gives(&["free=Smith, John"], r#"{"free":["Smith, John"]}"#);
    gives(&["one_or_many=Smith, John"], r#"{"one_or_many":"Smith, John"}"#);
    gives(&["tags="], r#"{"tags":[]}"#);
    gives(&["tags=[\"a,b\"]"], r#"{"tags":["a,b"]}"#);
    gives(&["ids=1"], r#"{"ids":[1]}"#);
    gives(&["ids=[1,2]"], r#"{"ids":[1,2]}"#);
    gives(&["ids=1", "title=x", "ids:=2"], r#"{"ids":[1,2],"title":"x"}"#);
    gives(&["free=1", "free=a"], r#"{"free":[1,"a"]}"#);
    gives(&["places={\"x\":1}"], r#"{"places":[{"x":1}]}"#);
    gives(&["endless=[[],[]]"], r#"{"endless":[[],[]]}"#);
}

#[test]
fn dots_lead_into_objects_where_the_schema_has_one() {
    gives(
        &["author.name=Eve", "count=1", "author.home.zip=01"],
        r#"{"author":{"name":"Eve","home":{"zip":"01"}},"count":1}"#,
    );
    gives(&["flat.key=1"], r#"{"flat.key":1}"#);
    gives(&["author={\"name\": 1}"], r#"{"author":{"name": 1}}"#);
    gives(&["any.thing=1"], r#"{"any.thing":1}"#);
    gives(&["author.name=x", "author.shoe=44"], r#"{"author":{"name":"x","shoe":44}}"#);
}

#[test]
fn an_unknown_key_is_guessed_where_the_schema_is_open() {
    gives(&["elsewhere=1.50"], r#"{"elsewhere":1.50}"#);
    gives(&["elsewhere=007"], r#"{"elsewhere":"007"}"#);
    gives(&["elsewhere=null"], r#"{"elsewhere":null}"#);
    let like = r#"{"properties":{},"additionalProperties":{"type":"string"}}"#;
    assert_eq!(typed(like, &["zip=10115"]).unwrap().as_str(), r#"{"zip":"10115"}"#);
    for schema in ["{}", "null", "true", "7", r#"{"properties":7,"required":7}"#] {
        assert_eq!(typed(schema, &["a=b"]).unwrap().as_str(), r#"{"a":"b"}"#, "{schema}");
    }
}

#[test]
fn a_value_of_another_type_is_refused_with_what_was_expected() {
    let cases = [
        ("count=five", "`count` cannot be `five`: expected an integer"),
        ("count=1.0", "`count` cannot be `1.0`: expected an integer"),
        ("count=", "`count` cannot be ``: expected an integer"),
        ("count=+1", "`count` cannot be `+1`: expected an integer"),
        ("count=0x10", "`count` cannot be `0x10`: expected an integer"),
        ("count=1 ", "`count` cannot be `1`: expected an integer"),
        ("ratio=.5", "`ratio` cannot be `.5`: expected a number"),
        ("ratio=NaN", "`ratio` cannot be `NaN`: expected a number"),
        ("open=maybe", "`open` cannot be `maybe`: expected true or false"),
        ("state=half", "`state` cannot be `half`: expected one of `open`, `closed`, `3`, `null`"),
        ("kind=feature", "`kind` cannot be `feature`: expected `bug`"),
        ("ids=1,2", "`ids` cannot be `1,2`: expected a list (an integer each)"),
        (
            "number_or_list=5,6",
            "`number_or_list` cannot be `5,6`: expected an integer or a list (an integer each)",
        ),
        ("tags=[a", "`tags` cannot be `[a`: expected a list (text each)"),
        ("places=x", "`places` cannot be `x`: expected a list"),
        ("endless=x", "`endless` cannot be `x`: expected a list"),
        ("author=Eve", "`author` cannot be `Eve`: expected a JSON object"),
        ("author.age=old", "`author.age` cannot be `old`: expected an integer"),
        ("api_key=sk-123", "`api_key` cannot be `***`: expected an integer"),
    ];
    for (word, message) in cases {
        refuses(ISSUE, &[word], message);
    }
}

#[test]
fn a_key_is_given_once_unless_it_is_a_list() {
    refuses(ISSUE, &["title=a", "title=b"], "`title` is given twice and is not a list");
    refuses(ISSUE, &["elsewhere=a", "elsewhere=b"], "`elsewhere` is given twice and is not a list");
    refuses(
        ISSUE,
        &["author={\"name\":\"x\"}", "author.name=y"],
        "`author` is given twice and is not a list",
    );
    refuses(
        ISSUE,
        &["author.name=x", "author.name=y"],
        "`author.name` is given twice and is not a list",
    );
}

#[track_caller]
fn hints(schema: &str, word: &str, hint: &str) {
    assert_eq!(typed(schema, &[word]).unwrap_err().hint().unwrap(), hint, "{word}");
}

#[test]
fn a_slip_gets_the_nearest_key() {
    refuses(ISSUE, &["titel=x"], "there is no argument `titel`");
    refuses(ISSUE, &["author.nmae=x"], "there is no argument `author.nmae`");
    hints(ISSUE, "titel=x", "did you mean `title`?");
    hints(ISSUE, "TITLE=x", "did you mean `title`?");
    hints(ISSUE, "author.nmae=x", "did you mean `name`?");
    let closed = r#"{"properties":{"a":{},"b":{}},"additionalProperties":false}"#;
    hints(closed, "x=1", "there are `a`, `b`");
    hints(r#"{"additionalProperties":false}"#, "x:=1", "it takes no arguments");
    hints(ISSUE, "ids=1,2", "repeat `ids=…` for each item, or write `ids:='[…]'`");
}

#[test]
fn options_are_another_spelling_of_pairs() {
    gives(&["--title", "a b", "--count=5"], r#"{"title":"a b","count":5}"#);
    gives(&["--count", "-5", "title=x"], r#"{"count":-5,"title":"x"}"#);
    gives(&["--tags", "a", "--tags=b"], r#"{"tags":["a","b"]}"#);
    gives(&["--author.name", "Eve"], r#"{"author":{"name":"Eve"}}"#);
    gives(&["--any:=[1]"], r#"{"any":[1]}"#);
    gives(&["--title=--x"], r#"{"title":"--x"}"#);
    gives(&["--open", "--title", "x"], r#"{"open":true,"title":"x"}"#);
    gives(&["--open", "title=x"], r#"{"open":true,"title":"x"}"#);
    gives(&["--open", "no"], r#"{"open":false}"#);
    gives(&["title=x", "--open"], r#"{"title":"x","open":true}"#);
    gives(&["--title", "x", "--", "count=1"], r#"{"title":"x","count":1}"#);
    refuses(ISSUE, &["--title"], "`--title` needs a value");
    refuses(ISSUE, &["--title", "--count", "5"], "`--title` needs a value");
    refuses(ISSUE, &["--titel", "x"], "there is no argument `titel`");
    refuses(ISSUE, &["--", "title=x", "--count"], "`--count` is not an argument");
    refuses(ISSUE, &["--title", "x", "y"], "`y` is not an argument");
    hints(ISSUE, "--title", "write `--title=VALUE` or `title=VALUE`");
}

#[test]
fn a_value_can_come_from_a_file() {
    let gives = |words: &[&str], arguments: &str| {
        assert_eq!(with_files(words).unwrap().as_str(), arguments, "{words:?}");
    };
    gives(&["title=@note.txt"], r#"{"title":"two\nlines\n"}"#);
    gives(&["--title", "@note.txt", "--count=@five"], r#"{"title":"two\nlines\n","count":5}"#);
    gives(&["title=@empty"], r#"{"title":""}"#);
    gives(&["tags=@list.json"], r#"{"tags":["a", "b,c"]}"#);
    gives(&["tags=@note.txt", "tags=@secret"], r#"{"tags":["two\nlines\n","s3cret-words"]}"#);
    gives(&["author=@author.json"], r#"{"author":{"name": "Eve"}}"#);
    gives(&["any:=@list.json"], r#"{"any":["a", "b,c"]}"#);
    gives(&["elsewhere=@five"], r#"{"elsewhere":"5\n"}"#);
}

#[test]
fn a_switch_beside_a_file_does_not_empty_it() {
    let gives = |words: &[&str], arguments: &str| {
        assert_eq!(with_files(words).unwrap().as_str(), arguments, "{words:?}");
    };
    gives(&["--open", "title=@note.txt"], r#"{"open":true,"title":"two\nlines\n"}"#);
    gives(&["--open", "--title", "@note.txt"], r#"{"open":true,"title":"two\nlines\n"}"#);
    gives(&["--title", "@note.txt", "--open"], r#"{"title":"two\nlines\n","open":true}"#);
    // Not the file, but the value of `--title`.
    gives(&["--title", "any=@gone"], r#"{"title":"any=@gone"}"#);
    for words in [["--open", "title=@gone", "count=1"], ["--title", "@gone", "--open"]] {
        let error = with_files(&words).unwrap_err();
        assert!(matches!(error, ArgumentError::File { .. }), "{words:?}: {error}");
    }
}

#[test]
fn two_at_signs_are_one_and_other_places_are_literal() {
    gives(&["title=@@john"], r#"{"title":"@john"}"#);
    gives(&["title=@@@"], r#"{"title":"@@"}"#);
    gives(&["--title", "@@john"], r#"{"title":"@john"}"#);
    gives(&["title=a@b.example"], r#"{"title":"a@b.example"}"#);
    gives(&["any:=\"@note.txt\""], r#"{"any":"@note.txt"}"#);
    gives(&[r#"{"title":"@note.txt"}"#], r#"{"title":"@note.txt"}"#);
}

#[test]
fn a_file_that_cannot_be_a_value_is_refused_with_its_name() {
    let refuses = |word: &str, message: &str| {
        assert_eq!(with_files(&[word]).unwrap_err().to_string(), message, "{word}");
    };
    let missing = "cannot read the file `gone` for `title`: entity not found";
    refuses("title=@gone", missing);
    refuses("any:=@gone", "cannot read the file `gone` for `any`: entity not found");
    refuses("title=@", "cannot read the file `` for `title`: entity not found");
    refuses("title=@photo.png", "the file `photo.png` for `title` is not UTF-8 text");
    refuses("title=@nul", "the file `nul` for `title` is not UTF-8 text");
    refuses("any:=@note.txt", "the value of `any` is not valid JSON");
    // The text of a file may be a secret.
    refuses("count=@secret", "`count` cannot be `@secret`: expected an integer");
    let hint = |word: &str| with_files(&[word]).unwrap_err().hint().unwrap();
    assert_eq!(hint("title=@gone"), "for a text that begins with `@`, write `title=@@gone`");
    assert!(hint("title=@photo.png").contains("base64"));

    let large = vec![b'x'; MAX_INPUT];
    let files: &[(&str, &[u8])] = &[("large", &large), ("more", b"y")];
    let read = |words: &[&str]| given(ISSUE, words, &Texts { stdin: None, files });
    assert!(read(&["title=@large", "tags=@large"]).is_ok(), "a file is read once");
    let error = read(&["title=@large", "tags=@more"]).unwrap_err();
    assert!(matches!(error, ArgumentError::FileTooLarge { .. }), "{error}");
}

#[test]
fn words_in_no_form_are_refused() {
    for word in ["title", "=x", ":=1", "", "--=x"] {
        let error = typed(ISSUE, &[word]).unwrap_err();
        assert!(matches!(error, ArgumentError::NotAPair { .. }), "{word}: {error}");
    }
    refuses(ISSUE, &["count:=five"], "the value of `count` is not valid JSON");
    refuses(ISSUE, &["count:="], "the value of `count` is not valid JSON");
}

#[test]
fn a_form_for_all_arguments_stands_alone() {
    for words in [["-", "title=x"], ["title=x", "-"], ["{}", "title=x"], ["-", "{}"]] {
        let error = typed(ISSUE, &words).unwrap_err();
        assert!(matches!(error, ArgumentError::Alone { .. }), "{words:?}: {error}");
    }
}

#[test]
fn json_must_be_one_object() {
    refuses(ISSUE, &["{"], "the argument is not valid JSON");
    refuses(ISSUE, &["{} {}"], "the argument is not valid JSON");
    hints(ISSUE, "{\"a\" 1}", "expected `:` at line 1 column 6");
    for (text, found) in [
        ("[1]", "a list"),
        ("\"x\"", "a string"),
        ("true", "a boolean"),
        ("null", "null"),
        ("-1", "a number"),
    ] {
        let error = piped(ISSUE, text).unwrap_err();
        assert_eq!(error.to_string(), format!("the arguments are not a JSON object but {found}"));
    }
}

#[test]
fn stdin_is_taken_byte_for_byte_and_has_a_limit() {
    let text = "{ \"count\" : 1.00 }";
    assert_eq!(piped(ISSUE, &format!("\n{text}\n")).unwrap().as_str(), text);
    let input = Texts { stdin: Some(text), files: &[] };
    assert_eq!(given(ISSUE, &["--", "-"], &input).unwrap().as_str(), text);
    assert!(matches!(piped(ISSUE, ""), Err(ArgumentError::NotJson { .. })));
    let long = " ".repeat(MAX_INPUT + 1);
    assert!(matches!(piped(ISSUE, &long), Err(ArgumentError::TooLarge { .. })));
    assert!(matches!(typed(ISSUE, &["-"]), Err(ArgumentError::Stdin(_))));
}

#[test]
fn what_the_tool_demands_is_missed_in_every_form() {
    let schema = r#"{"properties":{"a":{"type":"string","description":"the\n\u001b[2Ja"},
        "b":{"type":["integer","null"]}},"required":["a","b","c"]}"#;
    let message = "missing `a` (text: the \\u{1b}[2Ja), `b` (null or an integer), `c` (any value)";
    refuses(schema, &[], message);
    refuses(schema, &["{}"], message);
    assert_eq!(piped(schema, "{}").unwrap_err().to_string(), message);
    refuses(schema, &["a=x", "c=1"], "missing `b` (null or an integer)");
    refuses(ISSUE, &["author.age=1"], "missing `author.name` (text)");
    assert!(typed(schema, &["a=x", "b:=null", "c="]).is_ok());
}

#[test]
fn schemas_that_lead_nowhere_do_not_catch_us() {
    let around = r##"{"properties":{"a":{"$ref":"#/properties/a"},
        "b":{"anyOf":[{"$ref":"#/properties/b"},{"$ref":"#/properties/b"}]},
        "c":{"$ref":"#/nowhere"},"d":{"$ref":"https://example.com/schema"}}}"##;
    let arguments = typed(around, &["a=1", "b=x", "c=true", "d=null"]).unwrap();
    assert_eq!(arguments.as_str(), r#"{"a":1,"b":"x","c":true,"d":null}"#);
}

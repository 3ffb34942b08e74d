//! Parses one flag of a help text: `-a, --all`, `--file=FILE`, `--[no-]color[=WHEN]`.

use super::value::{Kind, Value};
use super::{Flag, shorten};

/// Maximum length of a flag's name.
const MAX_NAME: usize = 80;

/// Maximum number of long names of one flag.
const MAX_LONG: usize = 3;

/// A flag at the beginning of a line, and the rest of that line.
#[derive(Debug)]
pub(super) struct Written<'a> {
    pub(super) flag: Flag,
    /// The description on this line.
    pub(super) rest: &'a str,
    /// The column of the rest, in characters from the beginning of the line.
    pub(super) column: Option<usize>,
}

/// True if a line can begin with a flag.
pub(super) fn begins(text: &str) -> bool {
    let mut chars = text.trim_start_matches('[').chars();
    let (first, second, third) = (chars.next(), chars.next(), chars.next());
    match (first, second) {
        (Some('-'), Some('-')) => third.is_some_and(|c| c.is_ascii_alphanumeric() || c == '['),
        (Some('-'), Some('<')) => text.contains(", -"),
        (Some('-'), Some(c)) => c.is_ascii_alphanumeric() || "?#@[".contains(c),
        _ => false,
    }
}

/// Parses the flag at the beginning of a line.
pub(super) fn read(text: &str) -> Option<Written<'_>> {
    let (left, right) = columns(text);
    // The number in `-<number>, -n <number>` is not a name.
    let left = if left.starts_with("-<") { left.split_once(", ")?.1 } else { left };
    let gap = if right.is_some() { Gap::Here } else { Gap::None };
    let (flag, left_over) = specs(left, gap)?;
    let rest = match right {
        Some(right) => right,
        None => left_over.trim_start_matches([':', ' ']).trim_start_matches("- "),
    };
    let taken = text.len().saturating_sub(rest.len());
    let column = (!rest.is_empty()).then(|| text.get(..taken).map_or(0, |t| t.chars().count()));
    Some(Written { flag, rest, column })
}

/// Tells if white space separates the flag from its description; then all before it is the flag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    Here,
    None,
}

/// Splits a line at the gap between the flag and its description.
fn columns(text: &str) -> (&str, Option<&str>) {
    for (at, _) in text.match_indices("  ") {
        let (left, right) = text.split_at_checked(at).unwrap_or((text, ""));
        let right = right.trim_start();
        // `-V,  --version`, `-h  --help` and `-p NUM  --strip=NUM` continue after the gap.
        let value = left.split_once(' ').map(|(_, value)| value);
        let is_flag = value.is_none_or(|value| !value.contains(' ') && is_placeholder(value));
        let goes_on =
            left.ends_with([',', '|']) || (right.starts_with('-') && begins(right) && is_flag);
        if !left.is_empty() && !goes_on && !right.is_empty() {
            return (left, Some(right));
        }
    }
    (text, None)
}

/// Parses all names of a flag and its value; the rest is the description.
pub(super) fn specs(text: &str, gap: Gap) -> Option<(Flag, &str)> {
    let (mut flag, mut rest) = (Flag::default(), text);
    loop {
        let next = skip_separators(rest);
        let Some((name, after)) = name(next) else { break };
        // Without a comma only `-h --help` is one flag; `-depth -mount` are two.
        let apart = next.len() == rest.trim_start().len() && !flag.names.is_empty();
        let short = flag.names.iter().all(|name| name.len() == 2) && name.starts_with("--");
        if apart && !short {
            break;
        }
        let (value, dots, after) = value(after, gap);
        add_name(&mut flag, name)?;
        flag.repeatable |= dots;
        if flag.value == Value::None || matches!(flag.value, Value::Optional(_)) {
            flag.value = if value == Value::None { flag.value } else { value };
        }
        rest = after;
    }
    let long = flag.names.iter().filter(|name| name.starts_with("--")).count();
    // A line of prose may begin with a list of flags; that is not one flag with many names.
    (!flag.names.is_empty() && long <= MAX_LONG).then_some((flag, rest))
}

/// Parses one name with its value.
pub(super) fn specs_one(text: &str) -> Option<(Flag, &str)> {
    let (name, after) = name(text)?;
    let (value, repeatable, after) = value(after, Gap::None);
    let mut flag = Flag { value, repeatable, ..Flag::default() };
    add_name(&mut flag, name)?;
    Some((flag, after))
}

/// Adds a name as written; `--[no-]x` makes two.
fn add_name(flag: &mut Flag, name: &str) -> Option<()> {
    let (plain, negation) = match name.split_once("[no") {
        Some((dashes, rest)) => {
            let (dash, rest) = match rest.strip_prefix("-]") {
                Some(rest) => ("-", rest),
                None => ("", rest.strip_prefix(']')?),
            };
            (format!("{dashes}{rest}"), Some(format!("{dashes}no{dash}{rest}")))
        }
        None => (name.to_owned(), None),
    };
    if plain.len() > MAX_NAME || plain.ends_with('-') || plain.trim_start_matches('-').is_empty() {
        return None;
    }
    flag.negation = flag.negation.take().or(negation);
    if !flag.names.contains(&plain) {
        flag.names.push(plain);
    }
    Some(())
}

fn skip_separators(text: &str) -> &str {
    let mut rest = text.trim_start();
    for mark in [",", "|", "/", "or -", "OR -"] {
        if let Some(after) = rest.strip_prefix(mark) {
            let after = if mark.ends_with('-') {
                rest.trim_start_matches(['o', 'r', 'O', 'R'])
            } else {
                after
            };
            let after = after.trim_start();
            // Only a separator if another flag follows.
            if begins(after) {
                rest = after;
            }
            break;
        }
    }
    rest
}

/// The name at the beginning of the text, dashes included.
fn name(text: &str) -> Option<(&str, &str)> {
    if !begins(text) || text.starts_with('[') {
        return None;
    }
    let prefix = ["--[no-]", "--[no]", "-[no-]", "-[no]"].iter().find(|p| text.starts_with(**p));
    let start = prefix.map_or_else(|| text.len() - text.trim_start_matches('-').len(), |p| p.len());
    let body = text.get(start..)?;
    let part = |c: char| c.is_ascii_alphanumeric() || "-_.?#@+:".contains(c);
    let end = body.find(|c: char| !part(c)).unwrap_or(body.len());
    let body = body.get(..end)?;
    // Trailing dots and colons, as in `--verbose...`, are not part of a name.
    let body = body.trim_end_matches(['.', ':', '+']);
    text.split_at_checked(start + body.len())
}

/// The value after a name, true if dots mark it as repeatable, and the rest.
fn value(text: &str, gap: Gap) -> (Value, bool, &str) {
    if let Some(rest) = text.strip_prefix("...") {
        return (Value::None, true, rest);
    }
    if let Some(rest) = text.strip_prefix("[=").or_else(|| text.strip_prefix("[:")) {
        let (inner, after) = until_closed(rest, ']');
        return with_dots(Value::Optional(joined(inner)), after);
    }
    if let Some(rest) = text.strip_prefix('=') {
        return after_equals(rest);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (inner, after) = until_closed(rest, ']');
        return with_dots(Value::Optional(Kind::of(inner)), after);
    }
    if text.starts_with(['<', '{']) {
        let (word, after) = word(text);
        return with_dots(Value::Required(Kind::of(word)), after);
    }
    let Some(rest) = text.strip_prefix(' ').map(str::trim_start) else {
        return (Value::None, false, text);
    };
    if begins(rest) || rest.starts_with(['|', ',', '/']) || rest.starts_with("or -") {
        return (Value::None, false, text);
    }
    let (first, after) = word(rest);
    let told = after.strip_prefix(", ").is_some_and(begins);
    if !is_placeholder(first) && !told && (gap == Gap::None || !is_type_word(first, after)) {
        return (Value::None, false, text);
    }
    let bracketed = first.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let value = match bracketed {
        // `[<NAME>]` is optional; the dots of `<file>...` mean that more may follow.
        Some(inner) => Value::Optional(Kind::of(inner)),
        None => Value::Required(Kind::of(first)),
    };
    with_dots(value, past_values(after))
}

/// Skips further values before another name: `-e <a> [<b> ...], --extract …`.
fn past_values(text: &str) -> &str {
    let mut rest = text;
    while !rest.strip_prefix(", ").is_some_and(begins) {
        let (next, after) = word(rest.trim_start());
        if !next.starts_with(['<', '[', '{']) {
            return text;
        }
        rest = after;
    }
    rest
}

/// The value after `=`; kubectl writes the default there, and a colon.
fn after_equals(text: &str) -> (Value, bool, &str) {
    if let Some(default) = text.strip_suffix(':').filter(|default| !default.contains(' ')) {
        let repeats = default == "[]";
        return (Value::Required(Kind { joined: true, ..Kind::by_default(default) }), repeats, "");
    }
    let (word, after) = word(text);
    with_dots(Value::Required(joined(word)), after)
}

fn joined(written: &str) -> Kind {
    Kind { joined: true, ..Kind::of(written) }
}

fn with_dots(value: Value, after: &str) -> (Value, bool, &str) {
    match after.strip_prefix("...").or_else(|| after.strip_prefix(" ...")) {
        Some(after) => (value, true, after),
        None => (value, false, after),
    }
}

/// The text up to the closing bracket, and the text after it.
fn until_closed(text: &str, close: char) -> (&str, &str) {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '<' | '{' | '(' => depth += 1,
            c if depth == 0 && c == close => {
                let (inner, after) = text.split_at_checked(at).unwrap_or((text, ""));
                return (inner, after.strip_prefix(close).unwrap_or(after));
            }
            ']' | '>' | '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (text, "")
}

/// The first word; text in brackets belongs to it.
pub(super) fn word(text: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        let next = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
        match c {
            '[' | '<' | '{' | '(' => depth += 1,
            ']' | '>' | '}' | ')' => depth = depth.saturating_sub(1),
            c if depth == 0
                && (c.is_whitespace() || (c == ',' && next.is_none_or(char::is_whitespace))) =>
            {
                return text.split_at_checked(at).unwrap_or((text, ""));
            }
            _ => {}
        }
    }
    // An unclosed bracket is ignored.
    if depth > 0 {
        let at = text.find(char::is_whitespace).unwrap_or(text.len());
        return text.split_at_checked(at).unwrap_or((text, ""));
    }
    (text, "")
}

/// True if a word is a placeholder: `<file>`, `[n]`, `{a,b}`, `FILE`, `NAME=VALUE`.
pub(super) fn is_placeholder(word: &str) -> bool {
    if word.starts_with(['<', '{', '[']) || (word.starts_with('(') && word.len() < 40) {
        return true;
    }
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    letters().count() > 0 && letters().all(char::is_uppercase)
}

/// True if a word before the gap is the type of a value, not prose.
fn is_type_word(word: &str, after: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:/.|[]".contains(c);
    let more = after.split_whitespace().filter(|word| !word.starts_with(['-', '|', ','])).count();
    word.chars().all(plain) && more < 2
}

/// Adds the facts of a description.
pub(super) fn describe(mut flag: Flag, description: &str) -> Flag {
    flag.value.learn(description);
    let lower = description.to_ascii_lowercase();
    let repeats = [
        "can be repeated",
        "may be repeated",
        "multiple times",
        "more than once",
        "can be specified multiple",
    ];
    let many = ["strings", "stringArray", "stringSlice", "list"];
    let kind = flag.value.kind().map(|kind| kind.name.clone()).unwrap_or_default();
    flag.repeatable |= repeats.iter().any(|phrase| lower.contains(phrase));
    flag.repeatable |= many.contains(&kind.as_str());
    if flag.value == Value::None {
        // A repeated switch is rarely intended, and no schema asks for it.
        flag.repeatable = false;
    }
    flag.summary = shorten(description);
    flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, names: &[&str], value: &str, rest: &str) {
        let written = read(line).unwrap();
        let shown = match &written.flag.value {
            Value::None => String::new(),
            Value::Required(kind) => kind.name.clone(),
            Value::Optional(kind) => format!("[{}]", kind.name),
        };
        let known: Vec<&str> = written.flag.names.iter().map(String::as_str).collect();
        assert_eq!((known.as_slice(), shown.as_str(), written.rest), (names, value, rest));
    }

    #[test]
    fn flags_are_read_as_the_usual_libraries_write_them() {
        check("-a, --all                  do it", &["-a", "--all"], "", "do it");
        check("-V,  --version    display", &["-V", "--version"], "", "display");
        check("-h --help           Show", &["-h", "--help"], "", "Show");
        check("-H --host=[USER@]HOST  Operate", &["-H", "--host"], "[USER@]HOST", "Operate");
        check("-f, --file string     Name", &["-f", "--file"], "string", "Name");
        check("--color <WHEN>  Colour", &["--color"], "WHEN", "Colour");
        check("--color[=WHEN]  colour", &["--color"], "[WHEN]", "colour");
        check("-x, --extract, --get   get", &["-x", "--extract", "--get"], "", "get");
        check("-p, --package [<SPEC>]  P", &["-p", "--package"], "[SPEC]", "P");
        check("-E VAR=VAL, --env=VAR=VAL", &["-E", "--env"], "VAR=VAL", "");
        check("-i|--install       <x>...", &["-i", "--install"], "", "<x>...");
        check("-cmd COMMAND         run", &["-cmd"], "COMMAND", "run");
        check("--allow-fs=...   allow", &["--allow-fs"], "value", "allow");
        check("-print-file-name=<lib>   Path", &["-print-file-name"], "lib", "Path");
        check("-d, --data <data>          POST", &["-d", "--data"], "data", "POST");
        check("-u, --user <u:p> Server user", &["-u", "--user"], "u:p", "Server user");
        check("--ignore-it ignore paths", &["--ignore-it"], "", "ignore paths");
        check("-p NUM  --strip=NUM  Strip NUM", &["-p", "--strip"], "NUM", "Strip NUM");
        check("-e script, --expression=script", &["-e", "--expression"], "script", "");
        check("-e <a> [<b> ...], --extract <a> [<b> ...]", &["-e", "--extract"], "a", "[<b> ...]");
        check("-v, --verbose...      Loud", &["-v", "--verbose"], "", "Loud");
    }

    #[test]
    fn a_flag_that_can_be_switched_off_knows_how() {
        let flag = read("-n, --[no-]dry-run    dry run").unwrap().flag;
        assert_eq!(
            (flag.names, flag.negation),
            (vec!["-n".into(), "--dry-run".into()], Some("--no-dry-run".into()))
        );
        let flag = read("-[no]header     headers").unwrap().flag;
        assert_eq!((flag.names, flag.negation), (vec!["-header".into()], Some("-noheader".into())));
    }

    #[test]
    fn a_default_behind_the_flag_tells_its_type() {
        let flag = read("-A, --all-namespaces=false:").unwrap().flag;
        let kind = flag.value.kind().unwrap();
        assert_eq!(
            (kind.value_type, kind.default.as_deref()),
            (super::super::ValueType::Boolean, Some("false"))
        );
        let flag = read("-f, --filename=[]:").unwrap().flag;
        assert!(flag.repeatable);
        assert_eq!(flag.value.kind().unwrap().default, None);
    }

    #[test]
    fn what_is_no_flag_is_not_read() {
        for line in ["- a point", "-- the rest", "---", "-", "text --flag", "", "-> there"] {
            assert!(!begins(line), "{line}");
        }
    }
}

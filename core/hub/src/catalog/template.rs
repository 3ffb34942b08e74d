//! URI templates of resources: RFC 6570 with string values only.
//!
//! A template is parsed and expanded in one pass each, so both take time linear in the length of
//! the text.

use std::fmt::Write as _;

/// Longest template that is read, in bytes.
const MAX_LEN: usize = 8 * 1024;

/// Longest prefix that a placeholder may request, as in the RFC.
const MAX_PREFIX: usize = 9999;

/// A template such as `github://repos/{owner}/{repo}/issues{?state,page}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A variable in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// Its name.
    pub name: &'a str,
    /// Required or optional.
    pub need: Need,
}

/// Required or optional value of a template variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// The value is required.
    Required,
    /// The value can be left out.
    Optional,
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTemplate {
    /// The template is too long.
    #[error("it has more than {MAX_LEN} bytes")]
    TooLong,
    /// A brace is unmatched or nested.
    #[error("its braces do not match")]
    Braces,
    /// The text between braces is not an expression.
    #[error("`{{{0}}}` is not an expression")]
    Expression(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Expression { operator: Operator, variables: Vec<Variable> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    name: String,
    /// Only this many characters of the value are used.
    prefix: Option<usize>,
}

/// The operator of an expression: the character that it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    /// `{x}`
    Simple,
    /// `{+x}`
    Reserved,
    /// `{#x}`
    Fragment,
    /// `{.x}`
    Label,
    /// `{/x}`
    Path,
    /// `{;x}`
    Parameter,
    /// `{?x}`
    Query,
    /// `{&x}`
    Continuation,
}

/// The characters of a value that are not escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// Letters, digits, `-`, `.`, `_` and `~`.
    Unreserved,
    /// Also the reserved characters of a URI, and existing percent escapes.
    Reserved,
}

// === impl Template ===

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        if text.len() > MAX_LEN {
            return Err(BadTemplate::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let (body, after) = after.split_once('}').ok_or(BadTemplate::Braces)?;
            if literal.contains('}') || body.contains('{') {
                return Err(BadTemplate::Braces);
            }
            parts.push(Part::Literal(literal.to_owned()));
            parts.push(expression(body)?);
            rest = after;
        }
        if rest.contains('}') {
            return Err(BadTemplate::Braces);
        }
        parts.push(Part::Literal(rest.to_owned()));
        Ok(Self { parts })
    }

    /// Returns the variables, each once, in the order of their first use.
    ///
    /// Variables that are written with their name (`{?x}`, `{&x}`, `{;x}`) are optional.
    pub fn placeholders(&self) -> Vec<Placeholder<'_>> {
        let mut found: Vec<Placeholder<'_>> = Vec::new();
        for part in &self.parts {
            let Part::Expression { operator, variables } = part else { continue };
            let need = if operator.is_named() { Need::Optional } else { Need::Required };
            for Variable { name, .. } in variables {
                match found.iter_mut().find(|placeholder| placeholder.name == name) {
                    Some(known) if need == Need::Required => known.need = need,
                    Some(_) => {}
                    None => found.push(Placeholder { name, need }),
                }
            }
        }
        found
    }

    /// Expands the template with these values. A variable without a value is left out.
    pub fn expand<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> String {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => escape(text, Keep::Reserved, &mut uri),
                Part::Expression { operator, variables } => {
                    let mut lead = operator.first();
                    for variable in variables {
                        let Some(value) = value(&variable.name) else { continue };
                        uri.push_str(lead);
                        lead = operator.separator();
                        operator.write(variable, value, &mut uri);
                    }
                }
            }
        }
        uri
    }
}

fn expression(body: &str) -> Result<Part, BadTemplate> {
    let bad = || BadTemplate::Expression(body.to_owned());
    let (operator, names) = Operator::split(body);
    let variables: Option<Vec<Variable>> = names.split(',').map(variable).collect();
    Ok(Part::Expression { operator, variables: variables.ok_or_else(bad)? })
}

fn variable(text: &str) -> Option<Variable> {
    // `*` explodes lists; values here are single strings, which cannot be exploded.
    let text = text.strip_suffix('*').unwrap_or(text);
    let (name, prefix) = match text.split_once(':') {
        Some((name, length)) => {
            let length = length.parse().ok().filter(|length| (1..=MAX_PREFIX).contains(length));
            (name, Some(length?))
        }
        None => (text, None),
    };
    // The RFC does not allow hyphens in names, but servers use them.
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '%');
    let is_name = !name.is_empty() && name.chars().all(fits);
    is_name.then(|| Variable { name: name.to_owned(), prefix })
}

// === impl Operator ===

impl Operator {
    /// Splits an expression into its operator and the rest.
    fn split(body: &str) -> (Self, &str) {
        let mut rest = body.chars();
        let operator = match rest.next() {
            Some('+') => Self::Reserved,
            Some('#') => Self::Fragment,
            Some('.') => Self::Label,
            Some('/') => Self::Path,
            Some(';') => Self::Parameter,
            Some('?') => Self::Query,
            Some('&') => Self::Continuation,
            Some(_) | None => return (Self::Simple, body),
        };
        (operator, rest.as_str())
    }

    fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query | Self::Continuation => "&",
        }
    }

    fn is_named(self) -> bool {
        match self {
            Self::Parameter | Self::Query | Self::Continuation => true,
            Self::Simple | Self::Reserved | Self::Fragment | Self::Label | Self::Path => false,
        }
    }

    fn keep(self) -> Keep {
        match self {
            Self::Reserved | Self::Fragment => Keep::Reserved,
            Self::Simple
            | Self::Label
            | Self::Path
            | Self::Parameter
            | Self::Query
            | Self::Continuation => Keep::Unreserved,
        }
    }

    fn write(self, variable: &Variable, value: &str, uri: &mut String) {
        if self.is_named() {
            uri.push_str(&variable.name);
            let bare = value.is_empty() && self == Self::Parameter;
            uri.push_str(if bare { "" } else { "=" });
        }
        let end = variable.prefix.and_then(|length| value.char_indices().nth(length));
        let value = end.and_then(|(at, _)| value.get(..at)).unwrap_or(value);
        escape(value, self.keep(), uri);
    }
}

/// Appends `text` to `uri`, escaping every character that must not appear in a URI.
fn escape(text: &str, keep: Keep, uri: &mut String) {
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let reserved = keep == Keep::Reserved
            && match byte {
                b'%' => matches!(after, [a, b, ..] if [a, b].iter().all(|c| c.is_ascii_hexdigit())),
                _ => b":/?#[]@!$&'()*+,;=".contains(byte),
            };
        if unreserved || reserved {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the examples in the RFC.
    fn value(name: &str) -> Option<&'static str> {
        Some(match name {
            "var" => "value",
            "hello" => "Hello World!",
            "half" => "50%",
            "path" => "/foo/bar",
            "empty" => "",
            "x" => "1024",
            "y" => "768",
            "dub" => "me/too",
            "base" => "http://example.com/home/",
            "done" => "%41%",
            "umlaut" => "grün",
            _ => return None,
        })
    }

    #[track_caller]
    fn check(cases: &[(&str, &str)]) {
        for (template, expected) in cases {
            let uri = Template::parse(template).unwrap().expand(value);
            assert_eq!(uri, *expected, "{template}");
        }
    }

    #[test]
    fn a_value_cannot_break_out_of_its_place() {
        check(&[
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("s://{path}/{dub}", "s://%2Ffoo%2Fbar/me%2Ftoo"),
            ("{done}/{umlaut}", "%2541%25/gr%C3%BCn"),
        ]);
    }

    #[test]
    fn reserved_and_fragment_forms_keep_the_structure_of_a_value() {
        check(&[
            ("{+path}/here", "/foo/bar/here"),
            ("{+base}index", "http://example.com/home/index"),
            ("{+hello}", "Hello%20World!"),
            ("{+half}", "50%25"),
            ("{+done}", "%41%25"),
            ("{+x,hello,y}", "1024,Hello%20World!,768"),
            ("X{#var}", "X#value"),
            ("X{#hello}", "X#Hello%20World!"),
            ("X{#undef}", "X"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
        ]);
    }

    #[test]
    fn labels_paths_and_named_values_have_their_separators() {
        check(&[
            ("X{.var}", "X.value"),
            ("X{.x,y}", "X.1024.768"),
            ("{/var}", "/value"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{/dub}", "/me%2Ftoo"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{?x,y}", "?x=1024&y=768"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?undef,y}", "?y=768"),
            ("{?undef}", ""),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{&x,y,empty}", "&x=1024&y=768&empty="),
        ]);
    }

    #[test]
    fn modifiers_mean_what_they_mean_for_one_text() {
        check(&[
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{umlaut:3}", "gr%C3%BC"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{+path*}", "/foo/bar"),
            ("{/var*}", "/value"),
        ]);
    }

    #[test]
    fn literals_are_escaped_where_an_address_needs_it() {
        check(&[("a b/ü?%20#", "a%20b/%C3%BC?%20#"), ("", ""), ("plain://x", "plain://x")]);
    }

    #[test]
    fn what_is_no_template_is_refused() {
        let short = "{ } a{b a}b {a{b}} {{a}} {a}} {} {,} {a,} {=a} {!a} {@a} {|a} {a:} {a:0} \
                     {a:x} {a:10000} {?} {ü}";
        let long = "x".repeat(MAX_LEN + 1);
        for bad in short.split_whitespace().chain(["{a b}", &long]) {
            assert!(Template::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn placeholders_come_once_in_order_and_named_ones_may_be_left_out() {
        let template = Template::parse("s://{a}/{b,a}{?c,b,d}{+d}{#e-f}").unwrap();
        let required = |name| Placeholder { name, need: Need::Required };
        let c = Placeholder { name: "c", need: Need::Optional };
        let expected = [required("a"), required("b"), c, required("d"), required("e-f")];
        assert_eq!(template.placeholders(), expected);
        assert_eq!(Template::parse("s://x").unwrap().placeholders(), []);
    }
}

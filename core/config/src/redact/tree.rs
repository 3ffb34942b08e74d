//! Finds the secrets of a parsed file by the position of its keys and values.

use std::collections::HashSet;
use std::ops::Range;

use capstan_model::secret::{is_secret_name, looks_like_token};
use capstan_model::{Piece, SecretReference};
use capstan_safety::mask::{is_ordinary, mask_arguments, secrets_in_url};

use super::Hide;
use super::names::{
    DOORS, bare, has_chosen_names, holds_tokens, is_known, is_login, is_member, is_nearly_member,
    is_plain_map, is_plain_member,
};
use crate::source::tree::{Entry, Node, Table, Value};

/// Flags that make a `default` or `value` next to them a secret.
const SECRET_SWITCHES: [&str; 3] = ["password", "sensitive", "secret"];

/// Names of login methods, which are no secrets.
const LOGIN_KINDS: [&str; 6] = ["oauth", "oauth2", "none", "bearer", "basic", "auto"];

/// Authentication schemes before the variable of a secret.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// Tables of rules about calls, whose names or positions look like those of logins.
const RULES: [&str; 2] = ["acl", "authorization"];

/// Suffixes of the names of values that start or address a server.
///
/// A person who approves a file sees these values, whatever they look like.
const ACTIVE: [&str; 11] = [
    "args",
    "arguments",
    "cmd",
    "command",
    "cwd",
    "exec",
    "helper",
    "path",
    "script",
    "uri",
    "url",
];

/// The keys and values of a file.
#[derive(Default)]
pub(super) struct Found {
    /// The spans of all keys and values.
    pub(super) known: Vec<Range<usize>>,
    /// The spans of all secrets.
    pub(super) secret: Vec<Range<usize>>,
    /// Secrets that must not be repeated elsewhere.
    pub(super) words: Vec<String>,
    /// Keys that are secrets, however short.
    pub(super) keys: Vec<String>,
    /// Keys of unknown tables. Those that are also shown elsewhere are not hidden in messages.
    unknown_keys: Vec<String>,
    /// Keys that are shown.
    names: HashSet<String>,
}

/// The classification of a value by the tables around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Not classified.
    Plain,
    /// It is an environment variable or a header.
    Door,
    /// It belongs to a login: a secret unless its name is known.
    Login,
    /// It belongs to a map from tokens to callers.
    Tokens,
    /// It is in a table of no known schema: a secret, and so is its key.
    Unknown,
    /// It is a secret.
    Secret,
}

struct Finder<'a> {
    text: &'a str,
    hide: Hide,
    found: Found,
}

/// Finds the secrets of a file.
pub(super) fn find(table: &Table, text: &str, hide: Hide) -> Found {
    let mut finder = Finder { text, hide, found: Found::default() };
    finder.table("", table, Around::Plain);
    let Found { keys, names, unknown_keys, .. } = &mut finder.found;
    unknown_keys.retain(|key| !names.contains(key));
    keys.append(unknown_keys);
    finder.found
}

// === impl Finder ===

impl Finder<'_> {
    /// Reads the table under the key `owner`.
    fn table(&mut self, owner: &str, table: &Table, around: Around) {
        let is_on = |name: &&str| table.get(name).and_then(|it| it.node.as_bool()) == Some(true);
        let has_switch = SECRET_SWITCHES.iter().any(is_on);
        let unread = table.unread.iter().map(|(name, entry)| (name, entry));
        for (name, entry) in table.entries.iter().chain(unread) {
            self.key(name, entry, around);
            let mut inner = if has_switch && ["default", "value"].contains(&name.as_str()) {
                Around::Secret
            } else {
                inside(name, &entry.node, around)
            };
            let is_table = has_members(&entry.node);
            let is_unknown = match inner {
                Around::Plain => !has_chosen_names(owner) && !is_known(name) && !is_login(name),
                Around::Login => around == Around::Login && !is_member(name),
                Around::Door | Around::Tokens | Around::Unknown | Around::Secret => false,
            };
            let is_server = entry.node.as_table().is_some_and(is_server);
            if self.hide == Hide::EveryValue && is_table && is_unknown && !is_server {
                inner = Around::Unknown;
            }
            let name = match is_table {
                // A chosen name means nothing, except next to other tables of `mcp`.
                true if has_chosen_names(owner) && owner != "mcp" => "",
                // The name of such a map classifies its values.
                false if is_plain_map(owner) => owner,
                true | false => name,
            };
            self.node(name, &entry.node, inner);
        }
    }

    fn key(&mut self, name: &str, entry: &Entry, around: Around) {
        let is_token = around == Around::Tokens && !is_member(name);
        // A server may have any name, also a long one with a number.
        let names_server = entry.node.as_table().is_some_and(is_server);
        let looks_so = looks_like_token(name) && !names_server;
        let is_unknown = match around {
            Around::Login => !is_nearly_member(name) && !is_known(name),
            Around::Unknown => !is_known(name),
            Around::Plain | Around::Door | Around::Tokens | Around::Secret => false,
        };
        let is_excerpt = self.hide == Hide::EveryValue;
        if !is_token && !(is_excerpt && (looks_so || is_unknown)) {
            self.found.known.push(entry.key.clone());
            self.found.names.insert(name.to_owned());
            return;
        }
        let words = [Some(name.to_owned()), entry.written.clone()];
        let words = words.into_iter().flatten();
        if is_token || looks_so {
            self.hide(&entry.key, name);
            self.found.keys.extend(words.clone());
            self.found.words.extend(words);
        } else {
            self.hide(&entry.key, "");
            self.found.unknown_keys.extend(words);
        }
    }

    fn node(&mut self, name: &str, node: &Node, around: Around) {
        match &node.value {
            Value::Table(table) => self.table(name, table, around),
            Value::List(nodes) if self.hide == Hide::Secrets => {
                for node in nodes {
                    self.node(name, node, around);
                }
            }
            Value::List(nodes) => {
                let words: Vec<&str> = nodes.iter().filter_map(Node::as_text).collect();
                let mut masked = mask_arguments(words).into_iter();
                for node in nodes {
                    let shown = node.as_text().and_then(|_| masked.next());
                    match (node.as_text(), shown) {
                        (Some(text), Some(shown)) if shown != text && !is_reference(text) => {
                            self.hide(&node.span, text);
                        }
                        _ => self.node(name, node, around),
                    }
                }
            }
            Value::Text(text) => {
                if self.is_secret(name, &text.value, around) {
                    let is_named = around == Around::Secret || is_secret_name(name);
                    let word = if is_named || looks_secret(&text.value) {
                        text.value.as_str()
                    } else {
                        ""
                    };
                    self.hide(&node.span, word);
                } else {
                    self.found.known.push(node.span.clone());
                    self.in_url(&node.span, &text.value);
                }
            }
            Value::Number(number) | Value::Moment(number) => {
                let is_login = matches!(around, Around::Plain | Around::Login);
                if is_login && is_plain_member(name) || !self.is_secret(name, number, around) {
                    self.found.known.push(node.span.clone());
                } else {
                    self.hide(&node.span, number);
                }
            }
            // These reveal nothing.
            Value::Bool(_) | Value::Null => self.found.known.push(node.span.clone()),
        }
    }

    /// True if a value under this name is a secret.
    fn is_secret(&self, name: &str, value: &str, around: Around) -> bool {
        if is_reference(value) || (around == Around::Door && is_ordinary(name, value)) {
            return false;
        }
        let is_active = around != Around::Door && is_active(name);
        if self.hide == Hide::Secrets && is_active {
            return false;
        }
        let is_named = is_secret_name(name) && !is_plain_member(name);
        let is_unknown = self.hide == Hide::EveryValue && !is_known(name);
        let by_place = match around {
            Around::Plain => (is_named || is_unknown) && !LOGIN_KINDS.contains(&value),
            Around::Door => self.hide == Hide::EveryValue || is_named,
            Around::Login => !is_plain_member(name) && !LOGIN_KINDS.contains(&value),
            Around::Tokens => !is_plain_member(name),
            Around::Unknown | Around::Secret => true,
        };
        let by_look = match self.hide {
            Hide::EveryValue => looks_secret(value),
            // In ordinary text, one word that looks like a token would hide the rest of the value.
            Hide::Secrets => around != Around::Plain && looks_like_token(value),
        };
        by_place || by_look
    }

    /// Hides the password and the secret parameters of a URL that is shown.
    fn in_url(&mut self, span: &Range<usize>, url: &str) {
        let written = self.text.get(span.clone()).unwrap_or_default();
        // A URL that is written with escapes is shown unmasked.
        if let Some(at) = written.find(url) {
            let start = span.start + at;
            let secrets = secrets_in_url(url).into_iter();
            let moved = secrets.map(|secret| start + secret.start..start + secret.end);
            self.found.secret.extend(moved);
        }
    }

    /// Hides a key or a value, without its quotes.
    ///
    /// If `word` is not empty, it is hidden elsewhere too.
    fn hide(&mut self, span: &Range<usize>, word: &str) {
        let written = self.text.get(span.clone()).unwrap_or_default();
        let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| {
            let inner = written.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
            inner.is_some()
        });
        let mark = quotes.map_or(0, str::len);
        let inner = span.start + mark..span.end.saturating_sub(mark);
        self.found.known.push(span.clone());
        if !word.is_empty() {
            self.found.words.push(word.to_owned());
            self.found.words.extend(self.text.get(inner.clone()).map(str::to_owned));
        }
        self.found.secret.push(inner);
    }
}

/// True if a value is a table, or a list with a table in it.
fn has_members(node: &Node) -> bool {
    match &node.value {
        Value::Table(_) => true,
        Value::List(nodes) => nodes.iter().any(|node| node.as_table().is_some()),
        Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Moment(_) | Value::Null => {
            false
        }
    }
}

/// Returns the classification of what is inside the value of a key.
fn inside(name: &str, node: &Node, around: Around) -> Around {
    let has_members = has_members(node);
    match around {
        Around::Secret => Around::Secret,
        _ if has_members && DOORS.iter().any(|door| name.eq_ignore_ascii_case(door)) => {
            Around::Door
        }
        _ if DOORS.contains(&name) => Around::Door,
        // A server may have any name.
        Around::Plain if node.as_table().is_some_and(is_server) => Around::Plain,
        _ if has_members && holds_tokens(name) => Around::Tokens,
        // The table of the caller that a token belongs to.
        Around::Tokens if has_members => Around::Login,
        // These are rules about calls, not logins.
        Around::Plain | Around::Login if has_members && RULES.contains(&bare(name).as_str()) => {
            Around::Plain
        }
        Around::Plain if has_members && is_login(name) => Around::Login,
        Around::Plain | Around::Door | Around::Login | Around::Tokens | Around::Unknown => around,
    }
}

/// True if a server is started with the value of this name, or reached by it.
fn is_active(name: &str) -> bool {
    let bare = bare(name);
    ACTIVE.iter().any(|end| bare.ends_with(end))
}

/// True if a table defines how to reach a server.
fn is_server(table: &Table) -> bool {
    ["command", "cmd", "url", "uri", "httpUrl"].iter().any(|name| table.get(name).is_some())
}

/// True if a text looks like a secret, whatever its position.
///
/// That is a token, a password in an address, or the value of an option that takes a secret.
fn looks_secret(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let masked = mask_arguments(words.iter().copied());
    words.iter().zip(masked).any(|(word, shown)| *word != shown && !is_reference(word))
}

/// True if a text only names a variable or a stored secret, as in `Bearer ${TOKEN}`.
fn is_reference(text: &str) -> bool {
    // Whoever approves a file must see which programs it runs.
    let runs = |reference: &SecretReference| matches!(reference, SecretReference::Command(_));
    if SecretReference::all(text).iter().any(runs) {
        return true;
    }
    // Only a scheme or a flag may be in front: any other word may be a secret.
    let is_flag = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let text = match (text.split_once(' '), text.split_once('=')) {
        (Some((scheme, value)), _) if SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it)) => {
            value
        }
        (None, Some((flag, value))) if flag.chars().all(is_flag) => value,
        _ => text,
    };
    if let Ok([Piece::Reference(_)]) = SecretReference::pieces(text).as_deref() {
        return true;
    }
    let inner = text
        .strip_prefix("${")
        .or_else(|| text.strip_prefix("{env:"))
        .and_then(|rest| rest.strip_suffix('}'));
    let name = inner.or_else(|| text.strip_prefix('$')).unwrap_or_default();
    let name = name.strip_prefix("env:").or_else(|| name.strip_prefix("input:")).unwrap_or(name);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(is_word)
}

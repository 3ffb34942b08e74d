//! Replaces literal secrets in an entry with variables.

use std::collections::BTreeMap;

use capstan_config::source::{Dialect, Scope, SourceFile};
use capstan_model::secret::{MASK, is_secret_name};
use capstan_safety::mask::{mask_argument, mask_arguments, mask_url};
use serde_json::{Map, Value as Json};

use super::variables::variable_name;
use super::{Carried, Content, entries};

/// The handling of literal secrets in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// Secrets are copied.
    Keep,
    /// Secrets are replaced with variables.
    Reference,
}

/// The variables that replace secrets, each with the value that it must have.
#[derive(Default)]
pub(super) struct Vault {
    held: BTreeMap<String, String>,
}

/// The names of variables for the literal secrets in an entry of a native file.
///
/// `text` is a native file with the server.
pub fn literal_secrets(server: &str, text: &str) -> Vec<String> {
    let dialect = Some(Dialect::Native);
    let file = SourceFile { dialect, ..SourceFile::new("", Scope::Flag, text) };
    let carried =
        entries(&file, "", &super::ClientRules::default()).unwrap_or_default().into_iter();
    let carried = carried.filter_map(|read| match read.content {
        Content::Usable(carried) => Some(carried),
        Content::Itself | Content::Inside(_) | Content::Unusable(_) | Content::Restricted(_) => {
            None
        }
    });
    let mut vault = Vault::default();
    let mut names = Vec::new();
    for carried in carried {
        names.extend(carried.referenced(server, &mut vault).1);
        let document = carried.text("openapi").unwrap_or_default();
        let replaced = replaced(document, &mask_url(document), &of(server, "key"), &mut vault);
        names.extend(replaced.map(|(_, name)| name));
    }
    names
}

/// Authentication schemes before a credential.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "token "];

// === impl Carried ===

impl Carried {
    /// Returns the entry with its secrets replaced by variables, and the names of these variables.
    pub(super) fn referenced(&self, server: &str, vault: &mut Vault) -> (Self, Vec<String>) {
        let mut new = self.clone();
        let mut names = Vec::new();
        new.each_map("env", |key, value| {
            let hidden = is_secret_name(key) || mask_argument(value) != value;
            (hidden && is_literal(value)).then(|| {
                let name = vault.name_for(key, value);
                let reference = format!("${{{name}}}");
                names.push(name);
                reference
            })
        });
        new.each_map("headers", |key, value| {
            let login = key.eq_ignore_ascii_case("authorization");
            let hidden = login || is_secret_name(key) || mask_argument(value) != value;
            let scheme = SCHEMES.into_iter().find(|scheme| value.starts_with(scheme));
            let secret = value.strip_prefix(scheme.unwrap_or_default()).unwrap_or(value);
            (hidden && is_literal(secret)).then(|| {
                let word = if login { "token" } else { key };
                let name = vault.name_for(&of(server, word), secret);
                let reference = format!("{}${{{name}}}", scheme.unwrap_or_default());
                names.push(name);
                reference
            })
        });
        new.arguments(server, vault, &mut names);
        if let Some(url) = self.text("url")
            && let Some((new_url, name)) = replaced(url, &mask_url(url), &of(server, "key"), vault)
        {
            names.push(name);
            new.keys.insert("url".to_owned(), Json::String(new_url));
        }
        (new, names)
    }

    fn arguments(&mut self, server: &str, vault: &mut Vault, names: &mut Vec<String>) {
        let Some(Json::Array(args)) = self.keys.get_mut("args") else { return };
        let words: Vec<String> =
            args.iter().map(|arg| arg.as_str().unwrap_or_default().to_owned()).collect();
        let shown = mask_arguments(words.iter().map(String::as_str));
        let before = std::iter::once("").chain(words.iter().map(String::as_str));
        for (((arg, word), shown), before) in args.iter_mut().zip(&words).zip(&shown).zip(before) {
            let flag = match word.split_once(['=', ':']) {
                Some((flag, _)) if shown.starts_with(flag) => flag,
                Some(_) | None => before,
            };
            let flag = flag.trim_start_matches('-');
            let word_of_flag = if is_secret_name(flag) { flag } else { "secret" };
            if let Some((new, name)) = replaced(word, shown, &of(server, word_of_flag), vault) {
                names.push(name);
                *arg = Json::String(new);
            }
        }
    }

    fn each_map(&mut self, key: &str, mut change: impl FnMut(&str, &str) -> Option<String>) {
        let Some(Json::Object(map)) = self.keys.get_mut(key) else { return };
        let texts =
            |(key, value): (&String, &Json)| Some((key.clone(), value.as_str()?.to_owned()));
        let all: Map<String, Json> = map
            .iter()
            .filter_map(texts)
            .filter_map(|(key, value)| Some((key.clone(), Json::String(change(&key, &value)?))))
            .collect();
        map.extend(all);
    }
}

/// The name for a server's secret: the word, prefixed with the server unless it begins with it.
fn of(server: &str, word: &str) -> String {
    let (server, word) = (variable_name(server), variable_name(word));
    if word.starts_with(&server) { word } else { format!("{server}_{word}") }
}

/// True if a text is neither empty nor contains a variable.
fn is_literal(text: &str) -> bool {
    !text.is_empty() && !text.contains("${")
}

/// Replaces the masked part of a text with a variable; the whole text if there are several parts.
fn replaced(text: &str, shown: &str, name: &str, vault: &mut Vault) -> Option<(String, String)> {
    if text == shown {
        return None;
    }
    let piece = shown.split_once(MASK).filter(|(_, after)| !after.contains(MASK));
    let inner = piece.and_then(|(before, after)| {
        let inner = text.strip_prefix(before)?.strip_suffix(after)?;
        Some((before, inner, after))
    });
    let (before, secret, after) = inner.unwrap_or(("", text, ""));
    if !is_literal(secret) {
        return None;
    }
    let name = vault.name_for(name, secret);
    Some((format!("{before}${{{name}}}{after}"), name))
}

// === impl Vault ===

impl Vault {
    /// Returns a variable for a value: the first candidate name that is free or has the same value.
    fn name_for(&mut self, word: &str, value: &str) -> String {
        let first = variable_name(word);
        let mut name = first.clone();
        let mut number = 2_u32;
        while self.held.get(&name).is_some_and(|held| held != value) {
            name = format!("{first}_{number}");
            number += 1;
        }
        self.held.insert(name.clone(), value.to_owned());
        name
    }
}

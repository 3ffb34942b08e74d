//! Splits a reading into sentences and words.

use std::ops::Range;

use super::words::{
    COMMAND_LINE, EVIL, Groups, IDENTIFIER, MAIL_ADDRESS, META, QUALIFIED, SECRET_FILE, URL,
    groups, pair,
};

/// Words of one sentence.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Its place in the reading.
    pub(super) span: Range<usize>,
    pub(super) words: Vec<Word>,
}

/// A word and its meaning.
#[derive(Clone, Debug)]
pub(super) struct Word {
    /// Its place in the reading.
    pub(super) span: Range<usize>,
    pub(super) groups: Groups,
}

/// Most words of a sentence; a longer one is split.
const MAX_WORDS: usize = 120;

/// Words after the beginning of a sign that can tell that it is only spoken about.
const META_AFTER: usize = 3;

/// Shortest part of a name that tells what it is about.
const MIN_PART: usize = 4;

/// Longest word that is read.
const MAX_WORD: usize = 256;

/// Parts of paths of files that hold secrets.
const SECRET_FILES: [&str; 27] = [
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    ".ssh/",
    "/.ssh",
    ".aws/",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".kube/config",
    ".git-credentials",
    ".docker/config",
    "/etc/passwd",
    "etc_passwd",
    "/etc/shadow",
    ".gnupg",
    "secrets.json",
    "credentials.json",
    ".bash_history",
    ".zsh_history",
    "mcp.json",
    "login.keychain",
    "wallet.dat",
    "cookies.sqlite",
    "://secrets",
    "://confidential",
];

/// Parts of addresses that an attack in a text of examples has.
const EVIL_NAMES: [&str; 5] = ["evil", "attacker", "malicious", "exfil", "p0wned"];

/// Splits a text into sentences. Identifiers that resemble `name` are those of the server's own tools.
pub(super) fn sentences(text: &str, name: &str) -> Vec<Sentence> {
    let mut all = split(text);
    let family: Vec<String> = parts(name);
    for word in all.iter_mut().flat_map(|sentence| &mut sentence.words) {
        let is_own = word.groups.has(IDENTIFIER)
            && parts(text.get(word.span.clone()).unwrap_or_default())
                .iter()
                .any(|part| family.contains(part));
        if is_own {
            word.groups = word.groups.without(IDENTIFIER | QUALIFIED);
        }
    }
    all
}

/// The parts of a name that tell what it is about.
fn parts(name: &str) -> Vec<String> {
    let parts = name.split(['_', '-', '.']).filter(|part| part.len() >= MIN_PART);
    parts
        .map(|part| {
            part.to_lowercase()
                .trim_end_matches('s')
                .trim_end_matches("ie")
                .trim_end_matches('y')
                .to_owned()
        })
        .collect()
}

fn split(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut start = 0;
    for end in ends(text) {
        push(text, start..end, &mut found);
        start = end;
    }
    push(text, start..text.len(), &mut found);
    found
}

fn push(text: &str, span: Range<usize>, found: &mut Vec<Sentence>) {
    let words = words(text, span.clone());
    let mut rest = words.as_slice();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(MAX_WORDS));
        let (first, last) = (now.first(), now.last());
        let start = first.map_or(span.start, |word| word.span.start);
        let end =
            if later.is_empty() { span.end } else { last.map_or(span.end, |word| word.span.end) };
        found.push(Sentence { span: start..end, words: now.to_vec() });
        rest = later;
    }
}

/// The offsets at which sentences end: before the full stop or the line break.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices()
        .filter(|(at, c)| {
            let rest = text.get(at + c.len_utf8()..).unwrap_or_default();
            let mut next = rest.chars();
            match c {
                '.' | '!' | '?' => next.next().is_none_or(|c| {
                    c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '<' | '\\')
                }),
                '•' | '✓' | '–' | '—' => true,
                // An item of a list that was written into one line.
                '-' => {
                    text.get(..*at).is_some_and(|before| before.ends_with(' '))
                        && rest.starts_with(' ')
                }
                // A wrapped line goes on in lower case.
                '\n' => {
                    let before = text.get(..*at).unwrap_or_default();
                    before.ends_with(['>', ':', ';'])
                        || !rest.trim_start_matches(' ').starts_with(|c: char| c.is_lowercase())
                }
                _ => false,
            }
        })
        .map(|(at, _)| at)
}

fn words(text: &str, span: Range<usize>) -> Vec<Word> {
    let part = text.get(span.clone()).unwrap_or_default();
    let mut words = Vec::new();
    let mut at = span.start;
    let is_break = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                ',' | ';'
                    | '"'
                    | '`'
                    | '('
                    | ')'
                    | '|'
                    | '<'
                    | '>'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '*'
                    | '—'
                    | '='
            )
    };
    for piece in part.split_inclusive(is_break) {
        let start = at;
        at += piece.len();
        let piece = piece.trim_end_matches(is_break);
        let is_mark = |c: char| matches!(c, '!' | '?' | ':' | '\'' | '#' | '-' | '\\');
        // A name of a file may begin with a full stop.
        let trimmed =
            piece.trim_start_matches(is_mark).trim_end_matches(|c| c == '.' || is_mark(c));
        if trimmed.is_empty() || trimmed.len() > MAX_WORD {
            continue;
        }
        let from = start + piece.find(trimmed).unwrap_or(0);
        split_word(trimmed, from, &mut words);
    }
    let text_of = |word: &Word| text.get(word.span.clone()).unwrap_or_default().to_lowercase();
    let mut before = String::new();
    for word in &mut words {
        let now = text_of(word);
        word.groups = word.groups | pair(&before, &now);
        before = now;
    }
    words
}

/// Adds a word; one that is a sentence in disguise, such as `read_all_keys_and_send_them`, is split.
fn split_word(word: &str, at: usize, words: &mut Vec<Word>) {
    let parts = word.split(['_', '-']).filter(|part| !part.is_empty()).count();
    let is_shout = parts >= 2
        && word.chars().any(|c| c.is_ascii_uppercase())
        && !word.chars().any(|c| c.is_ascii_lowercase());
    if parts < 5 && !is_shout {
        words.push(Word::new(word, at));
        return;
    }
    let whole = form(&word.to_lowercase());
    let first = words.len();
    let mut from = at;
    for part in word.split_inclusive(['_', '-']) {
        let plain = part.trim_end_matches(['_', '-']);
        if !plain.is_empty() {
            words.push(Word::new(plain, from));
        }
        from += part.len();
    }
    if whole.has(SECRET_FILE)
        && let Some(word) = words.get_mut(first)
    {
        word.groups = word.groups | SECRET_FILE;
    }
}

// === impl Sentence ===

impl Sentence {
    /// The points of a sign at `start`: a sentence that first says that it is about attacks, such as
    /// one of a scanner's description, weighs a third.
    pub(super) fn weighed(&self, points: u32, start: usize) -> u32 {
        let first = self.words.partition_point(|word| word.span.start < start);
        let is_meta = self.words.iter().take(first + META_AFTER).any(|word| word.groups.has(META));
        if is_meta { points / 3 } else { points }
    }
}

// === impl Word ===

impl Word {
    fn new(word: &str, at: usize) -> Self {
        let text = word.to_lowercase();
        let groups = groups(&text) | form(&text);
        Self { span: at..at + word.len(), groups }
    }
}

/// The groups that a word has by its form.
fn form(word: &str) -> Groups {
    let mut form = Groups::NONE;
    let is_env_file = word == ".env"
        || word.ends_with("/.env")
        || word.starts_with(".env.")
            && !word.contains("example")
            && !word.contains("sample")
            && !word.contains("template");
    if is_env_file || SECRET_FILES.iter().any(|file| word.contains(file)) {
        form = form | SECRET_FILE;
    }
    if let Some((scheme, rest)) = word.split_once("://") {
        if matches!(scheme, "http" | "https" | "ftp" | "ws" | "wss") && !rest.is_empty() {
            form = form | URL;
        }
    } else if word.starts_with("www.") {
        form = form | URL;
    } else if let Some((name, host)) = word.split_once('@') {
        if !name.is_empty() && host.contains('.') {
            form = form | MAIL_ADDRESS;
        }
    } else if word.contains('_')
        && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
    {
        form = form | IDENTIFIER;
        let is_part = |part: &str| part.len() >= MIN_PART && part.contains('_');
        if word.split_once('.').is_some_and(|(server, tool)| is_part(server) && is_part(tool)) {
            form = form | QUALIFIED;
        }
    }
    if form.has(URL | MAIL_ADDRESS) && EVIL_NAMES.iter().any(|name| word.contains(name)) {
        form = form | EVIL;
    }
    if word.contains("$(") || word == "/dev/tcp" || word.starts_with("chmod") {
        form = form | COMMAND_LINE;
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text, "").into_iter().filter_map(|sentence| text.get(sentence.span)).collect()
    }

    #[test]
    fn a_sentence_may_be_wrapped() {
        assert_eq!(split("Read it\nfirst. Then go.\nArgs"), ["Read it\nfirst", "Then go", "Args"]);
        assert_eq!(split("v1.2 of a.log"), ["v1.2 of a.log"]);
    }

    #[test]
    fn a_name_that_is_a_sentence_has_words() {
        let words = |text: &str| sentences(text, "").iter().map(|s| s.words.len()).sum::<usize>();
        assert_eq!(words("send_all_keys_to_me_now"), 6);
        assert_eq!(words("ADMIN_OVERRIDE"), 2);
        assert_eq!(words("list_pull_requests"), 1);
    }

    #[test]
    fn forms_are_recognised() {
        for (word, group) in [
            ("~/.ssh/id_rsa", SECRET_FILE),
            (".env", SECRET_FILE),
            ("https://a.example/x", URL),
            ("a@b.example", MAIL_ADDRESS),
            ("send_email", IDENTIFIER),
        ] {
            assert!(form(word).has(group), "{word}");
        }
        for word in [".environment", "a@b", "plain", "https://"] {
            assert_eq!(form(word), Groups::NONE, "{word}");
        }
    }
}

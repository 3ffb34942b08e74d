//! Completes what is being typed: commands and prompts after `/`, files and resources after `@`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use capstan_app::NameCache;
use capstan_model::Kind;
use capstan_text::clean::one_line;

/// The most candidates that are offered.
const MAX_CANDIDATES: usize = 50;

/// The most files of a folder that are looked at.
const MAX_FILES: usize = 2_000;

/// The longest name that is offered.
const MAX_NAME: usize = 200;

/// The words that can be completed.
pub(crate) struct Words {
    /// Commands without the slash, each with a description.
    pub(crate) commands: Vec<(&'static str, &'static str)>,
    /// Prompts and resources that were seen before.
    pub(crate) names: Arc<dyn NameCache>,
}

/// Candidates for the word before the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Popup {
    /// The start of the word.
    pub(crate) start: usize,
    pub(crate) candidates: Vec<Candidate>,
    /// The candidate under the cursor.
    pub(crate) place: usize,
    /// True if the person has moved the cursor.
    pub(crate) moved: bool,
}

/// A candidate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The text that replaces the word.
    pub(crate) text: String,
    pub(crate) about: String,
}

// === impl Words ===

impl Words {
    /// The candidates for the word that ends at the cursor; `None` if there are none.
    pub(crate) fn complete(&self, text: &str, cursor: usize) -> Option<Popup> {
        let before = text.get(..cursor)?;
        let start = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        });
        let word = before.get(start..)?;
        let mut candidates = if start == 0 && word.starts_with('/') {
            self.commands(word)
        } else if let Some(name) = word.strip_prefix('@') {
            let mut all = files(name);
            all.extend(self.known(Kind::Resource, "@", word));
            all
        } else {
            return None;
        };
        candidates.retain(|candidate| candidate.text.trim_end() != word);
        candidates.truncate(MAX_CANDIDATES);
        (!candidates.is_empty()).then_some(Popup { start, candidates, place: 0, moved: false })
    }

    fn commands(&self, word: &str) -> Vec<Candidate> {
        let own = self.commands.iter().map(|(name, about)| Candidate {
            text: format!("/{name} "),
            about: (*about).to_owned(),
        });
        let own = own.filter(|candidate| candidate.text.starts_with(word));
        own.chain(self.known(Kind::Prompt, "/", word)).collect()
    }

    fn known(&self, kind: Kind, sign: &str, word: &str) -> Vec<Candidate> {
        let each =
            self.names.remembered(kind).into_iter().flat_map(|(server, names)| {
                names.into_iter().map(move |name| (server.clone(), name))
            });
        let wanted = word.strip_prefix(sign).unwrap_or_default().to_lowercase();
        let fits = |server: &str, name: &str| {
            let full = format!("{server}:{name}").to_lowercase();
            full.starts_with(&wanted)
                || (!wanted.is_empty() && name.to_lowercase().starts_with(&wanted))
        };
        let each =
            each.filter(|(server, name)| fits(server, name)).map(|(server, name)| Candidate {
                text: one_line(&format!("{sign}{server}:{name}"), MAX_NAME) + " ",
                about: format!("{} of {server}", kind.as_str()),
            });
        each.take(MAX_CANDIDATES).collect()
    }
}

/// The files whose path begins with these letters.
fn files(typed: &str) -> Vec<Candidate> {
    let (folder, name) = match typed.rsplit_once('/') {
        Some((folder, name)) => (format!("{folder}/"), name),
        None => (String::new(), typed),
    };
    let place = if folder.is_empty() { Path::new(".") } else { Path::new(&folder) };
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.take(MAX_FILES).flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let is_hidden = file.starts_with('.') && !name.starts_with('.');
        if is_hidden || !file.starts_with(name) || file.contains(char::is_whitespace) {
            continue;
        }
        let is_folder = entry.path().is_dir();
        let end = if is_folder { "/" } else { " " };
        let about = if is_folder { "folder" } else { "file" };
        found.push(Candidate {
            text: format!("@{folder}{}{end}", one_line(&file, MAX_NAME)),
            about: about.to_owned(),
        });
    }
    found.sort_by(|a, b| a.text.cmp(&b.text));
    found
}

// === impl Popup ===

impl Popup {
    pub(crate) fn up(&mut self) {
        self.place = self.place.checked_sub(1).unwrap_or(self.candidates.len().saturating_sub(1));
        self.moved = true;
    }

    pub(crate) fn down(&mut self) {
        self.place = if self.place + 1 < self.candidates.len() { self.place + 1 } else { 0 };
        self.moved = true;
    }

    pub(crate) fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.place)
    }
}

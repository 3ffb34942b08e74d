//! The words of a call, with the texts of stdin and of the files that they refer to.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use capstan_wire::Json;

use super::schema::Schema;
use super::{ArgumentError, is_object_text, pairs, refuse_missing, whole, words};
use crate::clean::one_line;

/// Maximum number of bytes of stdin, and of all files together.
pub(super) const MAX_INPUT: usize = 16 * 1024 * 1024;

/// Maximum length of a path that a message repeats.
const MAX_SHOWN: usize = 200;

/// The arguments of a call as typed, with everything that they refer to.
#[derive(Clone, Debug, Default)]
pub struct Given {
    words: Vec<String>,
    stdin: String,
    files: Files,
}

/// The texts of files, by path as typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(BTreeMap<String, Result<String, Unread>>);

/// The reason why there is no text of a file.
#[derive(Clone, Debug)]
enum Unread {
    TooLarge,
    Binary,
    Failed(Arc<io::Error>),
}

/// A source of input. It must return at most one byte more than the limit.
pub trait Input {
    /// Reads stdin.
    fn stdin(&self, limit: usize) -> io::Result<Vec<u8>>;
    /// Reads a file.
    fn file(&self, path: &str, limit: usize) -> io::Result<Vec<u8>>;
}

/// True if words refer to stdin or to a file, so that [`Given::read`] may block.
pub fn needs_input(words: &[String]) -> bool {
    words.iter().any(|word| word == "-" || word.starts_with('@') || word.contains("=@"))
}

// === impl Given ===

impl Given {
    /// Reads everything that the words refer to.
    ///
    /// # Errors
    /// If stdin cannot be read, is too large, or is not text. [`Given::build`] reports such files.
    pub fn read(mut words: Vec<String>, input: &impl Input) -> Result<Self, ArgumentError> {
        if matches!(words.as_slice(), [dashes, _] if dashes == "--") {
            words.remove(0);
        }
        let mut given = Self { words, ..Self::default() };
        match given.words.as_slice() {
            [word] if word == "-" => given.stdin = read_stdin(input)?,
            [word] if is_object_text(word) => {}
            words => given.files = Files::read(words, input),
        }
        Ok(given)
    }

    /// Builds the arguments for a tool with this input schema.
    ///
    /// # Errors
    /// If they do not fit the schema, or the text of a file is missing.
    pub fn build(&self, schema: &Json) -> Result<Json, ArgumentError> {
        // A schema that cannot be parsed requires nothing here; the server validates the arguments.
        let schema = schema.read().unwrap_or_default();
        let schema = Schema::new(&schema);
        let arguments = match self.words.as_slice() {
            [word] if word == "-" => whole(self.stdin.clone(), "stdin")?,
            [word] if is_object_text(word) => whole(word.clone(), "the argument")?,
            words => {
                if let Some(word) = words.iter().find(|word| *word == "-" || is_object_text(word)) {
                    return Err(ArgumentError::Alone { word: one_line(word, 20) });
                }
                return words::build(words, &self.files, schema);
            }
        };
        refuse_missing(&arguments, schema, "")?;
        Ok(arguments)
    }
}

// === impl Files ===

impl Files {
    /// Reads the files that words may refer to. Whether `--key` takes the next word depends on the
    /// schema, so a file that cannot be read is an error only where its text is used.
    fn read(words: &[String], input: &impl Input) -> Self {
        let mut files = BTreeMap::new();
        let mut left = MAX_INPUT;
        for path in pairs::possible_paths(words) {
            if files.contains_key(path) {
                continue;
            }
            let text = match input.file(path, left) {
                Ok(bytes) if bytes.len() > left => Err(Unread::TooLarge),
                Ok(bytes) => {
                    left -= bytes.len();
                    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
                    text.ok_or(Unread::Binary)
                }
                Err(cause) => Err(Unread::Failed(Arc::new(cause))),
            };
            files.insert(path.to_owned(), text);
        }
        Self(files)
    }

    /// The text of a file, for the value of a key.
    ///
    /// # Errors
    /// If the file could not be read.
    pub(super) fn text(&self, key: &str, path: &str) -> Result<&str, ArgumentError> {
        let (shown, key) = (one_line(path, MAX_SHOWN), one_line(key, MAX_SHOWN));
        match self.0.get(path) {
            Some(Ok(text)) => Ok(text),
            Some(Err(Unread::TooLarge)) => {
                Err(ArgumentError::FileTooLarge { path: shown, limit: MAX_INPUT })
            }
            Some(Err(Unread::Binary)) => Err(ArgumentError::Binary { key, path: shown }),
            Some(Err(Unread::Failed(cause))) => {
                let cause = io::Error::new(cause.kind(), Arc::clone(cause));
                Err(ArgumentError::File { key, path: shown, cause })
            }
            None => {
                let cause = io::Error::new(io::ErrorKind::NotFound, "it was not read");
                Err(ArgumentError::File { key, path: shown, cause })
            }
        }
    }
}

fn read_stdin(input: &impl Input) -> Result<String, ArgumentError> {
    let bytes = input.stdin(MAX_INPUT).map_err(ArgumentError::Stdin)?;
    if bytes.len() > MAX_INPUT {
        return Err(ArgumentError::TooLarge { limit: MAX_INPUT });
    }
    let not_text = |cause| ArgumentError::Stdin(io::Error::new(io::ErrorKind::InvalidData, cause));
    String::from_utf8(bytes).map_err(not_text)
}

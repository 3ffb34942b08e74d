//! Documents in several files: the files beside a document are embedded, and references rewritten.
//!
//! **Invariant:** nothing outside the document's own folder is read, by `..` or by a link, and
//! nothing from the web. Both the number of files and their size are bounded.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::document::load::{MAX_DOCUMENT, read_file};
use crate::document::{Document, unescape};

/// The largest number of files of a document besides the first.
const MAX_FILES: usize = 64;

/// The member of the document in which the other files are embedded.
const PLACE: &str = "x-capstan-files";

/// The files that are being embedded.
struct Files {
    /// The folder of the document.
    folder: PathBuf,
    /// The other files, in the order of their numbers.
    paths: Vec<PathBuf>,
    /// The parsed contents, by number.
    read: Map<String, Value>,
    /// The number of bytes that may still be read.
    left: usize,
}

// === impl Document ===

impl Document {
    /// Embeds the files that a document in this file refers to.
    /// Returns a description of the references that could not be followed. `file` is `None` for a
    /// document from the web, which must be in one piece.
    pub(crate) fn take_in(&mut self, file: Option<&Path>) -> Option<String> {
        let folder = file.and_then(|file| file.parent()).map(|folder| {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
        });
        let (mut problem, mut root) = (None, std::mem::take(&mut self.root));
        let Some(folder) = folder else {
            each_reference(&mut root, &mut |reference| {
                if !reference.starts_with('#') {
                    problem.get_or_insert_with(|| refused(reference, "leaves the document"));
                }
                None
            });
            self.root = root;
            return problem;
        };
        let mut files = Files {
            folder: folder.clone(),
            paths: Vec::new(),
            read: Map::new(),
            left: MAX_DOCUMENT,
        };
        files.rewrite(&mut root, &folder, None, &mut problem);
        let mut next = 0;
        while let Some(path) = files.paths.get(next).cloned() {
            let mut value = files.load(&path).unwrap_or_else(|why| {
                problem.get_or_insert_with(|| refused(&path.display().to_string(), &why));
                Value::Null
            });
            let within = path.parent().unwrap_or(&folder).to_owned();
            files.rewrite(&mut value, &within, Some(next), &mut problem);
            files.read.insert(next.to_string(), value);
            next += 1;
        }
        if let (Some(members), false) = (root.as_object_mut(), files.read.is_empty()) {
            members.insert(PLACE.to_owned(), Value::Object(files.read));
        }
        self.root = root;
        problem
    }
}

// === impl Files ===

impl Files {
    /// Rewrites the references of a file to the embedded contents. `own` is its number.
    fn rewrite(
        &mut self,
        value: &mut Value,
        folder: &Path,
        own: Option<usize>,
        problem: &mut Option<String>,
    ) {
        each_reference(value, &mut |reference| {
            let (name, pointer) = reference.split_once('#').unwrap_or((reference, ""));
            let number = if name.is_empty() { Ok(own?) } else { self.number(name, folder) };
            match number {
                Ok(number) => Some(format!("#/{PLACE}/{number}{pointer}")),
                Err(why) => {
                    problem.get_or_insert_with(|| refused(reference, &why));
                    None
                }
            }
        });
    }

    /// The number of a file; a new file gets the next number.
    fn number(&mut self, name: &str, folder: &Path) -> Result<usize, String> {
        if name.contains("://") || name.starts_with("//") {
            return Err("is a web address".to_owned());
        }
        let name = unescape(name).ok_or("is not a path")?;
        let out = || "leaves the document's folder".to_owned();
        // Not even its existence is checked.
        if Path::new(&name).is_absolute() {
            return Err(out());
        }
        let path = folder.join(&name);
        let path = path.canonicalize().map_err(|error| format!("cannot be followed: {error}"))?;
        if !path.starts_with(&self.folder) {
            return Err(out());
        }
        if let Some(number) = self.paths.iter().position(|known| *known == path) {
            return Ok(number);
        }
        if self.paths.len() == MAX_FILES {
            return Err(format!("is one of more than {MAX_FILES} files"));
        }
        self.paths.push(path);
        Ok(self.paths.len() - 1)
    }

    fn load(&mut self, path: &Path) -> Result<Value, String> {
        let text = read_file(path, None).map_err(|error| format!("cannot be read: {error}"))?;
        let left = self.left.checked_sub(text.len());
        self.left = left.ok_or("is too large together with the others")?;
        Document::value(&text).map_err(|error| format!("cannot be read: {error}"))
    }
}

fn refused(reference: &str, why: &str) -> String {
    format!("the reference `{reference}` {why}")
}

/// Replaces each reference by the result of `with`, if there is one.
fn each_reference(value: &mut Value, with: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if let (Value::String(text), "$ref") = (&mut *value, key.as_str()) {
                    *text = with(text).unwrap_or_else(|| std::mem::take(text));
                } else {
                    each_reference(value, with);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_reference(item, with)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// A document in a folder of its own, with these files beside it.
    fn taken_in(document: &Value, files: &[(&str, &str)]) -> (Document, Option<String>) {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("api");
        fs::create_dir_all(folder.join("parts")).unwrap();
        fs::write(parent.path().join("outside.json"), r#"{"x":"outside"}"#).unwrap();
        std::os::unix::fs::symlink(parent.path().join("outside.json"), folder.join("link.json"))
            .unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        let mut document = Document::parse(&document.to_string()).unwrap();
        let problem = document.take_in(Some(&folder.join("api.json")));
        (document, problem)
    }

    #[test]
    fn references_lead_from_file_to_file_within_the_folder() {
        let document = json!({"openapi": "3.0.0", "a": {"$ref": "parts/one.yaml#/pet"},
            "b": {"$ref": "./parts/two%20b.json"}, "c": {"$ref": "#/a"}});
        let files = [
            ("parts/one.yaml", "pet: { $ref: 'two b.json#/x~1y' }\nself: { $ref: '#/pet' }"),
            ("parts/two b.json", r#"{"x/y": {"n": 1, "up": {"$ref": "../parts/one.yaml#/self"}}}"#),
        ];
        let (document, problem) = taken_in(&document, &files);
        assert_eq!(problem, None);
        let at = |key: &str| document.object(&document.root[key]).unwrap();
        assert_eq!((&at("a")["n"], &at("c")["n"]), (&json!(1), &json!(1)));
        assert_eq!(document.object(&at("a")["up"]).unwrap()["n"], 1);
        assert_eq!(at("b")["x/y"]["n"], 1);
    }

    #[test]
    fn nothing_else_is_read_and_what_is_not_followed_is_named() {
        let elsewhere = tempfile::tempdir().unwrap();
        let there = elsewhere.path().join("x.json");
        fs::write(&there, r#"{"x":"outside"}"#).unwrap();
        let absolute = there.display().to_string();
        let missing = elsewhere.path().join("y.json").display().to_string();
        for (reference, why) in [
            ("../outside.json", "leaves the document's folder"),
            ("parts/../../outside.json#/x", "leaves the document's folder"),
            ("%2e%2e/outside.json", "leaves the document's folder"),
            ("link.json#/x", "leaves the document's folder"),
            (absolute.as_str(), "leaves the document's folder"),
            (missing.as_str(), "leaves the document's folder"),
            ("https://h.example/x.json", "is a web address"),
            ("file:///etc/passwd", "is a web address"),
            ("//h.example/x.json", "is a web address"),
            ("missing.json", "cannot be followed"),
            ("parts", "cannot be read"),
            ("broken.json", "cannot be read"),
        ] {
            let document = json!({"openapi": "3.0.0", "a": {"$ref": reference}});
            let (document, problem) = taken_in(&document, &[("broken.json", "{")]);
            let problem = problem.unwrap();
            assert!(problem.contains(why), "{reference}: {problem}");
            assert!(!document.root.to_string().contains("\"outside\""), "{reference}");
            assert!(document.object(&document.root["a"]).is_none(), "{reference}");
        }
        let text = json!({"openapi": "3.0.0", "a": {"$ref": "other.json"}}).to_string();
        let problem = Document::parse(&text).unwrap().take_in(None).unwrap();
        assert_eq!(problem, "the reference `other.json` leaves the document");
    }

    #[test]
    fn files_are_counted() {
        let parts: Vec<Value> =
            (0..=MAX_FILES).map(|n| json!({"$ref": format!("parts/{n}.json")})).collect();
        let names: Vec<String> = (0..=MAX_FILES).map(|n| format!("parts/{n}.json")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "{}")).collect();
        let (_, problem) = taken_in(&json!({"openapi": "3.0.0", "a": parts}), &files);
        assert!(problem.unwrap().contains("more than 64 files"));
    }
}

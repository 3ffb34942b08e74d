//! The `files` server: lists, reads and searches below one folder, and changes nothing.

mod root;
mod walk;
mod content;
mod tools;

use std::fs;
use std::io;
use std::path::Path;

use globset::GlobBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::describe::{Answer, Tool, parse, text_block};
use crate::fault::Fault;
use crate::server::{Profile, Prompts, Resources, Server};
use content::Content;
use root::Root;

/// Most entries `list_folder` answers with.
const MAX_ENTRIES: usize = 1_000;

/// Most paths `find_files` and `resources/list` answer with.
const MAX_PATHS: usize = 1_000;

/// Most lines `search_text` answers with.
const MAX_MATCHES: usize = 200;

/// Lines `read_file` answers with when not told how many.
const DEFAULT_LINES: u64 = 2_000;

/// How every URI of this server begins; the folder appears as the root of the file system.
const SCHEME: &str = "file:///";

/// The server; see [`Root`] for what keeps it below its folder.
pub(crate) struct Files {
    root: Root,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFolder {
    #[serde(default)]
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindFiles {
    pattern: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchText {
    query: String,
    #[serde(default)]
    path: String,
}

// === impl Files ===

impl Files {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { root: Root::open(root)? })
    }

    fn list_folder(&self, asked: &ListFolder) -> Result<Answer, Fault> {
        let folder = self.root.folder(&asked.path)?;
        let problem = Fault::io("list", &asked.path);
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(&problem)? {
            let entry = entry.map_err(&problem)?;
            // Not followed: a link is shown as one, wherever it leads.
            let about = entry.metadata().map_err(&problem)?;
            let kind = match about.file_type() {
                kind if kind.is_dir() => "folder",
                kind if kind.is_file() => "file",
                kind if kind.is_symlink() => "link",
                _ => "other",
            };
            entries.push((entry.file_name().to_string_lossy().into_owned(), kind, about.len()));
        }
        entries.sort();
        let truncated = entries.len() > MAX_ENTRIES;
        let entries: Vec<Value> = entries
            .into_iter()
            .take(MAX_ENTRIES)
            .map(|(name, kind, size)| match kind {
                "file" => json!({ "name": name, "kind": kind, "size": size }),
                _ => json!({ "name": name, "kind": kind }),
            })
            .collect();
        Ok(Answer::structured(json!({ "entries": entries, "truncated": truncated })))
    }

    fn read_file(&self, asked: &ReadFile) -> Result<Answer, Fault> {
        let first = asked.offset.unwrap_or(1);
        let limit = asked.limit.unwrap_or(DEFAULT_LINES);
        if first == 0 || limit == 0 {
            return Err(Fault::refused("`offset` and `limit` count lines from 1"));
        }
        let path = self.root.file(&asked.path)?;
        match content::read(&path, first, limit).map_err(Fault::io("read", &asked.path))? {
            Content::Text { text, next } => {
                let mut answer = Answer::text(text);
                if let Some(next) = next {
                    let more = format!("The file goes on; read from line {next} with `offset`.");
                    answer.content.push(text_block(more));
                }
                Ok(answer)
            }
            Content::Binary { blob } => {
                let uri = uri_of(&self.root.relative(&path));
                let mime = content::mime_type(&path).unwrap_or("application/octet-stream");
                let resource = json!({ "uri": uri, "mimeType": mime, "blob": blob });
                let block = json!({ "type": "resource", "resource": resource });
                Ok(Answer { content: vec![block], structured: None, event: None })
            }
            Content::TooLarge { size } => Err(too_large(&asked.path, size)),
        }
    }

    fn find_files(&self, asked: &FindFiles) -> Result<Answer, Fault> {
        let matcher = GlobBuilder::new(&asked.pattern)
            .literal_separator(true)
            .build()
            .map_err(|problem| Fault::refused(format!("invalid pattern: {problem}")))?
            .compile_matcher();
        // A bare `*.md` means every such file, as people expect who do not think in globs.
        let by_name = !asked.pattern.contains('/');
        let walk = walk::files(&self.root, self.root.path());
        let fits = |path: &&String| {
            let name = path.rsplit('/').next().unwrap_or(path);
            matcher.is_match(if by_name { name } else { path.as_str() })
        };
        let found: Vec<&String> = walk.files.iter().filter(fits).collect();
        let truncated = walk.truncated || found.len() > MAX_PATHS;
        let found = found.get(..MAX_PATHS).unwrap_or(&found);
        Ok(Answer::structured(json!({ "paths": found, "truncated": truncated })))
    }

    fn search_text(&self, asked: &SearchText) -> Result<Answer, Fault> {
        if asked.query.is_empty() {
            return Err(Fault::refused("`query` is empty"));
        }
        let below = self.root.folder(&asked.path)?;
        let walk = walk::files(&self.root, &below);
        let mut truncated = walk.truncated;
        let mut matches = Vec::new();
        'files: for path in &walk.files {
            for (line, text) in content::search(&self.root.path().join(path), &asked.query) {
                if matches.len() == MAX_MATCHES {
                    truncated = true;
                    break 'files;
                }
                matches.push(json!({ "path": path, "line": line, "text": text }));
            }
        }
        Ok(Answer::structured(json!({ "matches": matches, "truncated": truncated })))
    }
}

impl Server for Files {
    fn profile(&self) -> Profile {
        Profile {
            name: "files",
            title: "Files",
            instructions: "Reads the files below one folder and cannot change them. Paths are \
                           relative to that folder; in resources it appears as `file:///`.",
            resources: Resources::Unannounced,
            prompts: Prompts::None,
        }
    }

    fn tools(&self) -> Vec<Tool> {
        tools::all()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, Fault> {
        match tool {
            "list_folder" => self.list_folder(&parse(tool, arguments)?),
            "read_file" => self.read_file(&parse(tool, arguments)?),
            "find_files" => self.find_files(&parse(tool, arguments)?),
            "search_text" => self.search_text(&parse(tool, arguments)?),
            _ => Err(Fault::UnknownTool { name: tool.to_owned() }),
        }
    }

    fn resources(&mut self) -> Result<Vec<Value>, Fault> {
        let walk = walk::files(&self.root, self.root.path());
        let listed = walk.files.iter().take(MAX_PATHS).map(|path| {
            let mut resource = json!({ "uri": uri_of(path), "name": path });
            let mime = content::mime_type(Path::new(path));
            if let (Some(object), Some(mime)) = (resource.as_object_mut(), mime) {
                object.insert("mimeType".to_owned(), json!(mime));
            }
            resource
        });
        Ok(listed.collect())
    }

    fn templates(&self) -> Vec<Value> {
        vec![json!({
            "uriTemplate": "file:///{path}",
            "name": "file",
            "title": "A file",
            "description": "Any file below the folder, by its path from there",
        })]
    }

    fn read(&mut self, uri: &str) -> Result<Value, Fault> {
        let unknown = || Fault::UnknownResource { uri: uri.to_owned() };
        let path = uri.strip_prefix(SCHEME).and_then(percent_decode).ok_or_else(unknown)?;
        let file = self.root.file(&path)?;
        let mime = content::mime_type(&file);
        match content::read(&file, 1, u64::MAX).map_err(Fault::io("read", &path))? {
            Content::Text { text, next: None } => {
                Ok(json!({ "uri": uri, "mimeType": mime.unwrap_or("text/plain"), "text": text }))
            }
            Content::Text { next: Some(_), .. } => {
                let reason = format!("`{path}` is too large for a resource; use `read_file`");
                Err(Fault::refused(reason))
            }
            Content::Binary { blob } => {
                let mime = mime.unwrap_or("application/octet-stream");
                Ok(json!({ "uri": uri, "mimeType": mime, "blob": blob }))
            }
            Content::TooLarge { size } => Err(too_large(&path, size)),
        }
    }
}

fn too_large(path: &str, size: u64) -> Fault {
    let limit = content::MAX_BLOB;
    Fault::refused(format!("`{path}` is not text and has {size} bytes; the limit is {limit}"))
}

/// The URI of a path below the folder.
fn uri_of(path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    for &byte in path.as_bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        if plain {
            uri.push(char::from(byte));
        } else {
            uri.extend(['%', hex(byte >> 4), hex(byte & 0xf)]);
        }
    }
    uri
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase()
}

/// Undoes `%XX`; `None` when that is not possible or not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok()
}

//! The content of a file: text by lines, other bytes whole, never more than a bounded amount.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::base64;

/// Most text of one answer, in bytes.
const MAX_TEXT: u64 = 256 * 1024;

/// Largest file that is not text, in bytes.
pub(super) const MAX_BLOB: u64 = 512 * 1024;

/// Largest file that is searched, in bytes.
const MAX_SEARCHED: u64 = 4 * 1024 * 1024;

/// Longest line shown by a search, in bytes.
const MAX_SHOWN: usize = 300;

/// A file, or part of it.
pub(super) enum Content {
    /// Lines, and the number of the one that would follow.
    Text { text: String, next: Option<u64> },
    /// All of it, as base64.
    Binary { blob: String },
    /// Not text, and beyond [`MAX_BLOB`].
    TooLarge { size: u64 },
}

/// Reads up to `limit` lines from line `first`, or all of a file that is not text.
pub(super) fn read(path: &Path, first: u64, limit: u64) -> io::Result<Content> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    if !is_text(reader.fill_buf()?) {
        return binary(reader, size);
    }
    let mut text = Vec::new();
    let mut line = Vec::new();
    let mut number = 0;
    let end = first.saturating_add(limit);
    loop {
        line.clear();
        // A line beyond the bound counts as several, so that memory stays bounded.
        if reader.by_ref().take(MAX_TEXT).read_until(b'\n', &mut line)? == 0 {
            return Ok(Content::Text { text: lossy(&text), next: None });
        }
        number += 1;
        if number < first {
            continue;
        }
        let full = !text.is_empty() && (text.len() + line.len()) as u64 > MAX_TEXT;
        if full || number == end {
            return Ok(Content::Text { text: lossy(&text), next: Some(number) });
        }
        text.extend_from_slice(&line);
    }
}

/// The lines that contain `query`, numbered from 1; none of a file that is large or not text.
pub(super) fn search(path: &Path, query: &str) -> Vec<(usize, String)> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut bytes = Vec::new();
    let read = file.take(MAX_SEARCHED + 1).read_to_end(&mut bytes);
    if read.is_err() || bytes.len() as u64 > MAX_SEARCHED || !is_text(&bytes) {
        return Vec::new();
    }
    let exact = query.chars().any(char::is_uppercase);
    let contains = |line: &str| {
        if exact { line.contains(query) } else { line.to_lowercase().contains(query) }
    };
    let text = lossy(&bytes);
    let numbered = text.lines().enumerate().filter(|(_, line)| contains(line));
    numbered.map(|(index, line)| (index + 1, shorten(line))).collect()
}

/// The media type of a file by its name, where the name says it.
pub(super) fn mime_type(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" => "text/javascript",
        "rs" => "text/x-rust",
        "py" => "text/x-python",
        "json" => "application/json",
        "toml" => "application/toml",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        _ => return None,
    })
}

fn binary(mut reader: BufReader<File>, size: u64) -> io::Result<Content> {
    let mut bytes = Vec::new();
    reader.by_ref().take(MAX_BLOB + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BLOB {
        return Ok(Content::TooLarge { size });
    }
    Ok(Content::Binary { blob: base64::encode(&bytes) })
}

/// Whether the beginning of a file looks like text; a character may be cut off at its end.
fn is_text(head: &[u8]) -> bool {
    let utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(problem) => problem.error_len().is_none(),
    };
    utf8 && !head.contains(&0)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shorten(line: &str) -> String {
    let end = line.floor_char_boundary(MAX_SHOWN);
    match line.split_at_checked(end) {
        Some((shown, rest)) if !rest.is_empty() => format!("{shown}…"),
        _ => line.to_owned(),
    }
}

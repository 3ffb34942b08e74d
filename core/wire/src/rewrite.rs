//! Replaces chosen strings of a JSON text while it passes, piece by piece.
//!
//! The strings are chosen by their paths. All other bytes pass as they are, and a piece without a
//! replaced string is not copied. The text must be well-formed, which [`walk`](crate::walk) checks
//! first.

use bytes::Bytes;

use crate::scan::Quoted;
use crate::{Json, compose, object, plain};

/// The names of the members that lead to a string; [`ANY`] stands for any item of a list.
pub type Path = &'static [&'static str];

/// The segment of a [`Path`] that stands for any item of a list.
pub const ANY: &str = "*";

/// Longest name that is compared, with its quotes and escapes, in bytes.
const MAX_NAME: usize = 160;

/// Longest string that is replaced, with its quotes and escapes, in bytes. Longer ones pass.
const MAX_TEXT: usize = 64 * 1024;

/// Replaces strings in a text that comes in pieces. Pieces may end anywhere.
#[derive(Debug)]
pub struct Rewriter {
    /// At most 64: each has a bit in the masks.
    paths: &'static [Path],
    state: State,
    /// The open objects and lists that a path leads into.
    open: Vec<Level>,
    /// The number of open objects and lists below them, which no path leads into.
    skipped: usize,
    /// The beginning of a name or string that continues in the next piece.
    held: Vec<u8>,
    is_changed: bool,
}

/// An open object or list.
#[derive(Debug)]
struct Level {
    /// The paths that lead here.
    here: u64,
    /// The paths that lead to the value that comes next.
    next: u64,
    is_list: bool,
    awaits_name: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Between,
    Text { role: Role, is_escaped: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A name that decides which paths lead on.
    Name,
    /// A string that may be replaced.
    Chosen,
    Other,
}

/// Replaces strings of a complete text; `None` if none is replaced.
pub fn strings(
    json: &Json,
    paths: &'static [Path],
    replace: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<Json> {
    let mut rewriter = Rewriter::new(paths);
    let text = rewriter.push(json.bytes().clone(), replace);
    rewriter.is_changed.then(|| Json::composed(text.into()))
}

/// True if a text may have a member with one of these words in its name. Most texts have none, and
/// that costs almost nothing to find out. The words must need no escapes.
pub fn may_have(json: &Json, words: &[&str]) -> bool {
    object::may_name(json, words)
}

// === impl Rewriter ===

impl Rewriter {
    /// Creates a rewriter for strings at these paths.
    pub fn new(paths: &'static [Path]) -> Self {
        debug_assert!(paths.len() <= 64, "a path has a bit in a mask");
        Self {
            paths,
            state: State::Between,
            open: Vec::new(),
            skipped: 0,
            held: Vec::new(),
            is_changed: false,
        }
    }

    /// Returns the next piece with its strings replaced. A string that is not complete yet is held
    /// back and comes with a later piece. `replace` returns `None` for a string that stays.
    #[expect(clippy::too_many_lines, reason = "one loop over the bytes, with its state in locals")]
    pub fn push(&mut self, piece: Bytes, replace: &mut dyn FnMut(&str) -> Option<String>) -> Bytes {
        let text: &[u8] = &piece;
        let mut out = Vec::new();
        // The bytes before `done` are in `out`. The current string began at `start`.
        let (mut done, mut start, mut at) = (0, 0, 0);
        while let Some(&byte) = text.get(at) {
            match &mut self.state {
                State::Between => {
                    if byte == b'"' {
                        start = at;
                        let role = self.role();
                        self.state = State::Text { role, is_escaped: false };
                    } else {
                        self.structure(byte);
                    }
                    at += 1;
                }
                State::Text { is_escaped, .. } if *is_escaped => {
                    *is_escaped = false;
                    at += 1;
                }
                State::Text { role, is_escaped } => {
                    let rest = text.get(at..).unwrap_or_default();
                    at += plain::quoted(rest);
                    match text.get(at) {
                        Some(b'\\') => *is_escaped = true,
                        Some(_) => {
                            let role = *role;
                            self.state = State::Between;
                            let read = text.get(start..=at).unwrap_or_default();
                            match role {
                                Role::Other => {}
                                Role::Name => self.named(read),
                                Role::Chosen => {
                                    let is_held = !self.held.is_empty();
                                    if is_held {
                                        // Nothing of this piece is out: it began inside the string.
                                        self.held.extend_from_slice(read);
                                        let whole = std::mem::take(&mut self.held);
                                        let new = self.replaced(&whole, replace);
                                        out.extend_from_slice(new.as_deref().unwrap_or(&whole));
                                        done = at + 1;
                                    } else if let Some(new) = self.replaced(read, replace) {
                                        out.extend_from_slice(
                                            text.get(done..start).unwrap_or_default(),
                                        );
                                        out.extend_from_slice(&new);
                                        done = at + 1;
                                    }
                                }
                            }
                        }
                        None => {}
                    }
                    at += 1;
                }
            }
        }
        if let State::Text { role, is_escaped } = self.state {
            let rest = text.get(start..).unwrap_or_default();
            match role {
                Role::Other => {}
                // One byte more than the longest name shows that this one is longer.
                Role::Name => {
                    let room = (MAX_NAME + 1).saturating_sub(self.held.len());
                    self.held.extend_from_slice(rest.get(..room).unwrap_or(rest));
                }
                Role::Chosen => {
                    out.extend_from_slice(text.get(done..start).unwrap_or_default());
                    self.held.extend_from_slice(rest);
                    done = text.len();
                    if self.held.len() > MAX_TEXT {
                        out.append(&mut self.held);
                        self.state = State::Text { role: Role::Other, is_escaped };
                    }
                }
            }
        }
        if done == 0 && out.is_empty() {
            return piece;
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        out.into()
    }

    /// The role of the string that begins now.
    fn role(&self) -> Role {
        let depth = self.open.len();
        match self.open.last() {
            _ if self.skipped > 0 => Role::Other,
            None => Role::Other,
            Some(level) if level.awaits_name => Role::Name,
            Some(level) => {
                let ends = self.of(level.next).any(|path| path.len() == depth);
                if ends { Role::Chosen } else { Role::Other }
            }
        }
    }

    /// Handles a byte outside of strings.
    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' if self.skipped > 0 => self.skipped += 1,
            b'{' | b'[' => {
                let here = self.open.last().map_or(u64::MAX, |level| level.next);
                if here == 0 {
                    self.skipped = 1;
                    return;
                }
                let is_list = byte == b'[';
                let next = if is_list { self.beyond(here, self.open.len(), ANY) } else { 0 };
                self.open.push(Level { here, next, is_list, awaits_name: !is_list });
            }
            b'}' | b']' if self.skipped > 0 => self.skipped -= 1,
            b'}' | b']' => drop(self.open.pop()),
            b',' if self.skipped == 0 => {
                if let Some(level) = self.open.last_mut() {
                    level.awaits_name = !level.is_list;
                }
            }
            _ => {}
        }
    }

    /// Handles the end of a name.
    fn named(&mut self, read: &[u8]) {
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(read);
        // A name that was cut off has no closing quote in the right place, and is too long anyway.
        let name = (whole.len() <= MAX_NAME).then(|| Quoted::at(&whole, 0).decode()).flatten();
        let depth = self.open.len().saturating_sub(1);
        let here = self.open.last().map_or(0, |level| level.here);
        let next = name.map_or(0, |name| match &*name {
            ANY => 0,
            name => self.beyond(here, depth, name),
        });
        if let Some(level) = self.open.last_mut() {
            (level.next, level.awaits_name) = (next, false);
        }
    }

    /// The paths among `here` whose segment at `depth` is this one.
    fn beyond(&self, here: u64, depth: usize, segment: &str) -> u64 {
        let fits = |path: &Path| path.get(depth).is_some_and(|own| *own == segment);
        let bits = self.paths.iter().enumerate().filter(|(_, path)| fits(path));
        bits.fold(0, |mask, (bit, _)| mask | 1_u64 << bit) & here
    }

    fn of(&self, mask: u64) -> impl Iterator<Item = &Path> {
        let is_in = move |(bit, _): &(usize, &Path)| mask & (1_u64 << bit) != 0;
        self.paths.iter().enumerate().filter(is_in).map(|(_, path)| path)
    }

    /// The replacement of a string, with quotes.
    fn replaced(
        &mut self,
        read: &[u8],
        replace: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Option<Vec<u8>> {
        let new = replace(&Quoted::at(read, 0).decode()?)?;
        self.is_changed = true;
        let mut text = Vec::with_capacity(new.len() + 2);
        compose::push_string(&mut text, &new);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATHS: &[Path] = &[
        &["content", ANY, "uri"],
        &["content", ANY, "resource", "uri"],
        &["_meta", "ui", "resourceUri"],
        &["_meta", "ui/resourceUri"],
        &["*", "uri"],
    ];

    const TEXT: &str = r#"{ "uri":"a:1","content" : [ {"type":"text","text":"{\"uri\":\"a:1\"}"},
        {"uri":"a:1", "x":[{"uri":"a:1"}]}, {"\u0075ri":"\u0061:1"},{"uri":["a:1"]},{"uri":1e2},
        {"resource":{"uri":"a:1","text":"é \\\" 🦀"}},{"uri":"b:1"},"uri","a:1"],
        "structuredContent":{"content":[{"uri":"a:1"}],"uri":"a:1"},
        "*":{"uri":"a:1"},
        "_meta":{"ui":{"resourceUri":"a:1","csp":["a:1"]},"ui\/resourceUri":"a:1","uri":"a:1"}}"#;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn renamed(uri: &str) -> Option<String> {
        uri.strip_prefix("a:").map(|rest| format!("é\"{rest}"))
    }

    fn in_pieces(text: &str, ends: &[usize]) -> Vec<u8> {
        let mut rewriter = Rewriter::new(PATHS);
        let (mut out, mut from) = (Vec::new(), 0);
        for end in ends.iter().copied().chain([text.len()]) {
            let piece = Bytes::copy_from_slice(&text.as_bytes()[from..end]);
            out.extend_from_slice(&rewriter.push(piece, &mut renamed));
            from = end;
        }
        out
    }

    #[test]
    fn exactly_the_strings_at_the_paths_are_replaced() {
        let new = r#""é\"1""#;
        let expected = TEXT
            .replace(r#"{"uri":"a:1", "x""#, &format!(r#"{{"uri":{new}, "x""#))
            .replace(r#""\u0061:1""#, new)
            .replace(r#""resource":{"uri":"a:1""#, &format!(r#""resource":{{"uri":{new}"#))
            .replace(r#""resourceUri":"a:1""#, &format!(r#""resourceUri":{new}"#))
            .replace(r#""ui\/resourceUri":"a:1""#, &format!(r#""ui\/resourceUri":{new}"#));
        let after = strings(&json(TEXT), PATHS, &mut renamed).unwrap();
        assert_eq!(after.as_str(), expected);
        assert_eq!(json(after.as_str()), after);
    }

    #[test]
    fn a_text_without_such_strings_is_the_same_bytes() {
        for text in ["{}", "[1]", r#""a:1""#, r#"{"content":[{"uri":"b:1"}]}"#] {
            assert_eq!(strings(&json(text), PATHS, &mut renamed), None, "{text}");
            let (piece, mut rewriter) = (Bytes::from(text), Rewriter::new(PATHS));
            let (place, after) = (piece.as_ptr(), rewriter.push(piece.clone(), &mut renamed));
            assert_eq!((after.as_ptr(), after), (place, piece));
        }
    }

    #[test]
    fn a_string_that_is_too_long_passes_as_it_is() {
        let long =
            format!(r#"{{"content":[{{"uri":"a:{}"}},{{"uri":"a:1"}}]}}"#, "x".repeat(70_000));
        let cut = in_pieces(&long, &[30, 66_000]);
        assert_eq!(String::from_utf8(cut).unwrap(), long.replace(r#""a:1""#, r#""é\"1""#));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_pieces_end(
            mut ends in proptest::collection::vec(0..TEXT.len(), 0..12)
        ) {
            ends.sort_unstable();
            prop_assert_eq!(in_pieces(TEXT, &ends), in_pieces(TEXT, &[]));
        }
    }
}

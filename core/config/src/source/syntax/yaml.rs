//! Parses YAML: one document, with plain scalars as in the core schema.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::{Document, Fault};
use crate::source::tree::{Entry, Node, Table, Text, Value};

/// The most values that a file may have after its aliases are expanded.
///
/// Otherwise aliases of aliases grow without bound.
const MAX_NODES: usize = 50_000;

struct Reader<'t> {
    events: Parser<'t, granit_parser::StrInput<'t>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

type Next<'t> = (Event<'t>, Range<usize>);

#[expect(clippy::wildcard_enum_match_arm, reason = "the events are the parser's, and may grow")]
pub(super) fn read(text: &str) -> Result<Document, Fault> {
    let mut reader =
        Reader { events: Parser::new_from_str(text), anchors: HashMap::new(), nodes: 0 };
    let mut document = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::StreamEnd => return Ok(document.unwrap_or_default()),
            Event::DocumentStart(..) if document.is_some() => {
                return Err(Fault::new("the file contains a second document", span));
            }
            Event::DocumentStart(..) => {
                let next = reader.next()?;
                document = Some(match reader.node(next)? {
                    Node { value: Value::Table(table), .. } => {
                        Document { table, ..Document::default() }
                    }
                    Node { value: Value::Null, .. } => Document::default(),
                    node => return Err(Fault::new("the file must be a mapping", node.span)),
                });
            }
            _ => return Err(Fault::new("the file contains text outside the document", span)),
        }
    }
}

// === impl Fault ===

impl Fault {
    fn new(message: &str, span: Range<usize>) -> Self {
        Self { message: message.to_owned(), span }
    }
}

// === impl Reader ===

#[expect(clippy::wildcard_enum_match_arm, reason = "the events are the parser's, and may grow")]
impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Next<'t>, Fault> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, range(&span))),
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or_default();
                Err(Fault { message: error.info(), span: at..at })
            }
            None => Ok((Event::StreamEnd, 0..0)),
        }
    }

    /// Reads the value that begins with this event.
    fn node(&mut self, (event, span): Next<'t>) -> Result<Node, Fault> {
        self.count(1, &span)?;
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let value =
                    if plain { scalar(&text) } else { Value::Text(Text::plain(text.into_owned())) };
                (anchor, Node { value, span })
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(span)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.table(span)?),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err(Fault::new("the alias has no anchor", span));
                };
                self.count(size(&node), &span)?;
                return Ok(Node { span, ..node });
            }
            _ => return Err(Fault::new("a value is missing", span)),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, span: Range<usize>) -> Result<Node, Fault> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, end) => return Ok(Node::list(nodes, span.start..end.end)),
                next => nodes.push(self.node(next)?),
            }
        }
    }

    fn table(&mut self, span: Range<usize>) -> Result<Node, Fault> {
        let mut table = Table::default();
        loop {
            let (event, at) = self.next()?;
            let key = match event {
                Event::MappingEnd => {
                    return Ok(Node { value: Value::Table(table), span: span.start..at.end });
                }
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(Fault::new("a key must be a word", at)),
            };
            if key == "<<" {
                return Err(Fault::new("`<<` is not supported; write the keys out", at));
            }
            let next = self.next()?;
            let node = self.node(next)?;
            if table.get(&key).is_some() {
                return Err(Fault { message: format!("`{key}` is defined twice"), span: at });
            }
            let is_null = matches!(node.value, Value::Null);
            let entry = Entry::new(at, node);
            if is_null {
                table.unread.push((key, entry));
            } else {
                table.put(key, entry);
            }
        }
    }

    fn count(&mut self, more: usize, span: &Range<usize>) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(more);
        if self.nodes > MAX_NODES {
            return Err(Fault::new("the file has too many values", span.clone()));
        }
        Ok(())
    }
}

fn range(span: &Span) -> Range<usize> {
    span.byte_range().unwrap_or(0..0)
}

fn size(node: &Node) -> usize {
    match &node.value {
        Value::List(nodes) => nodes.iter().map(size).sum::<usize>() + 1,
        Value::Table(table) => {
            table.entries.values().map(|entry| size(&entry.node)).sum::<usize>() + 1
        }
        Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Moment(_) | Value::Null => 1,
    }
}

/// The value of a plain (unquoted) scalar.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text if is_number(text) => Value::Number(text.to_owned()),
        text => Value::Text(Text::plain(text)),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    digits.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

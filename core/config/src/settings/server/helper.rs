//! The key `headers_helper`: a program that prints headers.

use capstan_safety::command::{is_fixed, words};
use schemars::JsonSchema;

use crate::fields::Fields;
use crate::source::problem::Problem;

/// A command line, or its words.
#[derive(JsonSchema)]
#[schemars(untagged, title = "string or list of strings")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum HelperSchema {
    /// A command line, split at spaces and quotes.
    Line(String),
    /// The program and its arguments.
    Words(Vec<String>),
}

/// Reads the program and its arguments.
pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    const KEY: &str = "headers_helper";
    let is_list = fields.peek(KEY)?.node.as_list().is_some();
    let read = if is_list {
        fields.strings(KEY)?
    } else {
        words(&fields.text(KEY)?.value).unwrap_or_default()
    };
    let key = fields.key(KEY);
    let message = match read.first() {
        Some(program) if is_fixed(program) => return Some(read),
        Some(program) => {
            format!(
                "`{key}` has the relative path `{program}`, which is another program in each folder"
            )
        }
        None => format!("`{key}` names no program"),
    };
    let help =
        "write the program's name or whole path and its arguments: `\"/opt/bin/headers --json\"`";
    fields.problem(KEY, Problem::error(message).help(help));
    None
}

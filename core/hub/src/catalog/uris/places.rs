//! The members of messages that hold URIs of resources.

use capstan_wire::rewrite::{ANY, Path};

/// In the definition of a tool: the page of its user interface.
pub const TOOL: &[Path] = &[
    &["_meta", "ui", "resourceUri"],
    &["_meta", "ui/resourceUri"],
    &["_meta", "openai/outputTemplate"],
];

/// In a result of a call: links, embedded resources, contents, and the page of a user interface.
/// A task has the result of its call in its member `result`.
pub(super) const RESULT: &[Path] = &[
    &["content", ANY, "uri"],
    &["content", ANY, "resource", "uri"],
    &["contents", ANY, "uri"],
    &["messages", ANY, "content", "uri"],
    &["messages", ANY, "content", "resource", "uri"],
    &["messages", ANY, "content", ANY, "uri"],
    &["messages", ANY, "content", ANY, "resource", "uri"],
    &["_meta", "ui", "resourceUri"],
    &["_meta", "ui/resourceUri"],
    &["_meta", "openai/outputTemplate"],
    &["result", "content", ANY, "uri"],
    &["result", "content", ANY, "resource", "uri"],
    &["result", "_meta", "ui", "resourceUri"],
    &["result", "_meta", "ui/resourceUri"],
    &["result", "_meta", "openai/outputTemplate"],
];

/// In the result of `resources/directory/read`.
pub const DIRECTORY: &[Path] = &[&["resources", ANY, "uri"]];

/// In the entry of a skill.
pub(super) const SKILLS: &[Path] = &[&["uri"], &["resources", ANY, "uri"]];

/// Texts of which one is in every message with a string at one of the paths.
pub(super) const MARKS: &[&str] = &["uri", "resourceUri", "outputTemplate"];

//! Reads the files of other programs: each dialect is one module that translates its keys.
//!
//! A dialect gives every value its native key and keeps its position and its own name. The values
//! are interpreted afterwards, once for all dialects, in `capstan-config`.

mod caliban;
mod avelino;
mod avelino_auth;
mod zeph;
mod llxprt;
mod claude;
mod codex;
mod vscode;
mod cursor;
mod goose;
mod zed;
mod opencode;
mod bundle;

use capstan_config::scrub;
use capstan_config::source::problem::Problem;
use capstan_config::source::reader::{FileReader, Opened};
use capstan_config::source::syntax::Syntax;
use capstan_config::source::{Dialect, PluginPart, SourceFile, Surroundings};

use crate::translate::detect;
use crate::translate::file::Work;

/// Reads files in every dialect.
#[derive(Clone, Copy, Debug)]
pub struct AllDialects;

/// Detects the dialect of a file: by its content, if that fits several by its usual place.
///
/// A file that fits no dialect is treated as a native one.
///
/// # Errors
/// The problem that makes the text unreadable.
pub fn detect(path: &str, text: &str) -> Result<Dialect, Box<Problem>> {
    detect_at(detect::by_place(path), path, text)
}

/// Detects the dialect of a file that `place` usually has where it is, whatever its path.
///
/// # Errors
/// The problem that makes the text unreadable.
pub fn detect_at(place: Option<Dialect>, path: &str, text: &str) -> Result<Dialect, Box<Problem>> {
    let syntax = Syntax::of(path, text);
    let document = syntax.read(path, text)?;
    Ok(detect::of(place, syntax, &document.table))
}

// === impl AllDialects ===

impl FileReader for AllDialects {
    fn open(&self, file: &SourceFile, around: Surroundings<'_>) -> Result<Opened, Box<Problem>> {
        let syntax = Syntax::of(&file.path, &file.text);
        let document = syntax.read(&file.path, &file.text)?;
        let found = || match file.plugin.as_ref().map(|plugin| plugin.part) {
            Some(PluginPart::Bundle) => Dialect::Mcpb,
            Some(PluginPart::Manifest | PluginPart::Servers) => Dialect::Claude,
            None => detect::of(detect::by_place(&file.path), syntax, &document.table),
        };
        let dialect = file.dialect.unwrap_or_else(found);
        let file = SourceFile { dialect: Some(dialect), ..file.clone() };
        let translate: fn(&mut Work<'_>) = match dialect {
            Dialect::Native => return Ok(Opened::native(file, &document)),
            Dialect::Caliban => caliban::read,
            Dialect::Avelino => avelino::read,
            Dialect::Zeph => zeph::read,
            Dialect::Llxprt => llxprt::read,
            Dialect::Claude => claude::read,
            Dialect::Codex => codex::read,
            Dialect::VsCode => vscode::read,
            Dialect::Cursor => cursor::read,
            Dialect::Goose => goose::read,
            Dialect::Zed => zed::read,
            Dialect::OpenCode => opencode::read,
            Dialect::Mcpb => bundle::read,
        };
        let mut work = Work::new(&file, around, &document.table);
        document.report_doubles(&mut work.report);
        translate(&mut work);
        let (tree, mut problems, mut conventions) = work.finish();
        scrub(&file.path, &file.text, problems.iter_mut().chain(&mut conventions.gateway));
        Ok(Opened { file, tree, problems, conventions })
    }
}

//! Whose words a file is written in: each dialect is one module that reads them into ours.
//!
//! A dialect gives every value its native key and keeps its place and its own name. What the
//! values mean is decided afterwards, once for all dialects.

mod detect;
mod work;
mod one;
mod login;
mod outline;
pub(crate) mod native;
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
mod package;
mod bundle;

use std::ops::Range;
use std::str::FromStr;

use capstan_model::{Secret, ServerName};
use capstan_policy::DefaultRule;
use serde::Serialize;
use work::Work;

use crate::expand::forms::Forms;
use crate::expand::{Inputs, MissingEnv};
use crate::plugin::PluginPart;
use crate::problem::Problem;
use crate::redact::scrub;
use crate::source::{Origin, SourceFile, Surroundings};
use crate::syntax::Syntax;
use crate::tree::Table;

/// The program that a file was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Capstan itself.
    Native,
    /// Caliban: `settings.toml`, `settings.json`, and the older `mcp.toml`.
    Caliban,
    /// The `mcp` program of avelino: `servers.json`.
    Avelino,
    /// Zeph: `config.toml`.
    Zeph,
    /// LLxprt Code and Gemini CLI: `settings.json`.
    Llxprt,
    /// Claude Code and Claude Desktop: `.mcp.json`, `.claude.json`, `claude_desktop_config.json`.
    Claude,
    /// Codex: `config.toml`.
    Codex,
    /// Visual Studio Code and Copilot: `mcp.json`, `mcp-config.json`.
    VsCode,
    /// Cursor: `mcp.json`.
    Cursor,
    /// goose: `config.yaml`.
    Goose,
    /// Zed: `settings.json`.
    Zed,
    /// opencode: `opencode.json`.
    OpenCode,
    /// The manifest of a bundle: `.mcpb`.
    Mcpb,
}

/// A word that names no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a dialect; there are {names}", names = names())]
pub struct UnknownDialect(String);

/// A file, read.
pub(crate) struct Opened {
    /// The file, with its dialect found out.
    pub(crate) file: SourceFile,
    /// What it says, in our words.
    pub(crate) tree: Table,
    /// What the translation found wrong.
    pub(crate) problems: Vec<Problem>,
    pub(crate) manner: Manner,
}

/// What the program of a file takes for granted.
#[derive(Debug, Default)]
pub(crate) struct Manner {
    pub(crate) forms: Forms,
    pub(crate) missing: MissingEnv,
    pub(crate) inputs: Inputs,
    /// Answers that must not be shown.
    pub(crate) secrets: Vec<Secret<String>>,
    /// What becomes of calls to its servers that no rule speaks of.
    pub(crate) default: Option<DefaultRule>,
    pub(crate) lifts: Vec<Lift>,
    /// What is part of the program itself, and what it is there.
    pub(crate) inside: Vec<(String, String)>,
    pub(crate) kin: Kin,
    /// What only the gateway would have to honour, and cannot.
    pub(crate) gateway: Vec<Problem>,
    /// Servers of the project's own Claude file that the user has switched off.
    pub(crate) switched_off: Vec<SwitchedOff>,
}

/// Tools that their file lets run without asking, where nothing else is said of them. That lifts
/// the default and no rule that asks, so that it belongs to the rules for all servers.
#[derive(Debug)]
pub(crate) struct Lift {
    pub(crate) server: ServerName,
    pub(crate) pattern: String,
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
}

/// A server that another file switches off.
#[derive(Debug)]
pub(crate) struct SwitchedOff {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

/// How a file stands to others of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kin {
    #[default]
    Alone,
    /// Caliban's settings.
    Settings,
    /// Caliban's older file, which counts only where no settings name a server.
    Legacy,
}

/// Finds out whose words a file is written in: by what it says, where that fits several by where
/// it usually lies, else it is taken for one of ours.
///
/// # Errors
/// What keeps the text from being read at all.
pub fn detect(path: &str, text: &str) -> Result<Dialect, Box<Problem>> {
    let syntax = Syntax::of(path, text);
    let document = syntax.read(path, text)?;
    Ok(detect::of(path, syntax, &document.table))
}

/// Reads a file into our words; the problem is what keeps the whole file out.
pub(crate) fn open(file: &SourceFile, around: Surroundings<'_>) -> Result<Opened, Box<Problem>> {
    let syntax = Syntax::of(&file.path, &file.text);
    let document = syntax.read(&file.path, &file.text)?;
    let found = || match file.plugin.as_ref().map(|plugin| plugin.part) {
        Some(PluginPart::Bundle) => Dialect::Mcpb,
        Some(PluginPart::Manifest | PluginPart::Servers) => Dialect::Claude,
        None => detect::of(&file.path, syntax, &document.table),
    };
    let dialect = file.dialect.unwrap_or_else(found);
    let file = SourceFile { dialect: Some(dialect), ..file.clone() };
    let mut work = Work::new(&file, around, &document.table);
    for double in document.doubles {
        let problem = Problem::warning(format!("`{}` stands here twice", double.key))
            .help("the last one counts; remove the others");
        work.report.add(problem, double.key, &double.span);
    }
    match dialect {
        Dialect::Native => native::read(&mut work),
        Dialect::Caliban => caliban::read(&mut work),
        Dialect::Avelino => avelino::read(&mut work),
        Dialect::Zeph => zeph::read(&mut work),
        Dialect::Llxprt => llxprt::read(&mut work),
        Dialect::Claude => claude::read(&mut work),
        Dialect::Codex => codex::read(&mut work),
        Dialect::VsCode => vscode::read(&mut work),
        Dialect::Cursor => cursor::read(&mut work),
        Dialect::Goose => goose::read(&mut work),
        Dialect::Zed => zed::read(&mut work),
        Dialect::OpenCode => opencode::read(&mut work),
        Dialect::Mcpb => bundle::read(&mut work),
    }
    let (tree, mut problems, mut manner) = work.finish();
    scrub(&file.path, &file.text, problems.iter_mut().chain(&mut manner.gateway));
    Ok(Opened { file, tree, problems, manner })
}

fn names() -> String {
    Dialect::ALL.map(|dialect| format!("`{}`", dialect.as_str())).join(", ")
}

// === impl Dialect ===

impl Dialect {
    /// Every dialect, our own first.
    pub const ALL: [Self; 13] = [
        Self::Native,
        Self::Caliban,
        Self::Avelino,
        Self::Zeph,
        Self::Llxprt,
        Self::Claude,
        Self::Codex,
        Self::VsCode,
        Self::Cursor,
        Self::Goose,
        Self::Zed,
        Self::OpenCode,
        Self::Mcpb,
    ];

    /// The dialect's word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Caliban => "caliban",
            Self::Avelino => "avelino",
            Self::Zeph => "zeph",
            Self::Llxprt => "llxprt",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::VsCode => "vscode",
            Self::Cursor => "cursor",
            Self::Goose => "goose",
            Self::Zed => "zed",
            Self::OpenCode => "opencode",
            Self::Mcpb => "mcpb",
        }
    }

    /// The program's name, for a message.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Native => "Capstan",
            Self::Caliban => "Caliban",
            Self::Avelino => "avelino/mcp",
            Self::Zeph => "Zeph",
            Self::Llxprt => "LLxprt",
            Self::Claude => "Claude",
            Self::Codex => "Codex",
            Self::VsCode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Goose => "goose",
            Self::Zed => "Zed",
            Self::OpenCode => "opencode",
            Self::Mcpb => "bundles",
        }
    }

    /// Splits `DIALECT:FILE` as the command line has it. What does not begin with the word of a
    /// dialect is a file.
    pub fn of_argument(text: &str) -> (Option<Self>, &str) {
        match text.split_once(':') {
            Some((word, file)) if !file.is_empty() => match word.parse() {
                Ok(dialect) => (Some(dialect), file),
                Err(UnknownDialect(_)) => (None, text),
            },
            Some(_) | None => (None, text),
        }
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "gemini" {
            return Ok(Self::Llxprt);
        }
        let known = Self::ALL.into_iter().find(|dialect| dialect.as_str() == text);
        known.ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_has_a_word_and_the_word_names_it() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.as_str().parse(), Ok(dialect));
        }
        assert_eq!("gemini".parse(), Ok(Dialect::Llxprt));
        let error = "Claude".parse::<Dialect>().unwrap_err();
        assert!(error.to_string().contains("`claude`"), "{error}");
    }

    #[test]
    fn an_argument_names_a_dialect_only_before_a_file() {
        for (text, dialect, file) in [
            ("claude:x.json", Some(Dialect::Claude), "x.json"),
            ("gemini:/a:b", Some(Dialect::Llxprt), "/a:b"),
            ("x.json", None, "x.json"),
            ("C:\\x.json", None, "C:\\x.json"),
            ("claude:", None, "claude:"),
            ("Zed:x", None, "Zed:x"),
        ] {
            assert_eq!(Dialect::of_argument(text), (dialect, file), "{text}");
        }
    }
}

//! The dialects: programs whose files can be read.

use std::str::FromStr;

use serde::Serialize;

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
#[error("`{0}` is not a dialect; the dialects are {names}", names = names())]
pub struct UnknownDialect(String);

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
    pub fn program(self) -> &'static str {
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

    /// Splits a command-line argument `DIALECT:FILE`.
    ///
    /// An argument that does not begin with the word of a dialect is a file.
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

//! The parts that a front needs for a conversation, besides what the application layer offers.

use std::sync::Arc;

use capstan_app::api::{Answer, Ask};
use capstan_app::chat::TalkParts;
use capstan_app::{AppError, NameCache};
use capstan_hub::ports::BoxFuture;
use capstan_policy::Pattern;

/// A conversation that begins.
pub struct Conversing<'a> {
    /// The servers, the models and the saved conversations.
    pub parts: TalkParts,
    /// True if the latest conversation of the project goes on.
    pub resume: bool,
    /// The first message, if one was typed on the command line.
    pub first: Option<String>,
    /// Patterns over calls that need no approval.
    pub allow: Vec<Pattern>,
    /// Runs slash commands.
    pub commands: &'a dyn Commands,
    /// The names of prompts and resources that were seen before.
    pub names: Arc<dyn NameCache>,
}

/// Runs the slash commands that need no conversation.
pub trait Commands: Send + Sync {
    /// Runs the command `/name rest`; `None` if there is no such command, so that it is a prompt.
    fn run<'a>(
        &'a self,
        name: &'a str,
        rest: &'a str,
        output: Arc<dyn Output>,
    ) -> BoxFuture<'a, Result<Option<()>, AppError>>;

    /// The names of the commands, without the slash, each with a description.
    fn names(&self) -> Vec<(&'static str, &'static str)>;
}

/// Receives what a command prints, and answers its questions.
pub trait Output: Send + Sync {
    /// Receives a text; must not block. Texts of servers in it are not cleaned.
    fn print(&self, kind: Printed, text: &str);

    /// Answers a question of a call.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer>;
}

/// The kind of a printed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// The result of a command.
    Data,
    /// A remark.
    Note,
    /// Advice on what to do next.
    Hint,
    /// A problem that does not stop the command.
    Warning,
    /// The reason why something failed.
    Error,
}

/// Parses a pattern of `--allow`.
///
/// # Errors
/// If it is invalid.
pub fn allowed(text: &str) -> Result<Pattern, AppError> {
    Pattern::parse(text).map_err(|error| {
        AppError::usage(format!("`--allow {text}`: {error}"))
            .hint("write a pattern over tools, such as `files__*` or `files__write:path=/tmp/*`")
    })
}

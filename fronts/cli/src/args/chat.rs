//! The grammar of `capstan chat`, and of `capstan --print`.

use clap::{Args, ValueEnum};

/// `capstan chat`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan -p 'What changed in this repository today?' --allow 'git__*'\n  \
    git diff | capstan -p 'Review this' --model ollama/qwen3\n  \
    capstan -p 'Compare @docs:readme with @README.md' --output-format json\n  \
    capstan -p '/server:prompt --key value'\n  \
    capstan -p '/mcp list'\n  \
    capstan chat --model ollama/qwen3\n\n\
    With -p, calls that need an approval are refused unless --allow matches them; then the exit code is 6. \
    `[model]` in the configuration sets the model; see `capstan config show`.")]
pub struct ChatArgs {
    /// Answer once, print the answer and exit; without it, a conversation begins on the terminal
    #[arg(long, short)]
    pub print: bool,
    /// Talk line by line, without drawing on the whole screen: for screen readers and logs
    #[arg(long, conflicts_with = "print")]
    pub plain: bool,
    /// The message; text from a pipe is added to it
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,
    /// The format of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text, requires = "print")]
    pub output_format: OutputFormat,
    /// Approve calls of matching tools that would need an approval, such as 'git__*'; can be repeated
    #[arg(long, value_name = "PATTERN")]
    pub allow: Vec<String>,
    /// The largest number of requests to the model for one message
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_turns: u32,
    /// Continue the latest conversation of this project
    #[arg(long = "continue")]
    pub resume: bool,
    /// The model: PROVIDER/NAME, with the provider anthropic, openai, gemini or ollama
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub model: Option<String>,
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// The last text of the model.
    #[default]
    Text,
    /// One JSON object with the text, the calls and the tokens.
    Json,
    /// A JSON object a line for each event, as it happens.
    StreamJson,
}

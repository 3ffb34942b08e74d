//! The slash commands that need a conversation.

use std::fmt::Write as _;

use capstan_app::AppError;
use capstan_app::chat::{Conversation, Talk};
use capstan_hub::ports::{ChatMessage, ChatPart, Role};

/// The commands, each with a description.
pub(crate) const COMMANDS: [(&str, &str); 7] = [
    ("quit", "end the conversation"),
    ("new", "begin another conversation"),
    ("resume", "go on with the latest conversation of this project"),
    ("model", "show or change the model: /model PROVIDER/NAME"),
    ("compact", "replace earlier messages by a summary"),
    ("export", "write the conversation to a file: /export FILE"),
    ("cost", "show the tokens of this conversation"),
];

/// The commands for the help.
pub(crate) fn help() -> String {
    let mut text = "In a conversation:".to_owned();
    for (name, about) in COMMANDS {
        let name = format!("/{name}");
        let _ = write!(text, "\n  {name:<25} {about}");
    }
    text
}

/// The tokens of a conversation in words.
pub(crate) fn cost(talk: &Talk) -> String {
    let tokens = talk.tokens();
    let (input, output, cached) = (tokens.input, tokens.output, tokens.cached);
    format!("{input} tokens read ({cached} of them from a cache), {output} tokens written")
}

/// Writes the conversation to a new file, as Markdown.
pub(crate) fn export(talk: &Talk, path: &str) -> Result<String, AppError> {
    let Some(conversation) = talk.conversation() else {
        return Err(AppError::usage("there is no conversation yet"));
    };
    let path =
        if path.is_empty() { format!("capstan-{}.md", conversation.id()) } else { path.to_owned() };
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let written = file.and_then(|mut file| {
        std::io::Write::write_all(&mut file, markdown(conversation).as_bytes())
    });
    written.map_err(|error| {
        AppError::usage(format!("`{path}` cannot be written: {error}"))
            .hint("name a file that does not exist yet: `/export FILE`")
    })?;
    Ok(path)
}

fn markdown(conversation: &Conversation) -> String {
    let mut text = format!("# Conversation {}\n", conversation.id());
    for message in conversation.messages() {
        write_message(&mut text, message);
    }
    text
}

fn write_message(text: &mut String, message: &ChatMessage) {
    let author = match message.role {
        Role::User => "You",
        Role::Assistant => "Model",
    };
    for part in &message.parts {
        let _ = match part {
            ChatPart::Text { text: said, .. } => write!(text, "\n## {author}\n\n{said}\n"),
            ChatPart::Image(image) => write!(text, "\n## {author}\n\n[image: {}]\n", image.mime),
            ChatPart::Call(call) => {
                write!(text, "\n## Call of {}\n\n```json\n{}\n```\n", call.name, call.arguments)
            }
            ChatPart::Result(result) => {
                write!(text, "\n## Result of {}\n\n```text\n{}\n```\n", result.name, result.text)
            }
            ChatPart::Reasoning(_) => Ok(()),
        };
    }
}

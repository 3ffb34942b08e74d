//! The messages between the engine and the screen.

use std::sync::mpsc::SyncSender;

use capstan_app::api::{ListedItem, ServerRow, ToolRow};
use capstan_app::chat::CallReport;
use capstan_model::ServerName;
use capstan_text::conversation::Printed;

/// A wish of the person, for the engine.
#[derive(Debug)]
pub(crate) enum Request {
    /// Handle a line: a message or a command.
    Submit(String),
    /// Stop what runs for the current line.
    Cancel,
    /// End the conversation.
    Quit,
    /// Do something for the overlay.
    Overlay(Wish),
}

/// A wish of the overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// List the servers, and again when something changes, until the overlay is closed.
    Servers,
    /// The overlay is closed.
    Nothing,
    /// List the tools of a server.
    Tools(ServerName),
    /// List the resources of a server.
    Resources(ServerName),
    /// List the prompts of a server.
    Prompts(ServerName),
    /// Show the last lines that a server wrote to its stderr.
    Messages(ServerName),
    /// Tell which rule decides about calls of a tool.
    Rule(String),
    /// Switch a server on or off, in its file.
    Switch(ServerName, bool),
    /// Ask a server for its lists again.
    Refresh(ServerName),
    /// Log in to a server.
    Login(ServerName),
}

/// News for the overlay.
pub(crate) enum Overview {
    Servers(Vec<ServerRow>),
    Tools(ServerName, Vec<ToolRow>),
    Items(ServerName, Vec<ListedItem>),
    Lines(ServerName, Vec<String>),
    Failed(ServerName, String),
    /// The rule that decides about calls of the tool with this id.
    Rule(String, String),
}

/// Something that the screen shows.
pub(crate) enum News {
    /// The next piece of the model's answer.
    Text(String),
    /// The model is reasoning.
    Reasoning,
    /// Something was printed.
    Printed(Printed, String),
    /// A message of an earlier part of the conversation.
    Said(Author, String),
    /// A call begins.
    Calling {
        /// The id of the call.
        id: String,
        /// The tool, as the model named it.
        name: String,
        /// The arguments.
        arguments: String,
    },
    /// A call has ended.
    Called(CallReport),
    /// The server of a running call reports progress.
    Progress(String),
    /// The next line is handled.
    Begun(String),
    /// The line is handled, or was stopped.
    Done(Outcome),
    /// The facts of the status line have changed.
    Status(Status),
    /// A question for the person.
    Question(Box<Question>),
    /// The questions of this dialog need no answer any more.
    Closed(u64),
    /// The number of dialogs that wait behind the open one.
    Waiting(usize),
    /// The person wants to see the servers.
    Overlay,
    /// News of the servers.
    Overview(Overview),
    /// The transcript begins anew.
    Cleared,
    /// The conversation ends.
    End,
}

/// The end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was handled.
    Handled,
    /// The person has stopped it.
    Stopped,
}

/// The author of an earlier message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    Person,
    Model,
}

/// The facts of the status line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The model; `None` if there is none.
    pub(crate) model: Option<String>,
    /// Number of servers that are usable now.
    pub(crate) ready: usize,
    /// Number of servers.
    pub(crate) servers: usize,
    /// Tokens that the model has read.
    pub(crate) input: u64,
    /// Tokens that the model has written.
    pub(crate) output: u64,
}

/// A question of a dialog.
pub(crate) struct Question {
    /// The dialog.
    pub(crate) dialog: u64,
    /// Lines of text since the last question of this dialog.
    pub(crate) said: Vec<String>,
    /// The question, safe to show.
    pub(crate) text: String,
    /// The form of the answer.
    pub(crate) form: Form,
    /// Takes the answer; `None` closes the dialog.
    pub(crate) reply: SyncSender<Option<Reply>>,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A line.
    Text,
    /// A line that is not shown.
    Secret,
    /// One of these options; the one at `start` is preselected.
    One { options: Vec<String>, start: usize },
    /// Any number of these options; those in `chosen` are preselected.
    Many { options: Vec<String>, chosen: Vec<usize> },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Text(String),
    One(usize),
    Many(Vec<usize>),
}

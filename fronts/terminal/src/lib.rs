//! The conversation with a model on the whole screen of a terminal.
//!
//! Two halves talk through two queues. `engine` runs on the runtime: it asks `core/app` and never
//! touches the terminal. `screen` runs in its own thread: it reads keys and draws, and never waits
//! for anything else, so that a key is shown at once whatever servers and models do. `mailbox` and
//! `news` are the queue to the screen, `Request` is the other direction. `front`
//! turns questions of calls and servers into dialogs; `markdown` lays out text.
//!
//! **Invariant:** text of models and servers is cleaned before it becomes cells, and the terminal is
//! restored however the process ends, except by SIGKILL.

mod engine;
mod front;
mod mailbox;
mod markdown;
mod news;
mod overview;
mod prompter;
mod raw_screen;
mod screen;
mod slash;
mod theme;

pub use engine::{End, LogSink, Settings, run};
pub use theme::Colours;

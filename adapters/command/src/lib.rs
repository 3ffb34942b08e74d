//! Command-line programs as servers: what their help tells becomes tools.
//!
//! Read in this order: [`settings`] is what the configuration says of one program, [`help`] reads
//! help texts, `discover` runs the program to get them, `cache` keeps what was found, `danger` says
//! which flags are never offered and `reading` what may only read, `tool` makes a tool of a command, `argv` makes a command line of a
//! call, `answer` an answer of what was printed, and `server` implements the hub's port.
//!
//! **Invariant:** a caller's value becomes one whole argument, or a part of one behind `=`. It never
//! chooses the subcommand, never is read as a flag, and no shell sees it.

pub mod settings;
pub mod help;
mod allowed;
mod discover;
mod cache;
mod danger;
mod reading;
mod tool;
mod preset;
mod argv;
mod answer;
mod server;

pub use discover::{Command, Found, discover};
pub use server::CommandServer;
pub use settings::{CommandSettings, Preset};
pub use tool::{Tool, tools};

//! Command-line programs as servers: their help texts become tools.
//!
//! Read in this order: [`settings`] has the configuration of one program, [`help`] parses help
//! texts, `discover` runs the program to get them, `cache` stores the result, `forbidden_flags`
//! lists flags that are never offered and `read_only` the subcommands that may only read, `tool`
//! makes a tool of a command, `argv` makes a command line of a call, `answer` makes an answer of
//! the output, and `server` implements the hub's port.
//!
//! **Invariant:** a caller's value becomes one complete argument, or the part of one after `=`. It
//! never chooses the subcommand, is never parsed as a flag, and no shell sees it.

pub mod settings;
pub mod help;
mod allowed;
mod discover;
mod cache;
mod forbidden_flags;
mod read_only;
mod tool;
mod preset;
mod argv;
mod answer;
mod server;

pub use discover::{Command, Found, discover};
pub use server::CommandServer;
pub use settings::{CommandSettings, Preset};
pub use tool::{Tool, tools};

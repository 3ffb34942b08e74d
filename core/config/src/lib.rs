//! Configuration, text to meaning.
//!
//! Read in this order: [`source`] says what a file is and
//! [`plugin`] what it may belong to, `syntax` reads its text into a tree that
//! remembers places, [`dialect`] puts the words of other programs into ours, `expand` puts
//! variables in, `read` finds out what the tree means and
//! [`problem`] collects what is wrong with it, [`merge`] puts the files together into a
//! [`Config`]. Beside that road stand [`edit`] (text to text), [`show()`], [`mask`] and `redact` (what
//! people see), [`client`] and [`carry`] (other programs' files, changed and taken over),
//! [`registry`] (what others offer), [`schema()`] and [`reference()`] (what they look up), and
//! [`environment`].
//!
//! **Invariant:** no file, no variable and no clock is read here; everything is passed in.

pub mod source;
pub mod plugin;
pub mod problem;
mod tree;
mod syntax;
mod expand;
mod units;
mod url;
pub mod dialect;
mod fields;
mod openapi;
pub mod overrides;
pub mod server;
pub mod rule;
pub mod config;
mod likeness;
mod refuse;
mod read;
mod kin;
mod idle;
pub mod merge;
pub mod environment;
pub mod mask;
mod redact;
mod show;
pub mod edit;
pub mod registry;
pub mod client;
pub mod carry;
mod shape;
mod shape_access;
mod schema;
mod reference;

pub use client::Client;
pub use config::{
    AccessSetting, Audit, AuditArguments, AuditOnFull, CommandList, Config, DefaultSetting,
    Gateway, GatewayLimits, Mcp, Permissions, Rate, Screen, Tools,
};
pub use dialect::{Dialect, detect};
pub use environment::EnvSettings;
pub use idle::idle_rules;
pub use mask::{is_secret_name, mask_argument, mask_arguments, mask_url};
pub use merge::{Loaded, load};
pub use overrides::{ToolOverride, ToolOverrides};
pub use plugin::{Plugin, PluginPart, UserSetting};
pub use problem::{Problem, Severity};
pub use redact::{Hide, redact_file};
pub use reference::reference;
pub use rule::{OrderedRule, Reach, Rule, Rules};
pub use schema::schema;
pub use server::{
    CliProgram, EffectLists, Fallback, Idle, IdlePolicy, Kind, OAuth, OpenApi, Preset, Program,
    Protocol, Remote, Server, ServerEntry, Start, ToolList,
};
pub use show::{Shown, show};
pub use source::{Origin, Place, Scope, SourceFile, Surroundings};

//! Reads configuration files and merges them into one [`Config`].
//!
//! Read in this order: [`source`] parses a file into a tree of values with their positions, `read`
//! interprets the tree, [`merge`] combines the files into a [`Config`], whose types are in
//! [`settings`]. Apart from that, [`edit`] changes the text of a file, [`show()`] and `redact`
//! produce what people see, and [`schema()`] and [`reference()`] generate the reference.
//!
//! Files of other programs are read by `capstan-import`, through the port [`FileReader`].
//!
//! **Invariant:** this crate reads no file, no environment variable and no clock; everything is
//! passed in.

pub mod source;
mod units;
mod url;
mod fields;
pub mod settings;
mod read;
pub mod merge;
mod redact;
mod show;
pub mod edit;
mod schema;
mod reference;

pub use fields::nearest;
pub use merge::dead_rules::dead_rules;
pub use merge::environment::EnvSettings;
pub use merge::{Loaded, load};
pub use read::file::runs_capstan;
pub use read::server::slug;
pub use redact::{Hide, redact_file, scrub};
pub use reference::reference;
pub use schema::schema;
pub use settings::overrides::ToolOverrides;
pub use settings::rule::{OrderedRule, Reach, Rule, Rules};
pub use settings::server::{
    CliProgram, ClientAuth, CloudAccount, EffectLists, Fallback, Grant, Idle, IdlePolicy, Kind,
    NetHost, OAuth, OAuthConfig, OpenApi, Preset, Program, Protocol, ProviderKind,
    RESTRICTING_KEYS, References, Remote, Sandbox, Server, ServerEntry, Start, ToolList,
};
pub use settings::{
    AccessSetting, Audit, AuditArguments, AuditOnFull, Auth, AuthProvider, BearerToken,
    CLIENT_DOCUMENT, ClientSetting, CommandList, Config, Confirm, DefaultSetting, Flows, Forwarded,
    Gateway, GatewayLimits, JwtAlgorithm, JwtAuth, Mcp, Model, OauthAs, Permissions,
    RESERVED_SUBJECTS, RateSetting, Screen, Search, ServerScreen, Strategy, TagLists,
    TokenAlgorithm, Tools, UpstreamProvider,
};
pub use show::{Shown, show};
pub use source::problem::{Problem, Severity};
pub use source::reader::{FileReader, NativeFiles};
pub use source::{
    Dialect, FilePosition, Origin, Plugin, PluginPart, Scope, SourceFile, Surroundings, UserSetting,
};
pub use units::show_duration;

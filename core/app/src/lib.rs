//! The application layer: the operations that every front offers.
//!
//! [`api`] has the operations on servers, run here or in a running gateway. The services beside it
//! work on files and state: [`Configs`], [`Clients`], [`Registries`], [`Doctor`],
//! [`PendingApprovals`], [`Gateways`], [`Secrets`], [`Usage`], [`CallerTokens`], [`Accounts`]; [`chat`] runs conversations with a model; [`cassette`] records servers; [`reload`] changes the configuration of a running
//! gateway. [`hub_settings`] and [`server_settings`] translate a configuration. Services decide; ports reach files, sockets and time, and the binary implements them
//! with the adapters.
//!
//! **Invariant:** no I/O of its own: no file, environment, process, socket or clock except through
//! a port.

pub mod api;
pub mod cassette;
pub mod chat;
pub mod hub_settings;
pub mod reload;
pub mod secrets;
pub mod server_settings;
mod error;
mod setup;
mod environment;
mod files;
mod configs;
mod clients;
mod registries;
mod accounts;
mod addresses;
mod audit;
mod browser;
mod caller_tokens;
mod gateways;
mod logins;
mod pending_approvals;
mod text_editor;
mod usage;
mod selection;
mod large_program;
mod models;
mod warm_up;
mod doctor;
#[cfg(test)]
mod fakes;

pub use accounts::{Accounts, PasswordHash};
pub use addresses::{Addresses, UrlAddresses};
pub use audit::{AuditMark, AuditQuery, AuditReader, AuditRow, AuditWhole, Errors};
pub use browser::Browser;
pub use caller_tokens::{
    AuditWriter, CallerTokens, CreatedToken, MadeToken, NewCaller, TokenSource,
};
pub use clients::{
    AdoptableFile, Adopted, ClientMove, Clients, EditFault, EditStart, EntryFile, Installed, Mode,
    ReversibleEdits, TakeEntry, UndoneAdoption, Uninstalled,
};
pub use configs::{Approval, Change, ConfigFile, Configs, DemoConfig, SavedRules};
pub use doctor::{
    Check, CheckStatus, Doctor, Machine, ProbeAnswer, ProbeRequest, PublicProbe, check_public_url,
    check_servers,
};
pub use environment::Environment;
pub use error::{AppError, ErrorKind};
pub use files::{
    EditText, Edited, FileFacts, FileKind, Files, ItemArguments, NameCache, ProjectApprovals,
};
pub use gateways::{
    ControlFault, ControlSocket, ControlSockets, Gateways, NotRun, Which, socket_folders,
};
pub use logins::{LoginPage, LoginState, Logins, Logout, Revocation, WantedLogin, WantedLogout};
pub use models::{EmbeddingChoice, ModelChoice, Models, choose_embedding, choose_model};
pub use pending_approvals::{Pending, PendingApprovals};
pub use registries::{Registries, RegistryClient};
pub use secrets::{SecretCommands, Secrets};
pub use selection::{SelectionRules, Turn, TurnSelection};
pub(crate) use setup::scope_word;
pub use setup::{BuildHub, HubPurpose, Selection, Setup, nearest};
pub use text_editor::{Draft, TextEditor};
pub use usage::Usage;
pub use warm_up::{WarmUp, Warmed, list_once};

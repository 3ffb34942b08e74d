//! The application layer: the operations that every front offers.
//!
//! Fronts call the services here, the services decide, and ports reach files, sockets and time. The
//! binary implements the ports with the adapters.
//!
//! **Invariant:** no I/O of its own: no file, environment, process, socket or clock except through
//! a port.

pub mod api;
pub mod hub_settings;
pub mod reload;
mod error;
mod setup;
mod configs;
mod clients;
mod registries;
mod addresses;
mod audit;
mod pending_approvals;
mod usage;
mod rules;
mod doctor;
mod names;
mod gateways;
mod host;

pub use addresses::{Addresses, UrlAddresses};
pub use audit::{AuditMark, AuditQuery, AuditRow, AuditWhole, Errors};
pub use clients::{Clients, Installed, Mode, Spot, Uninstalled};
pub use configs::{Approval, Change, ConfigFile};
pub use doctor::{Check, CheckStatus};
pub use error::{AppError, ErrorKind};
pub use gateways::{Gateways, NotRun, Which};
pub use host::Host;
pub use names::NameCache;
pub use pending_approvals::{PendingApprovals, Seen};
pub use registries::Registries;
pub use rules::Rules;
pub(crate) use setup::scope_word;
pub use setup::{Selection, Setup, nearest};
pub use usage::Usage;

//! What is allowed, as pure functions.
//!
//! Read in this order: [`glob`] and [`pattern`] say which tools a rule means, [`permission`] has the
//! allow, ask and deny lists, [`access`] who of many callers may do what, [`exposure`] what a server
//! offers at all, [`effect`] what its tools do, [`decide`] puts them together, `conditional` tells
//! what arguments could change; [`command`] and [`environment`] guard what is started, [`address`]
//! what is connected to, [`redact`] what is written down, [`injection`] what a model gets to read.
//!
//! **Invariant:** no I/O, no clock, no randomness: the same question gets the same answer.

pub mod glob;
pub mod pattern;
pub mod permission;
mod hash;
mod grant;
pub mod access;
pub mod exposure;
pub mod effect;
mod index;
pub mod decide;
mod conditional;
mod unmatched;
mod alias;
pub mod command;
pub mod environment;
pub mod redact;
pub mod address;
pub mod injection;

pub use access::{Access, AccessTable};
pub use decide::{Asked, Policy, ServerPolicy, Step};
pub use glob::Glob;
pub use pattern::{Arguments, BadPattern, Pattern};
pub use permission::{DefaultRule, OrderedRule, Permissions, Reach, Rule, RuleEffect, RuleList};

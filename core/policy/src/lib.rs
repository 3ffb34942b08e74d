//! What is allowed, as pure functions.
//!
//! Read in this order: [`pattern`] says which tools a rule means, [`permission`] has the allow,
//! ask and deny lists, [`exposure`] what a server offers at all, [`effect`] what its tools do,
//! [`decide`] puts them together, `conditional` tells what arguments could change; [`command`] and [`environment`] guard what is started, [`redact`]
//! what is written down, [`injection`] what a model gets to read.
//!
//! **Invariant:** no I/O, no clock, no randomness: the same question gets the same answer.

pub mod pattern;
pub mod permission;
pub mod exposure;
pub mod effect;
pub mod decide;
mod conditional;
pub mod command;
pub mod environment;
pub mod redact;
pub mod injection;

pub use decide::{Asked, Policy, ServerPolicy, Step};
pub use pattern::{Arguments, BadPattern, Pattern};
pub use permission::{DefaultRule, Permissions, Reach, Rule, RuleList};

//! Policy decisions about calls, as pure functions.
//!
//! Read in this order: [`glob`] and [`pattern`] match tools, [`rules`] has the allow, ask and deny
//! lists and their order, [`access`] the rights of callers, [`exposure`] the tools that a server
//! offers at all, [`effect`] classifies tools as reading or writing, [`flows`] has rules about what
//! may follow what in one conversation; [`decide`] consults all of
//! them, and [`combine`] merges their rulings into one verdict. [`rate`] describes limits on calls.
//!
//! **Invariant:** no I/O, no clock, no randomness: equal questions get equal answers.

pub mod glob;
pub mod pattern;
pub mod rules;
mod grant;
pub mod access;
pub mod exposure;
pub mod effect;
pub mod flows;
pub mod decide;
pub mod combine;
mod new_names;
pub mod rate;

pub use access::{Access, AccessTable};
pub use decide::{Asked, Policy, PolicySource, ServerPolicy, Step};
pub use flows::{Flow, FlowAction, FlowRules, Tag, TagRules, Tags};
pub use glob::Glob;
pub use pattern::{Arguments, BadPattern, Pattern};
pub use rate::{Rate, RateBy};
pub use rules::{DefaultRule, OrderedRule, Permissions, Reach, Rule, RuleEffect, RuleList};

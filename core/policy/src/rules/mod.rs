//! Rules over calls: their sources, their order, and their verdicts.
//!
//! [`order`] is the one table of precedence. `source` has the lists as the configuration writes
//! them, `rule` a single rule, `table` the lists compiled in that order; `index` finds candidates
//! among many rules. `conditional` and `unmatched` answer questions about the rules themselves.

mod conditional;
mod index;
pub mod order;
mod rule;
mod source;
mod table;
mod unmatched;

pub use order::{Engine, ORDER, RuleGroup, Scope};
pub use rule::{Question, Reach, Rule, RuleEffect};
pub use source::{DefaultRule, OrderedRule, Permissions, RuleList};

pub(crate) use table::{Look, RuleTable, Votes};

//! The keys of `[tools]`.

use super::define::keys;
use super::form::Table;
use super::rate::Rate;
use super::rate::RateKeys;
use super::rule::{OrderedRule, Rules};
use crate::shape::RuleLists;
use crate::shape_access::Authorization;

keys! {
    /// What binds the tools of all servers.
    pub merged Tools {
        /// The `[tools.policy]` lists.
        policy: Rules,
        /// The `[tools.authorization]` rules that are switched on, in their order.
        authorization: Vec<OrderedRule>,
        /// The `[[tools.rates]]`, of all files.
        rates: Vec<Rate>,
    }
    keys {
        /// How many calls a session may make. Of several files the smallest number counts.
        max_tool_calls_per_session: u32, smallest;
    }
    by_hand {
        /// Lists beside the permissions; the stricter of the two verdicts wins.
        policy: RuleLists;
        /// Ordered rules that come behind `tools.policy`: the first that speaks of a tool decides.
        authorization: Authorization;
        /// How many calls there may be in some time, each as `[[tools.rates]]`. Those of all files count.
        rates: Vec<<RateKeys as Table>::Keys>;
    }
}

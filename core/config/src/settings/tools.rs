//! The keys of `[tools]`.

use super::authorization::AuthorizationKeys;
use super::define::keys;
use super::file::RuleLists;
use super::form::Table;
use super::rate::{RateKeys, RateSetting};
use super::rule::{OrderedRule, Rules};

keys! {
    /// What binds the tools of all servers.
    pub merged Tools {
        /// The `[tools.policy]` lists.
        policy: Rules,
        /// The `[tools.authorization]` rules that are switched on, in their order.
        authorization: Vec<OrderedRule>,
        /// The `[[tools.rates]]`, of all files.
        rates: Vec<RateSetting>,
    }
    keys {
        /// How many calls a session may make. Of several files the smallest number counts.
        max_tool_calls_per_session: u32, smallest;
    }
    by_hand {
        /// Lists beside the permissions; the stricter of the two verdicts wins.
        policy: RuleLists;
        /// Ordered rules that come behind `tools.policy`: the first that speaks of a tool decides.
        authorization: <AuthorizationKeys as Table>::Keys;
        /// How many calls there may be in some time, each as `[[tools.rates]]`. Those of all files count.
        rates: Vec<<RateKeys as Table>::Keys>;
    }
}

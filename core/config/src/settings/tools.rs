//! The keys of `[tools]`.

use super::authorization::AuthorizationKeys;
use super::define::keys;
use super::file::RuleLists;
use super::form::Table;
use super::rate::{RateKeys, RateSetting};
use super::rule::{OrderedRule, Rules};

keys! {
    /// Rules and limits for the tools of all servers.
    pub merged Tools {
        /// The `[tools.policy]` lists.
        policy: Rules,
        /// The `[tools.authorization]` rules that are enabled, in their order.
        authorization: Vec<OrderedRule>,
        /// The `[[tools.rates]]`, of all files.
        rates: Vec<RateSetting>,
    }
    keys {
        /// The maximum number of calls in a session. Of several files, the smallest number applies.
        max_tool_calls_per_session: u32, smallest;
    }
    by_hand {
        /// Lists of rules in addition to `[permissions]`; the stricter of the two verdicts wins.
        policy: RuleLists;
        /// Ordered rules that apply if `tools.policy` has no verdict: the first rule that matches a tool decides.
        authorization: <AuthorizationKeys as Table>::Keys;
        /// Limits on the number of calls in a period, each as `[[tools.rates]]`. Those of all files apply.
        rates: Vec<<RateKeys as Table>::Keys>;
    }
}

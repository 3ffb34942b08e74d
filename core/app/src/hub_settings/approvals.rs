//! Who may approve a call, and what an approval may cover.

use std::sync::Arc;

use capstan_config::{Loaded, show};
use capstan_hub::Approvals;
use capstan_hub::approvals::{OtherShells, Span, policy_version};
use capstan_hub::ports::{Clock, RuleBook, Store};

/// The ports of a gateway's approvals.
pub struct ApprovalPorts {
    /// Stores permanent rules.
    pub rules: Arc<dyn RuleBook>,
    /// Stores approvals for calls that are made again.
    pub store: Arc<dyn Store>,
    /// The clock by which questions expire.
    pub clock: Arc<dyn Clock>,
    /// The seed of question ids, different for each process.
    pub seed: u64,
}

/// Approvals for one command, typed by the operator.
///
/// The session is this one call, so only a saved approval can cover more.
pub fn command_approvals(rules: Arc<dyn RuleBook>) -> Approvals {
    Approvals::at_the_front(vec![Span::Saved], rules)
}

/// Approvals for clients of a gateway, whose operator may use another shell.
pub fn gateway_approvals(loaded: &Loaded, ports: ApprovalPorts) -> Approvals {
    let gateway = &loaded.config.gateway;
    let mut spans = vec![Span::Session];
    if gateway.save_approvals {
        spans.push(Span::Saved);
    }
    let shown = show(loaded);
    // Every value of the configuration counts as policy. At worst, a question is asked once more
    // than needed.
    let texts = shown.iter().flat_map(|one| [one.key.as_str(), one.value.as_str()]);
    let wait = gateway.approval_wait;
    let ApprovalPorts { rules, store, clock, seed } = ports;
    let shells = OtherShells { store, clock, policy: policy_version(texts), wait, seed };
    Approvals::at_the_front(spans, rules).and_elsewhere(shells)
}

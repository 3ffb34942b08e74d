//! Who may approve a call, and what an approval may cover.

use std::sync::Arc;
use std::time::Duration;

use capstan_config::{Confirm, Loaded, show};
use capstan_hub::Approvals;
use capstan_hub::approvals::{OtherShells, Span, policy_version};
use capstan_hub::ports::{Clock, RuleBook, Store};

/// The ports of approvals.
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

/// The transport of a gateway's clients, which decides who can confirm their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTransport {
    /// One client, which started the gateway; it may say itself who confirms.
    Stdio(Option<Confirm>),
    /// Clients over the network, for which Capstan always confirms.
    Http,
}

/// Approvals for one command, typed by the operator.
///
/// The session is this one call, so only a saved approval can cover more. No other shell is asked,
/// but an approval that was given there for this call counts.
pub fn command_approvals(loaded: &Loaded, ports: ApprovalPorts) -> Approvals {
    let (rules, shells) = other_shells(loaded, ports, None);
    Approvals::at_the_front(vec![Span::Saved], rules).and_elsewhere(shells)
}

/// Approvals for clients of a gateway, whose operator may use another shell.
pub fn gateway_approvals(
    loaded: &Loaded,
    ports: ApprovalPorts,
    transport: ClientTransport,
) -> Approvals {
    let gateway = &loaded.config.gateway;
    let mut spans = vec![Span::Session];
    if gateway.save_approvals {
        spans.push(Span::Saved);
    }
    let (rules, shells) = other_shells(loaded, ports, Some(gateway.approval_wait));
    let approvals = Approvals::at_the_front(spans, rules).and_elsewhere(shells);
    let confirm = match transport {
        ClientTransport::Stdio(chosen) => chosen.unwrap_or(gateway.confirm),
        ClientTransport::Http => Confirm::Capstan,
    };
    match confirm {
        Confirm::Capstan => approvals,
        Confirm::Client => approvals.leaving_defaults_to_the_client(),
    }
}

/// The approvals from other shells, with the wait for them.
fn other_shells(
    loaded: &Loaded,
    ports: ApprovalPorts,
    wait: Option<Duration>,
) -> (Arc<dyn RuleBook>, OtherShells) {
    let shown = show(loaded);
    // Every value of the configuration counts as policy. At worst, a question is asked once more
    // than needed.
    let texts = shown.iter().flat_map(|one| [one.key.as_str(), one.value.as_str()]);
    let ApprovalPorts { rules, store, clock, seed } = ports;
    (rules, OtherShells { store, clock, policy: policy_version(texts), wait, seed })
}

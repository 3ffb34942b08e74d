//! The key `networks`: private networks in which a server may be reached.

use capstan_safety::address::{BadNetwork, Network};
use serde_json::Value as Json;

use super::ServerEntry;
use crate::fields::Fields;
use crate::settings::form::Form;
use crate::source::problem::Problem;

/// The form of a list of networks in CIDR notation.
pub(crate) struct Networks;

/// Narrows a project's networks to those that the user's own entry allows.
///
/// Returns the networks that are allowed only in part or not at all.
pub(super) fn narrow(networks: &mut Vec<Network>, allowed: &[Network]) -> Vec<Network> {
    let is_in = |one: &Network, of: &[Network]| of.iter().any(|wider| wider.covers(one));
    let (mut kept, wider): (Vec<_>, Vec<_>) =
        std::mem::take(networks).into_iter().partition(|one| is_in(one, allowed));
    let narrower: Vec<Network> =
        allowed.iter().filter(|one| is_in(one, &wider) && !is_in(one, &kept)).copied().collect();
    kept.extend(narrower);
    *networks = kept;
    wider
}

/// Returns a warning about networks that the user's own entry does not allow completely.
pub(super) fn warning(
    nearer: &ServerEntry,
    replaced: &ServerEntry,
    narrowed: &[Network],
) -> Option<Problem> {
    let listed: Vec<String> = narrowed.iter().map(|one| format!("`{one}`")).collect();
    if listed.is_empty() {
        return None;
    }
    let message = format!(
        "server `{}` ({}) is reached in {} only as far as your own entry ({}) allows it",
        nearer.display,
        nearer.origin,
        listed.join(", "),
        replaced.origin
    );
    let help = "add the networks to `networks` in your own entry";
    Some(Problem { server: Some(nearer.name.clone()), ..Problem::warning(message).help(help) })
}

// === impl Networks ===

impl Form for Networks {
    type Value = Vec<Network>;
    type Schema = Vec<String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<Network>> {
        let texts = fields.texts(key)?;
        let path = fields.key(key);
        let mut networks = Vec::new();
        for text in texts {
            match text.value.value.parse::<Network>() {
                Ok(network) => networks.push(network),
                Err(error) => {
                    let help = match error {
                        BadNetwork::Shape => "write \"10.0.0.0/8\", or one address".to_owned(),
                        BadNetwork::HostBits(network) => {
                            format!("write \"{network}\", or the address without a prefix")
                        }
                    };
                    let message = format!("in `{path}`, `{}` {error}", text.value.shown());
                    let problem = Problem::error(message).help(help);
                    fields.report().add(problem, path.clone(), &text.span);
                }
            }
        }
        Some(networks)
    }

    fn write(value: &Vec<Network>) -> Json {
        value.iter().map(Network::to_string).collect()
    }
}

//! The keys of `[gateway.auth.forwarded]`: headers of a trusted reverse proxy.

use capstan_safety::address::Network;

use super::auth::{check_header, check_networks};
use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::server::networks::Networks;

keys! {
    /// Headers in which a reverse proxy names the user.
    pub table Forwarded
    keys {
        /// The header with the name of the user.
        header: String = "x-forwarded-user".to_owned();
        /// The header with the roles of the user, separated by commas.
        groups_header: String = "x-forwarded-groups".to_owned();
        /// The networks of the proxy. Requests from other addresses are not trusted.
        trusted_source_cidrs: Vec<Network> as Networks = loopback();
    }
}

/// Reads the table under `forwarded`; without one, the defaults.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Forwarded {
    let Some(mut nested) = fields.nested("forwarded") else { return Forwarded::default() };
    let read = Forwarded::read(&mut nested);
    for (key, name) in [("header", &read.header), ("groups_header", &read.groups_header)] {
        check_header(&mut nested, key, name);
    }
    check_networks(&mut nested, "trusted_source_cidrs");
    nested.finish();
    read
}

/// The networks of this machine.
fn loopback() -> Vec<Network> {
    ["127.0.0.0/8", "::1/128"].iter().filter_map(|text| text.parse().ok()).collect()
}

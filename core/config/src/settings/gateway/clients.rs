//! The keys of `[gateway.clients.NAME]`.

use capstan_model::Expose;

use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::form::OneOf as _;
use crate::show::{self, Shown};
use crate::source::Origin;

keys! {
    /// Settings for clients with a name.
    pub(crate) table ClientKeys
    keys {
        /// The tools that these clients get, in place of `gateway.expose`.
        expose: Expose;
    }
}

/// What clients with a name are offered.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSetting {
    /// The names that it is for; `*` matches anything.
    pub client: String,
    /// What they are offered.
    pub expose: Expose,
    pub(crate) origin: Origin,
}

/// Reads the tables of one file.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Vec<ClientSetting> {
    let mut clients = Vec::new();
    fields.each_table("clients", |name, mut fields| {
        let span = fields.span();
        let ClientKeys { expose } = ClientKeys::read(&mut fields);
        let origin = fields.report().file.origin(&span);
        let client = name.to_owned();
        clients.extend(expose.map(|expose| ClientSetting { client, expose, origin }));
        fields.finish();
    });
    clients
}

// === impl ClientSetting ===

impl ClientSetting {
    /// The setting as `config show` prints it.
    pub(crate) fn shown(&self) -> Shown {
        let key = format!("gateway.clients.{}.expose", show::text(&self.client));
        let (value, origin) = (show::text(self.expose.word()), self.origin.to_string());
        Shown { key, value, origin }
    }
}

//! The keys of `[gateway]`.

use std::time::Duration;

use super::define::keys;
use super::form::{Table, Wait};
use super::gateway_limits::{self, GatewayLimits};
use crate::fields::Fields;
use crate::refuse::{self, In};
use crate::source::Scope;
use crate::source::problem::Problem;

keys! {
    /// Where `capstan serve --http` listens, and to whom; a project file has no say in it.
    pub merged Gateway {
        /// Its bounds.
        limits: GatewayLimits,
    }
    keys {
        /// The address: `HOST:PORT`, or `:PORT` for this machine only. Port 0 picks one.
        listen: String = "127.0.0.1:8080".to_owned(), nearest;
        /// An address for `/metrics` alone: `HOST:PORT`, or `:PORT` for this machine only. It names all servers.
        metrics_listen: String, nearest;
        /// The address that clients are told, where it is another: behind a proxy, or with a name.
        public_url: String, nearest;
        /// Names by which clients may call the gateway, beside `localhost` and the address it listens on.
        allowed_hosts: Vec<String> = Vec::new(), nearest;
        /// Web pages that may use the gateway, beside those of this machine: `https://app.example.com`.
        allowed_origins: Vec<String> = Vec::new(), nearest;
        /// A PEM file with the certificate chain; with it the gateway speaks TLS only.
        tls_cert: String, nearest;
        /// A PEM file with the certificate's key.
        tls_key: String, nearest;
        /// Whether arguments are checked against a tool's schema before they are sent.
        validate_arguments: bool = false, nearest;
        /// How long a call waits for an approval when its client cannot be asked; `"0s"` refuses it at once.
        approval_wait: Duration as Wait = Duration::from_secs(15), nearest;
        /// Whether a client's user may have an approval saved as a rule of yours.
        save_approvals: bool = false, nearest;
    }
    by_hand {
        /// Its bounds.
        limits: <GatewayLimits as Table>::Keys;
    }
}

/// The `[gateway]` table of one file.
#[derive(Debug, Default)]
pub(crate) struct GatewayPart {
    pub(crate) keys: InFile,
    pub(crate) limits: gateway_limits::InFile,
}

// === impl GatewayPart ===

impl GatewayPart {
    /// Reads the table of one file.
    ///
    /// A project's table is checked but not used: a cloned folder must not decide who reaches the
    /// gateway.
    pub(crate) fn read(mut fields: Fields<'_, '_>) -> Self {
        refuse::check(&mut fields, In::Gateway);
        let mut part = Self { keys: InFile::read(&mut fields), ..Self::default() };
        part.keys.check_tls(&mut fields);
        if let Some(mut limits) = fields.nested("limits") {
            part.limits = gateway_limits::InFile::read(&mut limits);
            limits.finish();
        }
        let of_project = fields.report().file.scope == Scope::Project;
        if of_project {
            let problem =
                Problem::warning("a project has no say in your gateway; `[gateway]` is not used")
                    .help("move it to your own configuration file");
            fields.table_problem(problem);
        }
        fields.finish();
        if of_project { Self::default() } else { part }
    }
}

// === impl InFile ===

impl InFile {
    fn check_tls(&self, fields: &mut Fields<'_, '_>) {
        let (has, lacks) = match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => ("tls_cert", "tls_key"),
            (None, Some(_)) => ("tls_key", "tls_cert"),
            (Some(_), Some(_)) | (None, None) => return,
        };
        let problem = Problem::error(format!("`gateway.{has}` is there without `{lacks}`"))
            .help("TLS needs both; each is a PEM file");
        fields.problem(has, problem);
    }
}

//! The table of the gateway.

use std::time::Duration;

use crate::fields::Fields;
use crate::refuse::{self, In};
use crate::source::Scope;
use crate::source::problem::Problem;

use super::tables::{Setting, setting};

/// What the `[gateway]` of one file says.
#[derive(Debug, Default)]
pub(crate) struct GatewayTable {
    pub(crate) listen: Option<Setting<String>>,
    pub(crate) metrics_listen: Option<Setting<String>>,
    pub(crate) public_url: Option<Setting<String>>,
    pub(crate) allowed_hosts: Option<Setting<Vec<String>>>,
    pub(crate) allowed_origins: Option<Setting<Vec<String>>>,
    pub(crate) tls_cert: Option<Setting<String>>,
    pub(crate) tls_key: Option<Setting<String>>,
    pub(crate) validate_arguments: Option<Setting<bool>>,
    pub(crate) approval_wait: Option<Setting<Duration>>,
    pub(crate) save_approvals: Option<Setting<bool>>,
    pub(crate) max_body: Option<Setting<u64>>,
    pub(crate) max_connections: Option<Setting<u32>>,
    pub(crate) max_sessions: Option<Setting<u32>>,
    pub(crate) session_idle: Option<Setting<Duration>>,
}

// === impl GatewayTable ===

impl GatewayTable {
    /// Reads the table. That of a project is checked and not used: who can be reached from where
    /// is no business of a folder that somebody has cloned.
    pub(super) fn read(mut fields: Fields<'_, '_>) -> Self {
        refuse::check(&mut fields, In::Gateway);
        let mut table = Self::default();
        table.addresses(&mut fields);
        table.approvals(&mut fields);
        if let Some(mut limits) = fields.nested("limits") {
            table.limits(&mut limits);
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
        if of_project { Self::default() } else { table }
    }

    fn addresses(&mut self, fields: &mut Fields<'_, '_>) {
        let listen = fields.string("listen");
        self.listen = setting(fields, "listen", listen);
        let metrics = fields.string("metrics_listen");
        self.metrics_listen = setting(fields, "metrics_listen", metrics);
        let public_url = fields.string("public_url");
        self.public_url = setting(fields, "public_url", public_url);
        let hosts = fields.strings("allowed_hosts");
        self.allowed_hosts = setting(fields, "allowed_hosts", hosts);
        let origins = fields.strings("allowed_origins");
        self.allowed_origins = setting(fields, "allowed_origins", origins);
        let cert = fields.string("tls_cert");
        self.tls_cert = setting(fields, "tls_cert", cert);
        let key = fields.string("tls_key");
        self.tls_key = setting(fields, "tls_key", key);
        let validate = fields.flag("validate_arguments");
        self.validate_arguments = setting(fields, "validate_arguments", validate);
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            let (has, lacks) = match self.tls_cert {
                Some(_) => ("tls_cert", "tls_key"),
                None => ("tls_key", "tls_cert"),
            };
            let problem = Problem::error(format!("`gateway.{has}` is there without `{lacks}`"))
                .help("TLS needs both; each is a PEM file");
            fields.problem(has, problem);
        }
    }

    fn approvals(&mut self, fields: &mut Fields<'_, '_>) {
        let wait = fields.wait("approval_wait");
        self.approval_wait = setting(fields, "approval_wait", wait);
        let save = fields.flag("save_approvals");
        self.save_approvals = setting(fields, "save_approvals", save);
    }

    fn limits(&mut self, fields: &mut Fields<'_, '_>) {
        let body = fields.size("max_body");
        self.max_body = setting(fields, "max_body", body);
        let connections = fields.count("max_connections");
        self.max_connections = setting(fields, "max_connections", connections);
        let sessions = fields.count("max_sessions");
        self.max_sessions = setting(fields, "max_sessions", sessions);
        let idle = fields.duration("session_idle");
        self.session_idle = setting(fields, "session_idle", idle);
    }
}

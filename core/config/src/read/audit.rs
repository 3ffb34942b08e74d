//! The table of the audit log.

use std::time::Duration;

use crate::fields::{Fields, Words};
use crate::settings::{Audit, AuditArguments, AuditOnFull};
use crate::source::Scope;
use crate::source::problem::Problem;
use crate::units::show_size;

use super::tables::{Setting, setting};

/// What the `[audit]` of one file says.
#[derive(Debug, Default)]
pub(crate) struct AuditTable {
    pub(crate) enabled: Option<Setting<bool>>,
    pub(crate) path: Option<Setting<String>>,
    pub(crate) arguments: Option<Setting<AuditArguments>>,
    pub(crate) retention: Option<Setting<Duration>>,
    pub(crate) max_size: Option<Setting<u64>>,
    pub(crate) max_total: Option<Setting<u64>>,
    pub(crate) durable: Option<Setting<bool>>,
    pub(crate) on_full: Option<Setting<AuditOnFull>>,
}

const ARGUMENTS: Words<AuditArguments> =
    &[("off", AuditArguments::Off), ("redacted", AuditArguments::Redacted)];

const ON_FULL: Words<AuditOnFull> =
    &[("degrade", AuditOnFull::Degrade), ("refuse", AuditOnFull::Refuse)];

/// A file holds at least one entry, however long it is.
const LEAST_SIZE: u64 = 64 << 10;

// === impl AuditTable ===

impl AuditTable {
    /// Reads the table. That of a project is checked and not used: what is written down about you
    /// is no business of a folder that somebody has cloned.
    pub(super) fn read(mut fields: Fields<'_, '_>) -> Self {
        let mut table = Self::default();
        let enabled = fields.flag("enabled");
        table.enabled = setting(&mut fields, "enabled", enabled);
        let path = fields.string("path");
        table.path = setting(&mut fields, "path", path);
        let arguments = fields.word("arguments", ARGUMENTS);
        table.arguments = setting(&mut fields, "arguments", arguments);
        table.bounds(&mut fields);
        let durable = fields.flag("durable");
        table.durable = setting(&mut fields, "durable", durable);
        let on_full = fields.word("on_full", ON_FULL);
        table.on_full = setting(&mut fields, "on_full", on_full);
        let of_project = fields.report().file.scope == Scope::Project;
        if of_project {
            let problem =
                Problem::warning("a project has no say in your audit log; `[audit]` is not used")
                    .help("move it to your own configuration file");
            fields.table_problem(problem);
        }
        fields.finish();
        if of_project { Self::default() } else { table }
    }

    fn bounds(&mut self, fields: &mut Fields<'_, '_>) {
        let retention = fields.duration("retention");
        self.retention = setting(fields, "retention", retention);
        let size = fields.size("max_size");
        self.max_size = setting(fields, "max_size", size);
        let total = fields.size("max_total");
        self.max_total = setting(fields, "max_total", total);
        let usual = Audit::default();
        let size = size.unwrap_or(usual.max_size);
        if size < LEAST_SIZE {
            let least = show_size(LEAST_SIZE);
            let problem = Problem::error(format!("`audit.max_size` must be at least {least}"))
                .help(format!("write `max_size = \"{least}\"` or more"));
            fields.problem("max_size", problem);
        }
        if total.unwrap_or(usual.max_total) < size {
            let key = if total.is_some() { "max_total" } else { "max_size" };
            let problem = Problem::error("`audit.max_total` is below `audit.max_size`")
                .help("all files together must have room for at least one of them");
            fields.problem(key, problem);
        }
    }
}

//! The keys of `[audit]`.

use std::time::Duration;

use serde::Serialize;

use super::define::keys;
use super::form::{OneOf, Size, Time};
use crate::fields::{Fields, Words};
use crate::source::Scope;
use crate::source::problem::Problem;
use crate::units::show_size;

keys! {
    /// The audit log.
    pub merged Audit
    keys {
        /// Whether it is kept.
        enabled: bool = true, nearest;
        /// Its file; unset, in the state folder.
        path: String, nearest;
        /// What of the arguments is written: nothing, or what does not look like a secret.
        arguments: AuditArguments = AuditArguments::Off, nearest;
        /// How long entries are kept. Whole files are dropped, so that some stay up to a ninth longer.
        retention: Duration as Time = Duration::from_hours(90 * 24), nearest;
        /// The size at which a file is put aside and a new one begun.
        max_size: u64 as Size = 100 << 20, nearest;
        /// The size of all files together; when it is reached, the oldest go before their time.
        max_total: u64 as Size = 1 << 30, nearest;
        /// Whether an answer waits until the disk has its entry.
        durable: bool = false, nearest;
        /// What becomes of calls while the log cannot be written: they are made, and it is told and counted that entries are missing; or they are refused.
        on_full: AuditOnFull = AuditOnFull::Degrade, nearest;
    }
}

/// The handling of calls while the audit log cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOnFull {
    /// Calls are made. A counter and a log line report the missing entries.
    #[default]
    Degrade,
    /// Calls are refused.
    Refuse,
}

/// The part of a call's arguments that is written to the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditArguments {
    /// Nothing.
    #[default]
    Off,
    /// The arguments, with everything that looks like a secret removed.
    Redacted,
}

/// The smallest `max_size`, so that a file can hold at least one entry of any length.
const LEAST_SIZE: u64 = 64 << 10;

// === impl InFile ===

impl InFile {
    /// Reads the table of one file.
    ///
    /// A project's table is checked but not used: a cloned folder must not decide what is logged
    /// about its user.
    pub(crate) fn checked(mut fields: Fields<'_, '_>) -> Self {
        let table = Self::read(&mut fields);
        table.check_sizes(&mut fields);
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

    fn check_sizes(&self, fields: &mut Fields<'_, '_>) {
        let default = Audit::default();
        let size = self.max_size.as_ref().map_or(default.max_size, |setting| setting.value);
        let total = self.max_total.as_ref().map_or(default.max_total, |setting| setting.value);
        if size < LEAST_SIZE {
            let least = show_size(LEAST_SIZE);
            let problem = Problem::error(format!("`audit.max_size` must be at least {least}"))
                .help(format!("write `max_size = \"{least}\"` or more"));
            fields.problem("max_size", problem);
        }
        if total < size {
            let key = if self.max_total.is_some() { "max_total" } else { "max_size" };
            let problem = Problem::error("`audit.max_total` is below `audit.max_size`")
                .help("all files together must have room for at least one of them");
            fields.problem(key, problem);
        }
    }
}

// === impl AuditArguments ===

impl OneOf for AuditArguments {
    const WORDS: Words<Self> = &[("off", Self::Off), ("redacted", Self::Redacted)];
}

// === impl AuditOnFull ===

impl OneOf for AuditOnFull {
    const WORDS: Words<Self> = &[("degrade", Self::Degrade), ("refuse", Self::Refuse)];
}

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
        /// Keep an audit log.
        enabled: bool = true, nearest;
        /// The file of the log. Default: a file in the state folder.
        path: String, nearest;
        /// The arguments of calls in the log: none (`off`), or with likely secrets masked (`redacted`).
        arguments: AuditArguments = AuditArguments::Off, nearest;
        /// The time for which entries are kept. Only whole files are deleted, so some entries stay up to a ninth longer.
        retention: Duration as Time = Duration::from_hours(90 * 24), nearest;
        /// The size at which the log continues in a new file.
        max_size: u64 as Size = 100 << 20, nearest;
        /// The maximum size of all files together. Above it, the oldest files are deleted before `retention` ends.
        max_total: u64 as Size = 1 << 30, nearest;
        /// Delay each answer until its entry is on disk.
        durable: bool = false, nearest;
        /// The treatment of calls while the log cannot be written: allow them, and report and count the missing entries (`degrade`), or refuse them (`refuse`).
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
            let problem = Problem::warning("`[audit]` in a project file is not used")
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
                .help("make `max_total` at least as large as `max_size`");
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

//! Findings about the machine and the configuration.

use serde::Serialize;

/// One finding of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub check: String,
    /// How it is.
    pub status: CheckStatus,
    /// What was seen.
    pub detail: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Fine.
    Ok,
    /// Works, but worth a look.
    Warning,
    /// Does not work.
    Error,
}

// === impl Check ===

impl Check {
    /// Something that is fine.
    pub fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { check: check.into(), status: CheckStatus::Ok, detail: detail.into(), fix: None }
    }

    /// Something worth a look.
    pub fn warning(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Warning, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }

    /// Something that does not work.
    pub fn error(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Error, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }
}

impl CheckStatus {
    /// The word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

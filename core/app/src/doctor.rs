//! Findings about the machine and the configuration.

use serde::Serialize;

/// One finding of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The thing that was checked.
    pub check: String,
    /// The result.
    pub status: CheckStatus,
    /// The observation, in words.
    pub detail: String,
    /// The remedy, if one is needed.
    pub fix: Option<String>,
}

/// The result of a check.
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
    /// A check that passed.
    pub fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { check: check.into(), status: CheckStatus::Ok, detail: detail.into(), fix: None }
    }

    /// A check that found something to look at.
    pub fn warning(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Warning, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }

    /// A check that failed.
    pub fn error(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Error, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }
}

impl CheckStatus {
    /// The word for output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

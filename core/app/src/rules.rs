//! Port for commands that only evaluate rules; it opens, writes and starts nothing.

use jiff::Timestamp;

use crate::Setup;
use crate::{AppError, Selection};

/// The rules of a configuration, and the time to evaluate them at.
pub trait Rules {
    /// Loads only the managed file and the files that `--config` and `CAPSTAN_CONFIG` name.
    fn load_alone(&self, selection: &Selection) -> Result<Setup, AppError>;

    /// The current time.
    fn now(&self) -> Timestamp;
}

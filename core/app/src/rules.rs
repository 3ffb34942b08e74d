//! What commands need that only weigh rules: nothing of it opens, writes or starts anything.

use jiff::Timestamp;

use crate::Setup;
use crate::{AppError, Selection};

/// The rules of a configuration, and the time to weigh them by.
pub trait Rules {
    /// Reads only what is managed and the files that `--config` and `CAPSTAN_CONFIG` name.
    fn load_alone(&self, selection: &Selection) -> Result<Setup, AppError>;

    /// The time.
    fn now(&self) -> Timestamp;
}

//! Keeps secrets out of core dumps.

use std::sync::Once;

/// Excludes this process from core dumps, and from debuggers of other programs of the user. A
/// program that it starts is not affected.
pub(crate) fn protect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{DumpableBehavior, set_dumpable_behavior};
            if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
                tracing::debug!(%error, "core dumps of this process cannot be switched off");
            }
        }
    });
}

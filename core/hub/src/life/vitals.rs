//! How each server is, how it is used, and what it uses up.

use capstan_model::{ServerName, ServerState};

use crate::hub::Hub;
use crate::ports::{Footprint, Pace};

/// How one server is.
#[derive(Clone, Debug, PartialEq)]
pub struct Vitals {
    /// Which one.
    pub server: ServerName,
    /// Its state.
    pub state: ServerState,
    /// How it is used, where that is counted.
    pub pace: Option<Pace>,
    /// What it uses up, where it runs on this machine.
    pub footprint: Option<Footprint>,
}

impl Hub {
    /// How the servers are, in the order of the configuration. Starts nothing.
    ///
    /// Looks at the system's processes, which takes a moment.
    pub fn vitals(&self) -> Vec<Vitals> {
        let of = |backend: &std::sync::Arc<dyn crate::ports::Backend>| Vitals {
            server: backend.name().clone(),
            state: backend.state(),
            pace: backend.pace(),
            footprint: backend.footprint(),
        };
        self.backends.values().map(of).collect()
    }
}

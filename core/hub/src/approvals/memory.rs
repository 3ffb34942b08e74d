//! What somebody has said yes to for longer than one call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use capstan_model::{By, Effect, ItemId, Kind, ServerName};

use super::Width;
use super::digest::digest;
use crate::ports::Question;

/// Answers that are remembered at once; of more, the oldest is forgotten and asked for again.
const MAX_REMEMBERED: usize = 256;

/// Answers that are remembered.
///
/// **Invariant:** they answer only what nobody but the default asks. A rule that asks goes on
/// asking.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: Mutex<Vec<Remembered>>,
    /// The policy that they were said under.
    policy: Mutex<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Remembered {
    Item(Kind, ItemId),
    Arguments(Kind, ItemId, String),
    ServerReads(ServerName),
    Server(ServerName),
}

// === impl Memory ===

impl Memory {
    /// Remembers a yes.
    pub(crate) fn keep(&self, width: Width, question: &Question) {
        let id = &question.id;
        let new = match width {
            Width::Item => Remembered::Item(question.kind, id.clone()),
            Width::Arguments => {
                Remembered::Arguments(question.kind, id.clone(), digest(&question.arguments))
            }
            Width::ServerReads => Remembered::ServerReads(id.server.clone()),
            Width::Server => Remembered::Server(id.server.clone()),
        };
        let mut known = self.known();
        if known.contains(&new) {
            return;
        }
        if known.len() >= MAX_REMEMBERED {
            known.remove(0);
        }
        known.push(new);
    }

    /// Whether the answer to a question is remembered.
    pub(crate) fn answers(&self, question: &Question) -> bool {
        match question.by {
            By::Rule => false,
            By::Default => {
                let known = self.known();
                // Arguments are looked at once, and only where that can tell something.
                let looks = known.iter().any(|one| matches!(one, Remembered::Arguments(..)));
                let digest = looks.then(|| digest(&question.arguments));
                known.iter().any(|one| one.covers(question, digest.as_deref()))
            }
        }
    }

    /// Another policy is in force: what was said under the one before is asked again.
    pub(crate) fn under(&self, policy: &str) {
        let mut under = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        if *under != policy {
            policy.clone_into(&mut under);
            self.known().clear();
        }
    }

    fn known(&self) -> MutexGuard<'_, Vec<Remembered>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Remembered ===

impl Remembered {
    fn covers(&self, question: &Question, digest: Option<&str>) -> bool {
        let is_it = |kind: &Kind, id: &ItemId| *kind == question.kind && *id == question.id;
        match self {
            Self::Item(kind, id) => is_it(kind, id),
            Self::Arguments(kind, id, own) => is_it(kind, id) && digest == Some(own.as_str()),
            Self::ServerReads(server) => {
                *server == question.id.server && question.effect == Effect::Read
            }
            Self::Server(server) => *server == question.id.server,
        }
    }
}

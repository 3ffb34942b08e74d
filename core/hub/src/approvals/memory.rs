//! Remembers approvals that cover more than one call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use capstan_model::{By, Effect, ItemId, Kind, ServerName};

use super::Width;
use super::digest::digest;
use crate::ports::Question;

/// Most approvals that are remembered; beyond that, the oldest is dropped and asked for again.
const MAX_REMEMBERED: usize = 256;

/// Approvals that cover more than one call.
///
/// **Invariant:** they answer only questions that come from the default verdict. An explicit rule
/// that asks always asks.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: Mutex<Vec<Remembered>>,
    /// The version of the policy under which they were given.
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
    /// Remembers an approval.
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

    /// True if a remembered approval answers the question.
    pub(crate) fn answers(&self, question: &Question) -> bool {
        match question.by {
            By::Rule | By::Pins => false,
            By::Default => {
                let known = self.known();
                // The digest of the arguments is computed at most once, and only if it is needed.
                let looks = known.iter().any(|one| matches!(one, Remembered::Arguments(..)));
                let digest = looks.then(|| digest(&question.arguments));
                known.iter().any(|one| one.covers(question, digest.as_deref()))
            }
        }
    }

    /// Sets the version of the policy. If it changed, all approvals are dropped and asked for
    /// again.
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

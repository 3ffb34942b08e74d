//! The port for decisions on calls that a rule asks about.

use std::sync::Arc;

use capstan_model::{By, Caller, Effect, ItemId, Kind};
use capstan_wire::Json;

use super::BoxFuture;
use crate::Ground;
use crate::approvals::Extent;

/// Decides on calls that a rule asks about, at the front that made the call.
pub trait Approver: Send + Sync {
    /// Decides on a call. Without a person the answer is no.
    ///
    /// Dropping the future withdraws the question, because it was answered elsewhere.
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval>;

    /// Receives a message of the hub about the approval of the call.
    fn inform(&self, text: &str);
}

/// A call that a rule asks about.
#[derive(Clone, Debug)]
pub struct Question {
    /// The caller.
    pub caller: Arc<Caller>,
    /// The item to be called.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The arguments of the call.
    pub arguments: Json,
    /// The effect of the item.
    pub effect: Effect,
    /// The rule that asks.
    pub rule: String,
    /// A rule that matches the call, which asks every time, or the default.
    pub by: By,
    /// The extents that an approval may have. Never empty; the first is this one call.
    pub offers: Vec<Extent>,
    /// The id under which other shells can show and answer the question, if there are any.
    pub open: Option<String>,
}

/// A decision on a call and its ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Run the call; the extent says which later calls are approved too.
    Yes(Ground, Extent),
    /// Do not run it.
    No(Ground),
}

// === impl Approval ===

impl Approval {
    /// Approves this one call.
    pub fn once(ground: Ground) -> Self {
        Self::Yes(ground, Extent::Once)
    }
}

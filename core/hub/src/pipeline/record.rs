//! Wraps all steps: every call is recorded exactly once, however it ends.

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, Effect, ItemId, Ruling};
use capstan_safety::mask::mask_json;
use serde_json::Value;

use super::Screened;
use crate::hub::Hub;
use crate::ports::{AuditLog, Clock, Settling};
use crate::{Call, Entry, Ground, Keep, Outcome};

/// An audit entry that is still open.
///
/// Dropping it unclosed records [`Outcome::Abandoned`]: that is what happens when a client
/// disconnects and the future running the call is dropped with it.
pub(super) struct Record<'a> {
    hub: &'a Hub,
    opened: Duration,
    entry: Option<Entry>,
}

/// An audit entry that stays open while an answer is streamed.
pub(super) struct OpenEntry {
    audit: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
    opened: Duration,
    entry: Option<Entry>,
}

// === impl Record ===

impl<'a> Record<'a> {
    pub(super) fn open(hub: &'a Hub, call: &Call) -> Self {
        Self { hub, opened: hub.clock.monotonic(), entry: Some(blank(hub, call)) }
    }

    /// Completes the entry when the call is assembled; before, only its target was known.
    pub(super) fn asked(&mut self, call: &Call) {
        if let Some(entry) = &mut self.entry {
            *entry = Entry { time: entry.time, method: entry.method, ..blank(self.hub, call) };
        }
    }

    pub(super) fn meant(&mut self, id: &ItemId) {
        if let Some(entry) = &mut self.entry {
            entry.server = Some(id.server.to_string());
            entry.item.clone_from(&id.item);
        }
    }

    pub(super) fn resolved(&mut self, effect: Effect) {
        if let Some(entry) = &mut self.entry {
            entry.effect = Some(effect);
        }
    }

    pub(super) fn ruled(&mut self, ruling: &Ruling) {
        if let Some(entry) = &mut self.entry {
            entry.verdict = Some(ruling.verdict);
            entry.rule = Some(ruling.rule.clone());
        }
    }

    pub(super) fn approved(&mut self, ground: Ground) {
        if let Some(entry) = &mut self.entry {
            entry.approval = Some(ground);
        }
    }

    /// Records the method of a request that uses the item without calling it.
    pub(super) fn by_method(&mut self, method: &'static str) {
        if let Some(entry) = &mut self.entry {
            entry.method = Some(method);
        }
    }

    pub(super) fn method(&self) -> Option<&'static str> {
        self.entry.as_ref().and_then(|entry| entry.method)
    }

    pub(super) fn close(self, result: &Result<Screened, CallError>) -> Settling {
        let bytes = result.as_ref().map_or(0, |screened| screened.result().len());
        self.end(
            match result {
                Ok(screened) if screened.is_error() => Outcome::ToolError,
                Ok(_) => Outcome::Answered,
                Err(error) => Outcome::Failed(error.code()),
            },
            bytes,
        )
    }

    pub(super) fn end(mut self, outcome: Outcome, answer_bytes: usize) -> Settling {
        let Some(entry) = self.entry.take() else { return Settling::Done };
        let duration = self.duration();
        self.hub.audit.settle(Entry { outcome, duration, answer_bytes, ..entry })
    }

    /// Continues the record of an entry that was kept open.
    pub(super) fn resume(hub: &'a Hub, mut open: OpenEntry) -> Self {
        Self { hub, opened: open.opened, entry: open.entry.take() }
    }

    /// Keeps the entry open while the answer is streamed.
    pub(super) fn keep(mut self) -> OpenEntry {
        let (audit, clock) = (Arc::clone(&self.hub.audit), Arc::clone(&self.hub.clock));
        OpenEntry { audit, clock, opened: self.opened, entry: self.entry.take() }
    }

    fn duration(&self) -> Duration {
        self.hub.clock.monotonic().saturating_sub(self.opened)
    }
}

/// Creates the entry of a call before its first step.
fn blank(hub: &Hub, call: &Call) -> Entry {
    Entry {
        time: hub.clock.now(),
        caller: Arc::clone(&call.caller),
        kind: call.target.kind,
        method: None,
        server: None,
        item: call.target.name.clone(),
        effect: None,
        verdict: None,
        rule: None,
        approval: None,
        arguments: arguments(hub, call),
        outcome: Outcome::Abandoned,
        duration: Duration::ZERO,
        request_bytes: call.params.len(),
        answer_bytes: 0,
    }
}

/// Returns the arguments in the form that may be stored.
fn arguments(hub: &Hub, call: &Call) -> Option<String> {
    match hub.limits.keep_arguments {
        Keep::No => None,
        Keep::Redacted => {
            let mut arguments: Value = call.arguments().read().ok()?;
            mask_json(&mut arguments);
            Some(arguments.to_string())
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.duration = self.duration();
            self.hub.audit.record(entry);
        }
    }
}

// === impl OpenEntry ===

impl OpenEntry {
    /// Counts bytes of the answer that were delivered.
    pub(super) fn add(&mut self, bytes: usize) {
        if let Some(entry) = &mut self.entry {
            entry.answer_bytes += bytes;
        }
    }

    /// Records the end of the answer.
    pub(super) fn end(mut self, outcome: Outcome) {
        if let Some(entry) = &mut self.entry {
            entry.outcome = outcome;
        }
    }
}

impl Drop for OpenEntry {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.duration = self.clock.monotonic().saturating_sub(self.opened);
            self.audit.record(entry);
        }
    }
}

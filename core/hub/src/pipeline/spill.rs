//! Puts the first page in the place of an answer above the limit in tokens, and reads later pages.

use std::sync::Arc;

use capstan_model::{By, CallError, Effect, ItemId, Kind, Ruling, Target, Verdict};

use super::admit::recordable;
use super::record::Record;
use super::screen::{Origin, Passed, Screened};
use crate::hub::Hub;
use crate::ports::StoreError;
use crate::spills::{
    BYTES_PER_TOKEN, PageAddress, Pages, SpilledAnswer, SpilledPage, exceeds, is_page,
};
use crate::{Call, Session};

/// The result type of a result that is an answer, and not a question or a task.
const COMPLETE: &str = "complete";

/// An answer of a size that the requester accepts. Only this file creates one.
pub(super) struct Deliverable(Passed);

/// True if a read is one of a page of a long answer, which no server is asked for.
pub(super) fn reads_page(target: &Target) -> bool {
    target.kind == Kind::Resource && is_page(&target.name)
}

/// Reads a page of a long answer, for the caller of its call.
pub(super) async fn read(
    hub: &Hub,
    session: &Session,
    call: &Call,
    record: &mut Record<'_>,
) -> Result<Deliverable, CallError> {
    recordable(hub)?;
    let Call { caller, target, .. } = call;
    let found = match (PageAddress::parse(&target.name), &hub.spills) {
        (Some(address), Some(spills)) => spills.page(caller, &address).await,
        (None, _) | (_, None) => None,
    };
    // Access to the server may have been revoked since the call.
    let found = found.filter(|page| hub.policy.out_of_reach(caller, &page.server).is_none());
    let Some(SpilledPage { server, tags, page }) = found else {
        let (kind, name) = (Kind::Resource, target.name.clone());
        return Err(CallError::Unknown { kind, name, nearest: Vec::new() });
    };
    let id = ItemId { server, item: target.name.clone() };
    // The conversation may be another one than that of the call.
    session.taint.add(tags, &id);
    record.meant(&id);
    record.resolved(Effect::Read);
    let rule = "an answer to the caller's own call".to_owned();
    record.ruled(&Ruling { verdict: Verdict::Allow, rule, by: By::Default });
    let origin = Origin::new(id, Kind::Resource, Arc::clone(caller));
    Ok(Deliverable(Passed::Whole(Screened::new(origin, page))))
}

/// Saves an answer above the limit, and puts its first page in its place.
pub(super) async fn shorten(
    hub: &Hub,
    max_tokens: Option<u32>,
    passed: Passed,
) -> Result<Deliverable, CallError> {
    let (Some(tokens), Passed::Whole(screened)) = (max_tokens, &passed) else {
        return Ok(Deliverable(passed));
    };
    let size = usize::try_from(tokens.max(1)).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    let is_answer = screened.shape().result_type.as_deref().is_none_or(|it| it == COMPLETE);
    if !is_answer || !exceeds(screened.result(), size) {
        return Ok(Deliverable(passed));
    }
    // Boxed because it is rare, to keep the future of every call small.
    Ok(Deliverable(Passed::Whole(Box::pin(spill(hub, size, screened)).await)))
}

// === impl Deliverable ===

impl Deliverable {
    /// An answer of one of Capstan's own tools.
    pub(super) fn own(answer: Screened) -> Self {
        Self(Passed::Whole(answer))
    }

    pub(super) fn into_passed(self) -> Passed {
        self.0
    }
}

async fn spill(hub: &Hub, size: usize, screened: &Screened) -> Screened {
    let (origin, answer) = (screened.origin(), screened.result());
    let caller = origin.caller();
    let saved = match &hub.spills {
        Some(spills) => {
            let (server, tags) = (&origin.id().server, origin.tags());
            spills.keep(caller, SpilledAnswer { server, tags, page: size, answer }).await
        }
        None => Err(StoreError { what: "no answers are kept here".to_owned(), cause: None }),
    };
    let first = Pages::of(answer, size).first(origin.kind(), caller, saved.as_ref());
    Screened::new(origin.clone(), first)
}

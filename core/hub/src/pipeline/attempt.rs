//! A call from the first word of it: its record is opened before the call can even be put together.

use std::sync::Arc;

use capstan_model::{CallError, ItemId};
use capstan_wire::Json;

use super::record::Record;
use super::screen::Passed;
use super::side::{self, Admission, Asks, SideOp};
use super::{Delivery, Flowing, Screened, walk};
use crate::hub::Hub;
use crate::ports::{Operator, Settling, Unwritten};
use crate::{Call, Outcome, Session};

/// A call that is being put together, for which a server may have to start and a person to wait.
///
/// It is written down exactly once: as what became of it when it is [called](Self::call), as
/// refused when its front [cannot put it together](Self::refuse), and as abandoned when it is
/// dropped.
#[must_use = "dropping it records an abandoned call"]
pub struct Attempt<'a> {
    hub: &'a Hub,
    record: Record<'a>,
}

// === impl Attempt ===

impl<'a> Attempt<'a> {
    pub(crate) fn begin(hub: &'a Hub, call: &Call) -> Self {
        let mut record = Record::open(hub, call);
        if let Some(id) = hub.ids_of(&call.target).next() {
            record.meant(&id);
        }
        Self { hub, record }
    }

    /// A call that is put together already.
    pub(crate) fn at_once(hub: &'a Hub, call: &Call) -> Self {
        Self { hub, record: Record::open(hub, call) }
    }

    /// Takes the call down the whole road and waits for all of its answer.
    pub async fn call(
        self,
        session: &'a Session,
        call: Call,
        operator: Arc<dyn Operator>,
    ) -> Result<Screened, CallError> {
        self.deliver(session, call, operator).await?.whole().await
    }

    /// Takes the call down the whole road. A large answer may still be coming, where the operator
    /// wishes so.
    pub async fn deliver(
        mut self,
        session: &'a Session,
        call: Call,
        operator: Arc<dyn Operator>,
    ) -> Result<Delivery, CallError> {
        self.record.asked(&call);
        self.walk(session, call, operator).await
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` holds what it is given twice")]
    pub(crate) fn walk(
        mut self,
        session: &'a Session,
        call: Call,
        operator: Arc<dyn Operator>,
    ) -> impl Future<Output = Result<Delivery, CallError>> + Send + 'a {
        async move {
            let result = match walk(self.hub, session, call, operator, &mut self.record).await {
                Ok(Passed::Flowing(stream)) => {
                    let flowing = Flowing::new(stream, self.record.keep());
                    return Ok(Delivery::Flowing(Box::new(flowing)));
                }
                Ok(Passed::Whole(screened)) => Ok(screened),
                Err(error) => Err(error),
            };
            let settling = self.record.close(&result);
            settled(settling, result.map(Delivery::Whole)).await
        }
    }

    /// Notes which item is meant, where the front has to look for it.
    pub fn found(&mut self, id: &ItemId) {
        self.record.meant(id);
    }

    /// Notes that the item is not called but asked about, by this method.
    pub fn by_method(mut self, method: &'static str) -> Self {
        self.record.by_method(method);
        self
    }

    /// Decides on a side request as on a call of its item: by its rules, rates and quota. The target
    /// of `call` names the item's server.
    ///
    /// # Errors
    /// When it may not be run. Whatever comes of it, the attempt is still to be ended.
    pub async fn admit(
        &mut self,
        session: &Session,
        call: Call,
        op: SideOp,
        asks: Asks<'_>,
    ) -> Result<Admission, CallError> {
        let Some(id) = call.target.id() else {
            let (kind, name) = (call.target.kind, call.target.name);
            return Err(CallError::Unknown { kind, name, nearest: Vec::new() });
        };
        self.record.meant(&id);
        side::walk(self.hub, session, (id, call, op), asks, &mut self.record).await
    }

    /// Hands over to the call itself, which opens its record at once; this one leaves no entry.
    pub fn pass_on(mut self) {
        self.record.forget();
    }

    /// Decides on a side request, runs it, and writes it down.
    ///
    /// # Errors
    /// When it may not be run, or the server refuses.
    pub async fn side(
        mut self,
        session: &Session,
        call: Call,
        op: SideOp,
        asks: Asks<'_>,
    ) -> Result<Json, CallError> {
        self.record.by_method(op.method());
        let result = match self.admit(session, call, op, asks).await {
            Ok(admission) => self.hub.run_side(admission).await,
            Err(error) => Err(error),
        };
        self.end(result.as_ref().map(|_| ()).map_err(Clone::clone)).await?;
        result
    }

    /// Ends what is no call but is written down like one.
    ///
    /// # Errors
    /// What it ended with, or that it cannot be written down.
    pub async fn end(self, result: Result<(), CallError>) -> Result<(), CallError> {
        let outcome = match &result {
            Ok(()) => Outcome::Answered,
            Err(error) => Outcome::Failed(error.code()),
        };
        let settling = self.record.end(outcome, 0);
        settled(settling, result).await
    }

    /// Gives up a call that cannot be put together, and gives the reason back.
    ///
    /// Who tries tools that are not there, or with arguments that do not fit, leaves a trace too.
    pub fn refuse(self, error: CallError) -> CallError {
        // Whoever puts calls together by hand has a log that is written at once.
        drop(self.record.close(&Err(error.clone())));
        error
    }
}

/// Holds a result back until its entry is kept. One that cannot be is withheld; a failure is told
/// all the same, because nothing is gained by hiding it.
async fn settled<T>(settling: Settling, result: Result<T, CallError>) -> Result<T, CallError> {
    match settling {
        Settling::Done => result,
        Settling::Waits(kept) => match kept.await {
            Ok(()) => result,
            Err(Unwritten(reason)) => result.and(Err(CallError::Unrecorded { reason })),
        },
    }
}

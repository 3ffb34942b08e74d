//! A call from the first word of it: its record is opened before the call can even be put together.

use std::sync::Arc;

use capstan_model::CallError;

use super::record::Record;
use super::{Screened, walk};
use crate::hub::Hub;
use crate::ports::Operator;
use crate::{Call, Session};

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

    /// Takes the call down the whole road.
    pub async fn call(
        mut self,
        session: &Session,
        call: Call,
        operator: Arc<dyn Operator>,
    ) -> Result<Screened, CallError> {
        self.record.asked(&call);
        let result = walk(self.hub, session, call, operator, &mut self.record).await;
        self.record.close(&result);
        result
    }

    /// Gives up a call that cannot be put together, and gives the reason back.
    ///
    /// Who tries tools that are not there, or with arguments that do not fit, leaves a trace too.
    pub fn refuse(self, error: CallError) -> CallError {
        self.record.close(&Err(error.clone()));
        error
    }
}

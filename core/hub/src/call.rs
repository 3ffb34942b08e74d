//! The input and output of the pipeline: calls, answers and sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use capstan_model::{Caller, Kind, Target};
use capstan_wire::{Json, compose, object};

use crate::approvals::Memory;
use crate::taint::{ReadSources, Taint};
use crate::{Continuation, Flow};

/// A request as a front received it. Nothing is checked yet.
#[derive(Clone, Debug)]
pub struct Call {
    /// The caller.
    pub caller: Arc<Caller>,
    /// The item that is requested.
    pub target: Target,
    /// The params of the request, with everything that the client put there.
    pub params: Json,
    /// The first request of the call, or a continuation.
    pub part: Part,
}

/// The position of a request in the sequence of requests that make up one call.
#[derive(Clone, Debug, Default)]
pub enum Part {
    /// The first request.
    #[default]
    First,
    /// The server asked for input, and the caller supplies it.
    Later(Continuation),
}

/// The answer of a server before screening: the result, byte for byte.
pub enum Answer {
    /// A complete result.
    Whole(Json),
    /// A large result that is still arriving, if the requester [accepts](crate::ports::Wishes) it.
    Streaming(Box<Flow>),
}

/// A session with one client: one conversation. Quota and remembered approvals are counted per
/// session, and flows are judged in it.
#[derive(Debug)]
pub struct Session {
    limit: Option<u32>,
    used: Arc<AtomicU32>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) taint: Arc<Taint>,
}

// === impl Call ===

impl Call {
    /// Creates a call with these arguments; a resource has none.
    pub fn new(caller: impl Into<Arc<Caller>>, target: Target, arguments: Option<&Json>) -> Self {
        let name = compose::string(&target.name);
        let key = target.kind.name_key();
        let params = match arguments {
            Some(arguments) => compose::object(&[(key, &name), ("arguments", arguments)]),
            None => compose::object(&[(key, &name)]),
        };
        Self { caller: caller.into(), target, params, part: Part::First }
    }

    /// Returns the arguments that the rules examine.
    pub fn arguments(&self) -> Json {
        match self.target.kind {
            Kind::Tool | Kind::Prompt => {
                object::get(&self.params, "arguments").unwrap_or_else(Json::empty_object)
            }
            Kind::Resource => self.params.clone(),
        }
    }
}

// === impl Answer ===

impl From<Json> for Answer {
    fn from(result: Json) -> Self {
        Self::Whole(result)
    }
}

// === impl Session ===

impl Session {
    /// Creates a session of at most `limit` calls; `None` for any number.
    pub fn new(limit: Option<u32>) -> Self {
        Self { limit, used: Arc::default(), memory: Arc::default(), taint: Arc::default() }
    }

    /// Creates another session that shares the quota of this one, and the answers that flows are
    /// judged by. Approvals are not shared.
    #[must_use]
    pub fn beside(&self) -> Self {
        let (used, taint) = (Arc::clone(&self.used), Arc::clone(&self.taint));
        Self { limit: self.limit, used, memory: Arc::default(), taint }
    }

    /// The items by which data was read that rules about flows depend on.
    pub fn read_sources(&self) -> ReadSources {
        self.taint.all()
    }

    /// Continues a session that has read data by these items.
    pub fn restore(&self, sources: ReadSources) {
        self.taint.restore(sources);
    }

    /// Takes one call off the quota.
    ///
    /// One atomic step, so that two concurrent calls cannot both take the last one.
    pub(crate) fn take_one(&self) -> Result<(), u32> {
        let Some(limit) = self.limit else { return Ok(()) };
        let next = |used: u32| (used < limit).then(|| used + 1);
        match self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) {
            Ok(_) => Ok(()),
            Err(_) => Err(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_beside_each_other_share_a_quota_and_no_memory() {
        let one = Session::new(Some(2));
        let other = one.beside();
        assert!(!Arc::ptr_eq(&one.memory, &other.memory));
        assert!(Arc::ptr_eq(&one.taint, &other.taint));
        assert_eq!((one.take_one(), other.take_one()), (Ok(()), Ok(())));
        assert_eq!((one.take_one(), other.take_one()), (Err(2), Err(2)));
        assert_eq!(one.beside().take_one(), Err(2));
    }
}

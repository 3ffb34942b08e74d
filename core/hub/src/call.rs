//! What comes in at one end of the road and goes out at the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use capstan_model::{Caller, Kind, Target};
use capstan_wire::{Json, compose, object};

use crate::Flow;
use crate::approvals::Memory;

/// A request as a front received it. Nothing about it is checked yet.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who asks.
    pub caller: Arc<Caller>,
    /// For what.
    pub target: Target,
    /// The params of the request, with whatever the client put there.
    pub params: Json,
    /// Whether it goes on with a call that has been down the road already.
    pub part: Part,
}

/// Which part of a conversation about one call this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The first.
    #[default]
    First,
    /// A later one: the server asked for input, and the caller comes back with it. It is free of
    /// quota, and an approval holds for all parts.
    Later {
        /// Whether an operator has said yes to the call.
        approved: bool,
    },
}

/// What a server answered, before screening: the result, byte for byte.
pub enum Answer {
    /// All of it.
    Whole(Json),
    /// A large one that is still coming, for an operator who [wishes](crate::ports::Wishes) so.
    Flowing(Box<Flow>),
}

/// A conversation with one client, for as long as its quota counts and its answers are remembered.
#[derive(Debug)]
pub struct Session {
    limit: Option<u32>,
    used: Arc<AtomicU32>,
    pub(crate) memory: Arc<Memory>,
}

// === impl Call ===

impl Call {
    /// A call with these arguments; for a resource there are none.
    pub fn new(caller: impl Into<Arc<Caller>>, target: Target, arguments: Option<&Json>) -> Self {
        let name = compose::string(&target.name);
        let key = target.kind.name_key();
        let params = match arguments {
            Some(arguments) => compose::object(&[(key, &name), ("arguments", arguments)]),
            None => compose::object(&[(key, &name)]),
        };
        Self { caller: caller.into(), target, params, part: Part::First }
    }

    /// The arguments, as the rules look at them.
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
    /// A conversation of at most `limit` calls; `None` for any number.
    pub fn new(limit: Option<u32>) -> Self {
        Self { limit, used: Arc::default(), memory: Arc::default() }
    }

    /// Another conversation that counts against the quota of this one; what was said yes to in one is
    /// not remembered in the other.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self { limit: self.limit, used: Arc::clone(&self.used), memory: Arc::default() }
    }

    /// Takes one call off the quota.
    ///
    /// One atomic step, so that two calls racing for the last place cannot both get it.
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
        assert_eq!((one.take_one(), other.take_one()), (Ok(()), Ok(())));
        assert_eq!((one.take_one(), other.take_one()), (Err(2), Err(2)));
        assert_eq!(one.beside().take_one(), Err(2));
    }
}

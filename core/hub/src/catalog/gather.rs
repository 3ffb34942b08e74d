//! Asks many servers at once and waits for as long as it makes sense.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, ServerName};
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use indexmap::IndexMap;

use crate::hub::Hub;
use crate::ports::{Item, Listing};

/// How long to wait for servers that do not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// This long, then go on with what has come.
    UpTo(Duration),
    /// This long, but in any case until the first answer.
    ///
    /// Somebody with one slow server waits for it; somebody with many does not wait for the
    /// slowest.
    UntilFirstOr(Duration),
}

/// What the servers answered, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The lists that have come.
    pub lists: IndexMap<ServerName, Arc<[Item]>>,
    /// The servers that failed.
    pub failed: IndexMap<ServerName, CallError>,
    /// The servers that have not answered yet.
    pub pending: Vec<ServerName>,
}

pub(super) async fn gather(
    hub: &Hub,
    listing: Listing,
    patience: Patience,
    arrived: &mut (dyn FnMut(&ServerName) + Send),
) -> Gathered {
    let mut asked: FuturesUnordered<_> = hub
        .backends
        .values()
        .map(|backend| async move { (backend.name().clone(), backend.list(listing).await) })
        .collect();
    let (limit, until_first) = match patience {
        Patience::UpTo(limit) => (limit, false),
        Patience::UntilFirstOr(limit) => (limit, true),
    };
    let mut answers = BTreeMap::new();
    let mut late = hub.clock.sleep(limit);
    let mut is_late = false;
    while !asked.is_empty() {
        let answered_once = answers.values().any(Result::is_ok);
        if is_late && (answered_once || !until_first) {
            break;
        }
        let next = asked.next();
        let answer = if is_late {
            next.await
        } else {
            match select(next, &mut late).await {
                Either::Left((answer, _)) => answer,
                Either::Right(((), _)) => {
                    is_late = true;
                    continue;
                }
            }
        };
        if let Some((name, result)) = answer {
            arrived(&name);
            answers.insert(name, result);
        }
    }
    in_order(hub, answers)
}

fn in_order(
    hub: &Hub,
    mut answers: BTreeMap<ServerName, Result<Arc<[Item]>, CallError>>,
) -> Gathered {
    let mut gathered = Gathered::default();
    for name in hub.backends.keys() {
        match answers.remove(name) {
            Some(Ok(items)) => drop(gathered.lists.insert(name.clone(), items)),
            Some(Err(error)) => drop(gathered.failed.insert(name.clone(), error)),
            None => gathered.pending.push(name.clone()),
        }
    }
    gathered
}

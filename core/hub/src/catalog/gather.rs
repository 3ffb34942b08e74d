//! Lists many servers concurrently, with a deadline.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, ServerName};
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use indexmap::IndexMap;

use crate::Freshness;
use crate::hub::Hub;
use crate::life::Server;
use crate::ports::{Item, Listing};

/// An answer within this time after the previous one extends the wait.
const SETTLE: Duration = Duration::from_millis(400);

/// How long to wait for servers that have not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Patience {
    /// Waits up to this long.
    UpTo(Duration),
    /// Waits this long, but at least until the first answer, and for as long as further answers
    /// follow in quick succession.
    ///
    /// With a single slow server, the caller waits for it. With many servers, the caller does not
    /// wait for those that never answer.
    UntilFirstOr(Duration),
    /// Waits, after each answer, half of the time that has passed by then, within bounds.
    ///
    /// The total never exceeds `most`. If answers come quickly, the remaining servers would have
    /// answered too.
    Quiet {
        /// Shortest wait after the latest answer.
        least: Duration,
        /// Longest wait after the latest answer.
        after: Duration,
        /// Longest wait in total.
        most: Duration,
    },
}

/// How a server is asked for its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The server is not asked; it counts as pending.
    Nothing,
    /// No client needs the list: a server that starts when a client lists is not started for it.
    Glance,
    /// A client needs the list.
    List,
    /// A client needs the list, and waits at least this long for a server that was never seen.
    Await(Duration),
    /// A client needs the list of the running server; a saved one is not sufficient.
    Current,
}

/// The answers of the servers, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The lists that have arrived.
    pub lists: IndexMap<ServerName, Arc<[Item]>>,
    /// The servers that failed.
    pub failed: IndexMap<ServerName, CallError>,
    /// The servers that have not answered yet. With [`Patience::Quiet`], the saved list of such a
    /// server is in `lists`, if there is one.
    pub pending: Vec<ServerName>,
}

/// The servers that are waited for beyond the patience, each until its deadline.
struct FirstWaits(BTreeMap<ServerName, Duration>);

pub(super) async fn gather(
    hub: &Hub,
    listing: Listing,
    patience: Patience,
    how: &(dyn Fn(&ServerName) -> Ask + Sync),
    arrived: &mut (dyn FnMut(&ServerName) + Send),
) -> Gathered {
    let begun = hub.clock.monotonic();
    let chosen = hub.servers.values().map(|server| (server, how(server.name())));
    let chosen: Vec<_> = chosen.filter(|(_, ask)| *ask != Ask::Nothing).collect();
    let mut firsts = FirstWaits::of(&chosen, begun);
    let has_unseen = chosen.iter().any(|(server, _)| server.remembered(listing).is_none());
    let mut asked: FuturesUnordered<_> = chosen
        .into_iter()
        .map(|(server, ask)| async move {
            let freshness = match ask {
                Ask::Glance => Freshness::Remembered,
                Ask::List | Ask::Await(_) | Ask::Nothing => Freshness::Known,
                Ask::Current => Freshness::Current,
            };
            let list = hub.judged(server, listing, freshness).await;
            (server.name().clone(), list.map(|(items, _)| items))
        })
        .collect();
    // If all lists are known, only a server that has a newer one at hand is waited for.
    let brief = patience.left(Duration::ZERO).filter(|_| !has_unseen);
    let mut late = hub.clock.sleep(brief.unwrap_or_else(|| patience.limit()));
    let mut is_patience_over = false;
    let mut last_answer = None;
    let mut answers = BTreeMap::new();
    while !asked.is_empty() {
        match select(asked.next(), &mut late).await {
            Either::Left((Some((name, result)), _)) => {
                let came = result.is_ok();
                let now = hub.clock.monotonic();
                if came {
                    last_answer = Some(now);
                }
                arrived(&name);
                firsts.0.remove(&name);
                answers.insert(name, result);
                // A failure does not show how long the other servers take.
                let left = patience.left(now.saturating_sub(begun)).filter(|_| came);
                if is_patience_over {
                    late = hub.clock.sleep(firsts.left(now).unwrap_or_default());
                } else if let Some(left) = left {
                    late = hub.clock.sleep(left);
                }
            }
            Either::Left((None, _)) => break,
            Either::Right(((), _)) => {
                let extension = patience.extension(hub, last_answer);
                is_patience_over |= extension.is_none();
                match extension.or_else(|| firsts.left(hub.clock.monotonic())) {
                    Some(more) => late = hub.clock.sleep(more),
                    None => break,
                }
            }
        }
    }
    drop(asked);
    let saved = match patience {
        Patience::Quiet { .. } => saved_lists(hub, listing, &answers).await,
        Patience::UpTo(_) | Patience::UntilFirstOr(_) => BTreeMap::new(),
    };
    in_order(hub, answers, saved)
}

/// The saved lists of the servers that have not answered.
async fn saved_lists(
    hub: &Hub,
    listing: Listing,
    answers: &BTreeMap<ServerName, Result<Arc<[Item]>, CallError>>,
) -> BTreeMap<ServerName, Arc<[Item]>> {
    let mut saved = BTreeMap::new();
    for server in hub.servers.values().filter(|server| !answers.contains_key(server.name())) {
        if let Some(items) = hub.judged_saved(server, listing).await {
            saved.insert(server.name().clone(), items);
        }
    }
    saved
}

// === impl FirstWaits ===

impl FirstWaits {
    fn of(chosen: &[(&Arc<Server>, Ask)], now: Duration) -> Self {
        let deadline = |(server, ask): &(&Arc<Server>, Ask)| match ask {
            Ask::Await(wait) => Some((server.name().clone(), now.saturating_add(*wait))),
            Ask::Nothing | Ask::Glance | Ask::List | Ask::Current => None,
        };
        Self(chosen.iter().filter_map(deadline).collect())
    }

    /// The time until the last deadline; `None` if there is none ahead.
    fn left(&self, now: Duration) -> Option<Duration> {
        let last = self.0.values().max()?;
        last.checked_sub(now).filter(|left| !left.is_zero())
    }
}

// === impl Patience ===

impl Patience {
    /// Returns how long to wait for the first answer.
    fn limit(self) -> Duration {
        match self {
            Self::UpTo(limit) | Self::UntilFirstOr(limit) => limit,
            Self::Quiet { most, .. } => most,
        }
    }

    /// Returns the new wait after an answer that arrived after `spent`; `None` keeps the current
    /// wait.
    fn left(self, spent: Duration) -> Option<Duration> {
        match self {
            Self::Quiet { least, after, most } => {
                let quiet = (spent / 2).max(least).min(after);
                Some(quiet.min(most.saturating_sub(spent)))
            }
            Self::UpTo(_) | Self::UntilFirstOr(_) => None,
        }
    }

    /// Returns how much longer to wait after the deadline; `None` stops waiting.
    fn extension(self, hub: &Hub, last_answer: Option<Duration>) -> Option<Duration> {
        match (self, last_answer) {
            (Self::UpTo(_) | Self::Quiet { .. }, _) => None,
            // Polls repeatedly until the first answer. It ends when the servers fail to start.
            (Self::UntilFirstOr(_), None) => Some(SETTLE),
            (Self::UntilFirstOr(_), Some(last)) => {
                let quiet = hub.clock.monotonic().saturating_sub(last);
                SETTLE.checked_sub(quiet).filter(|left| !left.is_zero())
            }
        }
    }
}

fn in_order(
    hub: &Hub,
    mut answers: BTreeMap<ServerName, Result<Arc<[Item]>, CallError>>,
    mut saved: BTreeMap<ServerName, Arc<[Item]>>,
) -> Gathered {
    let mut gathered = Gathered::default();
    for (name, server) in &hub.servers {
        match answers.remove(name) {
            Some(Ok(items)) => drop(gathered.lists.insert(name.clone(), items)),
            Some(Err(error)) => drop(gathered.failed.insert(name.clone(), error)),
            None => {
                let saved = saved.remove(name);
                // The answer of a server that is not asked is its saved list.
                if saved.is_none() || server.is_connected() {
                    gathered.pending.push(name.clone());
                }
                gathered.lists.extend(saved.map(|items| (name.clone(), items)));
            }
        }
    }
    gathered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_answers_come_the_longer_the_next_is_waited_for() {
        let ms = Duration::from_millis;
        let patience = Patience::Quiet { least: ms(25), after: ms(50), most: ms(2000) };
        for (spent, left) in
            [(0, 25), (50, 25), (60, 30), (100, 50), (1900, 50), (1980, 20), (2000, 0), (3000, 0)]
        {
            assert_eq!(patience.left(ms(spent)), Some(ms(left)), "{spent}");
        }
        assert_eq!(Patience::UpTo(ms(9)).left(ms(1)), None);
        assert_eq!(Patience::UntilFirstOr(ms(9)).left(ms(1)), None);
    }
}

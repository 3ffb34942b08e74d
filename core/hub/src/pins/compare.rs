//! Looks up approved definitions, and compares them with a list.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::ServerName;
use futures::lock::{Mutex as Turn, MutexGuard};
use tracing::{debug, info, warn};

use super::approved_digests::ApprovedDigests;
use super::fingerprint::{pins, sum};
use super::first_seen::FirstSeen;
use super::{Odd, PinRules, Pins, Seen, Standing};
use crate::ports::{Approved, Changes, Clock, Item, Newcomer, Pin, PinOwner, PinStore, StoreError};

/// The store of approved definitions, with its caches and locks.
pub(super) struct CachedPins {
    pub(super) store: Arc<dyn PinStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) changes: Arc<Changes>,
    approved_digests: ApprovedDigests,
    first_seen: FirstSeen,
    /// One lock per server, so that concurrent comparisons of its list are a single-flight.
    turns: HashMap<ServerName, Turn<()>>,
}

// === impl CachedPins ===

impl CachedPins {
    pub(super) fn new(
        store: Arc<dyn PinStore>,
        clock: Arc<dyn Clock>,
        changes: Arc<Changes>,
        servers: impl Iterator<Item = ServerName>,
    ) -> Self {
        let turns = servers.map(|server| (server, Turn::default())).collect();
        Self {
            store,
            clock,
            changes,
            approved_digests: ApprovedDigests::default(),
            first_seen: FirstSeen::default(),
            turns,
        }
    }

    /// Waits until no other task compares the list of a server.
    pub(super) async fn turn(&self, server: &ServerName) -> Option<MutexGuard<'_, ()>> {
        match self.turns.get(server) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    /// Returns the tools of a list that are not approved, and true if the store could be read.
    pub(super) async fn judge(
        &self,
        server: &ServerName,
        rules: &PinRules,
        items: &Arc<[Item]>,
        before: Option<&Seen>,
    ) -> (Odd, bool) {
        match self.compare(server, rules, items).await {
            Ok(odd) => (odd, true),
            Err(error) => {
                if before.is_none_or(|before| before.compared) {
                    say_broken(server, &error);
                }
                (without_store(rules, items, before), false)
            }
        }
    }

    /// Returns the tools of a list that are not approved.
    ///
    /// A server that was never seen is approved as it is. So are the changes of a trusted one.
    async fn compare(
        &self,
        server: &ServerName,
        rules: &PinRules,
        items: &Arc<[Item]>,
    ) -> Result<Odd, Arc<StoreError>> {
        let (owner, sum) = (rules.owner(server), sum(items));
        let mut seen = self.approved_digests.get(&*self.store).await?;
        if !seen.contains_key(&owner) {
            let new = Newcomer { owner: owner.clone(), sum: sum.clone(), items: Arc::clone(items) };
            self.first_seen.begin(&*self.store, new).await?;
            // Another process may have been first, with a different list.
            seen = self.approved_digests.get(&*self.store).await?;
        }
        if seen.get(&owner).is_some_and(|whole| whole.as_ref() == Some(&sum)) {
            return Ok(unexpected(rules, items).collect());
        }
        let approved = self.store.pins(&owner).await.map_err(Arc::new)?;
        let pins: Vec<Pin> = pins(&**items).collect();
        let approved = approved.unwrap_or_default();
        let unknown = unknown(&approved);
        let Approved { pins: approved, changes, .. } = approved;
        let approved: HashMap<&str, &Pin> =
            approved.iter().map(|pin| (pin.tool.as_str(), pin)).collect();
        let mut odd = Odd::new();
        for pin in &pins {
            match rules.standing(pin, approved.get(pin.tool.as_str()).copied(), unknown) {
                Standing::Approved => {}
                standing @ (Standing::New
                | Standing::Changed
                | Standing::Lost
                | Standing::Unexpected) => {
                    odd.insert(pin.tool.clone(), standing);
                }
            }
        }
        let is_same = |pin: &Pin| approved.get(pin.tool.as_str()).is_some_and(|one| one.is(pin));
        // Unexpected tools must be the approved ones too: they may be expected later.
        if pins.iter().all(is_same)
            && let Err(error) = self.store.note(&owner, &sum, changes).await
        {
            debug!(%server, %error, "the pins are compared one by one again the next time");
        }
        if rules.is_strict() || odd.is_empty() {
            return Ok(odd);
        }
        let new: Vec<Pin> = pins.into_iter().filter(|pin| odd.contains_key(&pin.tool)).collect();
        for pin in &new {
            info!(%server, tool = ?pin.tool, "a trusted server has changed a tool");
        }
        self.store.approve(&owner, &new).await.map_err(Arc::new)?;
        Ok(Odd::new())
    }
}

// === impl Pins ===

impl Pins {
    /// Ends the state in which every server counts as one whose approvals were lost.
    ///
    /// Of the servers that were not looked at since, only the configured ones still count as such.
    /// Returns true if the state was active.
    pub async fn end_loss(&self) -> Result<bool, StoreError> {
        let Some(kept) = &self.kept else { return Ok(false) };
        let all: Vec<PinOwner> =
            self.servers.iter().map(|(server, rules)| rules.owner(server)).collect();
        kept.store.end_loss(&all).await
    }
}

/// Returns the standing of a tool without approved definition.
pub(super) fn unknown(approved: &Approved) -> Standing {
    if approved.is_lost { Standing::Lost } else { Standing::New }
}

/// Returns the tools that are not approved while the store cannot be read.
///
/// A definition that was compared before keeps its standing. It is not known if any other one was
/// approved, so it counts as lost.
fn without_store(rules: &PinRules, items: &[Item], before: Option<&Seen>) -> Odd {
    let mut odd = Odd::new();
    if rules.is_strict() {
        let seen = before.iter().flat_map(|before| before.items.iter());
        let seen: HashMap<&str, &Item> = seen.map(|item| (item.name.as_str(), item)).collect();
        let is_seen = |item: &&Item| seen.get(item.name.as_str()) == Some(item);
        for item in items {
            let known = before.filter(|_| is_seen(&item));
            match known.map(|before| Standing::of(&before.odd, &item.name)) {
                Some(Standing::Approved) => {}
                Some(standing) => drop(odd.insert(item.name.clone(), standing)),
                None => drop(odd.insert(item.name.clone(), Standing::Lost)),
            }
        }
    }
    // The configured list of expected tools applies anyway.
    odd.extend(unexpected(rules, items));
    odd
}

/// Returns the tools that the configuration does not let the server have.
fn unexpected(rules: &PinRules, items: &[Item]) -> impl Iterator<Item = (String, Standing)> {
    let names = items.iter().map(|item| &item.name).filter(|name| !rules.expects(name));
    names.map(|name| (name.clone(), Standing::Unexpected))
}

fn say_broken(server: &ServerName, error: &StoreError) {
    let cause = error.cause.as_ref().map(ToString::to_string).unwrap_or_default();
    warn!(
        %server, %error, cause,
        "its tools cannot be compared with their pins; see `capstan doctor`"
    );
}

#[cfg(test)]
mod tests {
    use capstan_model::{By, ItemId, Ruling, Trust, Verdict};

    use super::super::NewTools;
    use super::super::tests::{FIRST, Known, LATER, Memory, list, pins_in, server};
    use super::*;

    /// Holes 5.
    #[tokio::test]
    async fn where_nothing_can_be_looked_up_only_a_trusted_server_is_let_through() {
        let trusted = PinRules { trust: Trust::Trusted, ..PinRules::default() };
        let locked = PinRules { new_tools: NewTools::Refuse, ..trusted.clone() };
        for (rules, expected) in [
            (PinRules::default(), Standing::Lost),
            (PinRules { trust: Trust::Sandboxed, ..PinRules::default() }, Standing::Lost),
            (locked, Standing::Lost),
            (trusted, Standing::Approved),
        ] {
            let pins = pins_in(&Arc::default(), rules);
            pins.look_at(&server(), &list(FIRST)).await;
            let id = ItemId { server: server(), item: "a".to_owned() };
            assert_eq!(pins.standing(&id), expected);
            assert!(pins.approve(&server(), list(FIRST).iter()).await.is_err());
            assert!(pins.review(&server(), &list(FIRST)).await.is_err());
        }
    }

    /// Holes 5.
    #[tokio::test]
    async fn a_server_whose_approvals_were_lost_is_refused_until_it_is_approved_again() {
        let store = Memory::whole();
        let lost = Approved { is_lost: true, ..Approved::default() };
        let forget = |all: &mut HashMap<String, Known>| {
            all.insert(String::new(), Known { approved: lost, ..Known::default() });
        };
        store.with(forget).await.unwrap();
        let pins = pins_in(&store, PinRules::default());
        let items = list(FIRST);
        let odd = pins.look_at(&server(), &items).await;
        assert_eq!((odd.len(), Standing::of(&odd, "a")), (2, Standing::Lost));
        let id = ItemId { server: server(), item: "a".to_owned() };
        let allow = Ruling { verdict: Verdict::Allow, rule: "x".to_owned(), by: By::Default };
        let denied = pins.tighten(&id, Standing::Lost, allow);
        assert_eq!(denied.verdict, Verdict::Deny);
        // The rule says how to approve the server, without backticks: errors put it in backticks.
        assert!(denied.rule.contains("capstan pins ") && denied.rule.contains(" --approve"));
        assert!(!denied.rule.contains('`'), "{}", denied.rule);
        let review = pins.review(&server(), &items).await.unwrap();
        assert!(review.iter().all(|one| one.standing == Standing::Lost && one.before.is_none()));
        // One tool is approved, and the other is not.
        pins.approve(&server(), &items[..1]).await.unwrap();
        let odd = pins_in(&store, PinRules::default()).look_at(&server(), &items).await;
        assert_eq!((odd.len(), Standing::of(&odd, "b")), (1, Standing::Lost));
        pins.approve(&server(), items.iter()).await.unwrap();
        assert!(pins_in(&store, PinRules::default()).look_at(&server(), &items).await.is_empty());
        // From then on, a tool is new or changed again.
        let odd = pins_in(&store, PinRules::default()).look_at(&server(), &list(LATER)).await;
        let standings = ["b", "c"].map(|tool| Standing::of(&odd, tool));
        assert_eq!(standings, [Standing::Changed, Standing::New]);
    }
}

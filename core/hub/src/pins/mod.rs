//! Definitions of tools that were approved, and what became of them since.
//!
//! What a server has when it is first seen is approved with it. From then on a tool that is new is
//! asked about, and one whose definition has changed is not used until somebody has looked at it:
//! a server cannot show one thing and become another. The changes of a trusted server are only
//! told. `fingerprint` says what counts as a change, `compare` looks up what was approved, `sums` which
//! lists need not be compared, `firsts` takes in servers that were never seen, `hub` has every list
//! looked at.
//!
//! **Invariant:** pins never permit anything; they only make a verdict stricter.

mod compare;
pub(crate) mod fingerprint;
mod firsts;
mod hub;
mod seen;
mod sums;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::{By, ItemId, Ruling, ServerName, Trust, Verdict};
use capstan_policy::Step;
use capstan_policy::combine::{Tie, tighten};
use compare::{Kept, unknown};
use fingerprint::{pin, pins};
use seen::{Enough, Seen};
use tracing::warn;

use crate::ports::{
    Changes, Clock, Item, Listener as _, Listing, Pin, PinOwner, PinStore, StoreError,
};

/// What is said of a server's definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinRules {
    /// How the server is started or reached, as a digest.
    pub identity: String,
    /// How far it is believed.
    pub trust: Trust,
    /// What becomes of tools that are new.
    pub new_tools: NewTools,
    /// The tools that it may have, if that is said.
    pub expected: Option<Vec<String>>,
}

/// What becomes of tools that a server did not have before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewTools {
    /// They are asked about.
    #[default]
    Ask,
    /// They are refused.
    Refuse,
}

/// How a tool stands to what was approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is what was approved.
    Approved,
    /// It was not there.
    New,
    /// It was something else.
    Changed,
    /// It is not known what was approved: that was lost, or cannot be read.
    Lost,
    /// It is not among the tools that the configuration expects.
    Unexpected,
}

/// A tool beside what was approved of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// The tool.
    pub tool: String,
    /// How it stands.
    pub standing: Standing,
    /// What was approved, as a person reads it.
    pub before: Option<String>,
    /// What it is now.
    pub now: String,
}

/// The approved definitions of all servers.
#[derive(Default)]
pub struct Pins {
    kept: Option<Kept>,
    servers: HashMap<ServerName, PinRules>,
    seen: Mutex<HashMap<ServerName, Seen>>,
    version: AtomicU64,
}

/// The tools of a list that are not what was approved.
pub(crate) type Odd = HashMap<String, Standing>;

// === impl Pins ===

impl Pins {
    /// Definitions that are kept in a store, for servers of which this is said. Whoever listens to
    /// changes is told when a tool becomes approved, or no longer is.
    pub fn new(
        store: Arc<dyn PinStore>,
        clock: Arc<dyn Clock>,
        changes: Arc<Changes>,
        servers: HashMap<ServerName, PinRules>,
    ) -> Self {
        let kept = Some(Kept::new(store, clock, changes, servers.keys().cloned()));
        Self { kept, servers, ..Self::default() }
    }

    /// Compares a list with what was approved, unless that was done just now; how its tools stand.
    ///
    /// Where nothing can be looked up, that is told, what was known stays, what was not known is
    /// refused, and it is tried again.
    pub(crate) async fn look_at(&self, server: &ServerName, items: &Arc<[Item]>) -> Arc<Odd> {
        self.look(server, items, Seen::is_fresh).await
    }

    /// The same, whenever that was done before, but not again and again: a tool that is refused may
    /// be called as often as somebody likes.
    pub(crate) async fn look_closer(&self, server: &ServerName, items: &Arc<[Item]>) -> Arc<Odd> {
        self.look(server, items, Seen::is_of_this_moment).await
    }

    async fn look(&self, server: &ServerName, items: &Arc<[Item]>, enough: Enough) -> Arc<Odd> {
        match self.seen(server, items, enough) {
            Some(odd) => odd,
            // Rare, and large: kept out of what every call carries along.
            None => Box::pin(self.look_up(server, items, enough)).await,
        }
    }

    /// The same, where that was done before.
    pub(crate) fn looked_at(&self, server: &ServerName, items: &Arc<[Item]>) -> Option<Arc<Odd>> {
        self.seen(server, items, Seen::is_fresh)
    }

    fn seen(&self, server: &ServerName, items: &Arc<[Item]>, enough: Enough) -> Option<Arc<Odd>> {
        let Some(kept) = &self.kept else { return Some(Arc::default()) };
        let now = kept.clock.monotonic();
        let all = self.lock();
        all.get(server).filter(|seen| enough(seen, items, now)).map(|seen| Arc::clone(&seen.odd))
    }

    async fn look_up(&self, server: &ServerName, items: &Arc<[Item]>, enough: Enough) -> Arc<Odd> {
        let (Some(kept), Some(rules)) = (&self.kept, self.servers.get(server)) else {
            return Arc::default();
        };
        let asked = kept.clock.monotonic();
        let _turn = kept.turn(server).await;
        let now = kept.clock.monotonic();
        let before = self.lock().get(server).cloned();
        // Somebody else may have looked while we waited.
        let is_done = |seen: &&Seen| enough(seen, items, now) || seen.is_since(items, asked);
        if let Some(seen) = before.as_ref().filter(is_done) {
            return Arc::clone(&seen.odd);
        }
        let (odd, compared) = kept.judge(server, rules, items, before.as_ref()).await;
        let seen = Seen { items: Arc::clone(items), odd: Arc::new(odd), at: now, compared };
        let odd = Arc::clone(&seen.odd);
        let before = self.lock().insert(server.clone(), seen).map(|before| before.odd);
        self.tell(server, before, &odd);
        odd
    }

    /// Whether a look at this server's tools would wait for something that can be done before.
    pub(crate) fn is_unready(&self, server: &ServerName) -> bool {
        self.kept.is_some()
            && self.servers.contains_key(server)
            && !self.lock().contains_key(server)
    }

    /// Does ahead of time what the first look at tools would wait for.
    pub(crate) async fn get_ready(&self) {
        if let Some(kept) = &self.kept {
            kept.store.get_ready().await;
        }
    }

    /// Looks again at the servers some of whose tools are not approved, or could not be compared.
    pub async fn look_again(&self) {
        for (server, seen) in self.unsettled() {
            let (Some(kept), Some(rules)) = (&self.kept, self.servers.get(&server)) else { return };
            let now = kept.clock.monotonic();
            if seen.is_fresh(&seen.items, now) {
                continue;
            }
            let (odd, compared) = kept.judge(&server, rules, &seen.items, Some(&seen)).await;
            let (odd, items) = (Arc::new(odd), seen.items);
            let before = match self.lock().get_mut(&server) {
                // Meanwhile there may be another list, which somebody else has looked at.
                Some(known) if Arc::ptr_eq(&known.items, &items) => {
                    (known.at, known.compared) = (now, compared);
                    std::mem::replace(&mut known.odd, Arc::clone(&odd))
                }
                Some(_) | None => continue,
            };
            self.tell(&server, Some(before), &odd);
        }
    }

    /// Tells of tools that stand otherwise than before.
    fn tell(&self, server: &ServerName, before: Option<Arc<Odd>>, odd: &Odd) {
        tell(server, before.as_deref(), odd);
        if let (Some(kept), true) = (&self.kept, before.is_some_and(|before| *before != *odd)) {
            self.version.fetch_add(1, Ordering::AcqRel);
            kept.changes.list_changed(server, Listing::Tools);
        }
    }

    /// Another number whenever a tool has become approved, or no longer is.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// How a tool stands to what was approved, by the list that was looked at last.
    pub fn standing(&self, id: &ItemId) -> Standing {
        let odd = self.lock().get(&id.server).and_then(|seen| seen.odd.get(&id.item).copied());
        odd.unwrap_or(Standing::Approved)
    }

    /// What is ruled on an item when it is looked at how its definition stands, too.
    pub(crate) fn tighten(&self, id: &ItemId, standing: Standing, ruling: Ruling) -> Ruling {
        tighten(ruling, self.rule_on(id, standing), Tie::Replaces)
    }

    /// The same, told as a step on the way to the verdict.
    pub(crate) fn explain(
        &self,
        id: &ItemId,
        standing: Standing,
        ruling: Ruling,
    ) -> (Ruling, Option<Step>) {
        let step = self.rule_on(id, standing).map(|by_pins| Step {
            engine: "pins",
            rule: by_pins.rule,
            verdict: Some(by_pins.verdict),
        });
        (self.tighten(id, standing, ruling), step)
    }

    /// What is said of an item by how its definition stands; nothing when it is approved.
    fn rule_on(&self, id: &ItemId, standing: Standing) -> Option<Ruling> {
        let server = &id.server;
        let refuses_new =
            self.servers.get(server).is_some_and(|rules| rules.new_tools == NewTools::Refuse);
        let (verdict, why) = match standing {
            Standing::Approved => return None,
            Standing::New if refuses_new => {
                (Verdict::Deny, "lock_tool_list, and the tool is new".to_owned())
            }
            Standing::New => (Verdict::Ask, format!("a new tool, see capstan pins {server}")),
            Standing::Changed => {
                let why = format!("a changed tool, see capstan pins {server}");
                (Verdict::Deny, format!("{why}; to approve it: capstan pins {server} --approve"))
            }
            Standing::Lost => {
                let why = "approvals were lost or cannot be read; approve this server once";
                (Verdict::Deny, format!("{why}: capstan pins {server} --approve"))
            }
            Standing::Unexpected => (Verdict::Deny, "expected_tools".to_owned()),
        };
        Some(Ruling { verdict, rule: format!("servers.{server}: {why}"), by: By::Rule })
    }

    /// Every tool of a list beside what was approved of it.
    pub async fn review(
        &self,
        server: &ServerName,
        items: &[Item],
    ) -> Result<Vec<Review>, StoreError> {
        let (Some(kept), Some(rules)) = (&self.kept, self.servers.get(server)) else {
            return Ok(Vec::new());
        };
        let approved = kept.store.pins(&rules.owner(server)).await?.unwrap_or_default();
        let unknown = unknown(&approved);
        let mut approved: HashMap<String, Pin> =
            approved.pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect();
        let review = |item: &Item| {
            let now = pin(item);
            let before = approved.remove(&item.name);
            let standing = rules.standing(&now, before.as_ref(), unknown);
            let before = before.map(|pin| pin.text);
            Review { tool: now.tool, standing, before, now: now.text }
        };
        Ok(items.iter().map(review).collect())
    }

    /// Approves tools as they are in this list.
    pub async fn approve<'a>(
        &self,
        server: &ServerName,
        items: impl IntoIterator<Item = &'a Item>,
    ) -> Result<(), StoreError> {
        let (Some(kept), Some(rules)) = (&self.kept, self.servers.get(server)) else {
            return Ok(());
        };
        let pins: Vec<Pin> = pins(items).collect();
        kept.store.approve(&rules.owner(server), &pins).await?;
        if let Some(seen) = self.lock().get_mut(server) {
            // What was approved may by now be something else again.
            let is_same = |item: &Item| pins.contains(&pin(item));
            let same = seen.items.iter().filter(|item| seen.odd.contains_key(&item.name));
            let same: Vec<&Item> = same.filter(|item| is_same(item)).collect();
            let mut odd = Odd::clone(&seen.odd);
            odd.retain(|name, standing| {
                *standing == Standing::Unexpected || same.iter().all(|item| item.name != *name)
            });
            seen.odd = Arc::new(odd);
        }
        Ok(())
    }

    /// The servers some of whose tools are not approved, or could not be compared.
    fn unsettled(&self) -> Vec<(ServerName, Seen)> {
        let mut seen = self.lock().clone();
        seen.retain(|_, seen| !(seen.compared && seen.odd.is_empty()));
        seen.into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl PinRules ===

impl PinRules {
    fn owner(&self, server: &ServerName) -> PinOwner {
        PinOwner { server: server.clone(), identity: self.identity.clone() }
    }

    /// Whether the configuration lets the server have this tool.
    fn expects(&self, tool: &String) -> bool {
        let is_expected = self.expected.as_ref().is_none_or(|expected| expected.contains(tool));
        is_expected || self.trust == Trust::Trusted
    }

    /// Whether a change of the server's tools is more than logged.
    fn is_strict(&self) -> bool {
        self.trust != Trust::Trusted || self.new_tools == NewTools::Refuse
    }

    /// How a tool stands; `unknown` is how one stands of which nothing was approved.
    fn standing(&self, now: &Pin, before: Option<&Pin>, unknown: Standing) -> Standing {
        match before {
            _ if !self.expects(&now.tool) => Standing::Unexpected,
            None => unknown,
            Some(before) if before.is(now) => Standing::Approved,
            Some(_) => Standing::Changed,
        }
    }
}

// === impl Standing ===

impl Standing {
    /// How a tool stands where these are not what was approved.
    pub(crate) fn of(odd: &Odd, tool: &str) -> Self {
        odd.get(tool).copied().unwrap_or(Self::Approved)
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Lost => "lost",
            Self::Unexpected => "unexpected",
        }
    }
}

/// Tells of tools that are not what was approved, when that is news.
fn tell(server: &ServerName, before: Option<&Odd>, odd: &Odd) {
    if odd.is_empty() || before == Some(odd) {
        return;
    }
    let count = |standing| odd.values().filter(|one| **one == standing).count();
    let (new, changed) = (count(Standing::New), count(Standing::Changed));
    let (lost, unexpected) = (count(Standing::Lost), count(Standing::Unexpected));
    warn!(
        %server, new, changed, lost, unexpected,
        "its tools are not those that were approved; `capstan pins {server}` shows what changed"
    );
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

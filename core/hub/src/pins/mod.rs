//! Pins: approved definitions of tools, compared with what servers list now.
//!
//! The definitions that a server has when it is first seen are approved with it. After that, a new
//! tool is asked about, and a tool whose definition changed is refused until the operator has
//! reviewed it: a server cannot show one thing and become another. Changes of a trusted server are
//! only logged. `fingerprint` defines what counts as a change, `compare` compares a list with the
//! approved definitions, `approved_digests` finds lists that need no comparison, `first_seen`
//! approves servers that were never seen, `hub` compares every list before it is used.
//!
//! **Invariant:** pins never permit anything; they only make a verdict stricter.

mod compare;
pub(crate) mod fingerprint;
mod first_seen;
mod hub;
mod seen;
mod approved_digests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::{By, ItemId, Ruling, ServerName, Trust, Verdict};
use capstan_policy::Step;
use capstan_policy::combine::{Tie, tighten};
use compare::{CachedPins, unknown};
use fingerprint::{pin, pins};
use seen::{Enough, Seen};
use tracing::warn;

use crate::ports::{
    Changes, Clock, Item, Listener as _, Listing, Pin, PinOwner, PinStore, StoreError,
};

/// The settings for a server's definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinRules {
    /// The digest of how the server is started or reached.
    pub identity: String,
    /// How far the server is trusted.
    pub trust: Trust,
    /// The treatment of new tools.
    pub new_tools: NewTools,
    /// The names of the tools that it may have; `None` for any.
    pub expected: Option<Vec<String>>,
}

/// The treatment of tools that a server did not have before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewTools {
    /// The operator is asked before such a tool is called.
    #[default]
    Ask,
    /// Such a tool is refused.
    Refuse,
}

/// The state of a tool, compared with its approved definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its definition is the approved one.
    Approved,
    /// It was not there before.
    New,
    /// Its definition differs from the approved one.
    Changed,
    /// The approved definition is not known: it was lost, or cannot be read.
    Lost,
    /// It is not in the configuration's list of expected tools.
    Unexpected,
}

/// A tool's current and approved definition, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// The tool.
    pub tool: String,
    /// Its standing.
    pub standing: Standing,
    /// The approved definition, as readable text.
    pub before: Option<String>,
    /// The current definition, as readable text.
    pub now: String,
}

/// The approved definitions of all servers.
#[derive(Default)]
pub struct Pins {
    kept: Option<CachedPins>,
    servers: HashMap<ServerName, PinRules>,
    seen: Mutex<HashMap<ServerName, Seen>>,
    version: AtomicU64,
}

/// The tools of a list that are not approved, with their standing.
pub(crate) type Odd = HashMap<String, Standing>;

// === impl Pins ===

impl Pins {
    /// Creates pins that are kept in a store, for servers with these settings.
    ///
    /// Listeners of `changes` are notified when a tool becomes approved, or no longer is.
    pub fn new(
        store: Arc<dyn PinStore>,
        clock: Arc<dyn Clock>,
        changes: Arc<Changes>,
        servers: HashMap<ServerName, PinRules>,
    ) -> Self {
        let kept = Some(CachedPins::new(store, clock, changes, servers.keys().cloned()));
        Self { kept, servers, ..Self::default() }
    }

    /// Compares a list with the approved definitions, and returns the tools that are not approved.
    ///
    /// A recent comparison is reused. If the store fails, the failure is logged, definitions that
    /// were compared before keep their standing, all others are refused, and the comparison is
    /// tried again later.
    pub(crate) async fn look_at(&self, server: &ServerName, items: &Arc<[Item]>) -> Arc<Odd> {
        self.look(server, items, Seen::is_fresh).await
    }

    /// Like [`Self::look_at`], but reuses only a comparison of the last few milliseconds.
    ///
    /// That limit bounds the load, because a refused tool can be called any number of times.
    pub(crate) async fn look_closer(&self, server: &ServerName, items: &Arc<[Item]>) -> Arc<Odd> {
        self.look(server, items, Seen::is_of_this_moment).await
    }

    async fn look(&self, server: &ServerName, items: &Arc<[Item]>, enough: Enough) -> Arc<Odd> {
        match self.seen(server, items, enough) {
            Some(odd) => odd,
            // This is rare, and the future is large: boxed, so that other calls do not carry it.
            None => Box::pin(self.look_up(server, items, enough)).await,
        }
    }

    /// Returns the result of [`Self::look_at`] if it is cached.
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
        // Another task may have compared the list while this one waited.
        let is_done = |seen: &&Seen| enough(seen, items, now) || seen.is_since(items, asked);
        if let Some(seen) = before.as_ref().filter(is_done) {
            return Arc::clone(&seen.odd);
        }
        let (odd, compared) = kept.judge(server, rules, items, before.as_ref()).await;
        let seen = Seen { items: Arc::clone(items), odd: Arc::new(odd), at: now, compared };
        let odd = Arc::clone(&seen.odd);
        let before = self.lock().insert(server.clone(), seen).map(|before| before.odd);
        // Otherwise the warning about the store says it all.
        if compared {
            tell(server, before.as_deref(), &odd);
        }
        self.announce(server, before, &odd);
        odd
    }

    /// True if comparing this server's tools would wait for [`Self::get_ready`].
    pub(crate) fn is_unready(&self, server: &ServerName) -> bool {
        self.kept.is_some()
            && self.servers.contains_key(server)
            && !self.lock().contains_key(server)
    }

    /// Prepares the store ahead of the first comparison.
    pub(crate) async fn get_ready(&self) {
        if let Some(kept) = &self.kept {
            kept.store.get_ready().await;
        }
    }

    /// Compares the lists again that have unapproved tools, or could not be compared.
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
                // By now another task may have compared a newer list.
                Some(known) if Arc::ptr_eq(&known.items, &items) => {
                    (known.at, known.compared) = (now, compared);
                    std::mem::replace(&mut known.odd, Arc::clone(&odd))
                }
                Some(_) | None => continue,
            };
            if compared {
                tell(&server, Some(&before), &odd);
            }
            self.announce(&server, Some(before), &odd);
        }
    }

    /// Announces changes in the standing of tools.
    fn announce(&self, server: &ServerName, before: Option<Arc<Odd>>, odd: &Odd) {
        if let (Some(kept), true) = (&self.kept, before.is_some_and(|before| *before != *odd)) {
            self.version.fetch_add(1, Ordering::AcqRel);
            kept.changes.list_may_differ(server, Listing::Tools);
        }
    }

    /// A counter that changes whenever a tool becomes approved, or no longer is.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the standing of a tool in the list that was compared last.
    pub fn standing(&self, id: &ItemId) -> Standing {
        let odd = self.lock().get(&id.server).and_then(|seen| seen.odd.get(&id.item).copied());
        odd.unwrap_or(Standing::Approved)
    }

    /// Makes a ruling stricter if the item's definition is not approved.
    pub(crate) fn tighten(&self, id: &ItemId, standing: Standing, ruling: Ruling) -> Ruling {
        tighten(ruling, self.rule_on(id, standing), Tie::Replaces)
    }

    /// Like [`Self::tighten`], but also returns the step that explains the verdict.
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

    /// Returns the ruling for a standing; `None` if the definition is approved.
    fn rule_on(&self, id: &ItemId, standing: Standing) -> Option<Ruling> {
        let server = &id.server;
        let refuses_new =
            || self.servers.get(server).is_some_and(|rules| rules.new_tools == NewTools::Refuse);
        let (verdict, why) = match standing {
            Standing::Approved => return None,
            Standing::New if refuses_new() => {
                (Verdict::Deny, "lock_tool_list, and the tool is new".to_owned())
            }
            Standing::New => (Verdict::Ask, format!("a new tool, see capstan pins {server}")),
            Standing::Changed => {
                let why = format!("a changed tool, see capstan pins {server}");
                (Verdict::Deny, format!("{why}; to pin it: capstan pins {server} --approve"))
            }
            Standing::Lost => {
                let why = "pins were lost or cannot be read; if capstan doctor finds no fault of the state \
                           database, pin the tools of this server once";
                (Verdict::Deny, format!("{why}: capstan pins {server} --approve"))
            }
            Standing::Unexpected => (Verdict::Deny, "expected_tools".to_owned()),
        };
        Some(Ruling { verdict, rule: format!("servers.{server}: {why}"), by: By::Pins })
    }

    /// Returns every tool of a list with its approved definition.
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
            // An approved definition may have changed again by now.
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

    /// Returns the servers that have unapproved tools, or could not be compared.
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

    /// True if the configuration lets the server have this tool.
    fn expects(&self, tool: &String) -> bool {
        let is_expected = self.expected.as_ref().is_none_or(|expected| expected.contains(tool));
        is_expected || self.trust == Trust::Trusted
    }

    /// True if a change of the server's tools has consequences, and is not only logged.
    fn is_strict(&self) -> bool {
        self.trust != Trust::Trusted || self.new_tools == NewTools::Refuse
    }

    /// Returns the standing of a tool; `unknown` is the standing of one without approved
    /// definition.
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
    /// Looks up the standing of a tool in the list of unapproved ones.
    pub(crate) fn of(odd: &Odd, tool: &str) -> Self {
        odd.get(tool).copied().unwrap_or(Self::Approved)
    }

    /// The word in output.
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

/// Logs the tools that are not approved, if that changed.
fn tell(server: &ServerName, before: Option<&Odd>, odd: &Odd) {
    if odd.is_empty() || before == Some(odd) {
        return;
    }
    let count = |standing| odd.values().filter(|one| **one == standing).count();
    let (new, changed) = (count(Standing::New), count(Standing::Changed));
    let (lost, unexpected) = (count(Standing::Lost), count(Standing::Unexpected));
    warn!(
        %server, new, changed, lost, unexpected,
        "its tools differ from their pins; `capstan pins {server}` shows the changes"
    );
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

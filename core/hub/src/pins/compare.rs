//! Looks up what was approved, and compares.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::{ServerName, Trust};
use futures::lock::{Mutex as Turn, MutexGuard};
use tracing::{debug, info, warn};

use super::fingerprint::{pins, sum};
use super::firsts::Firsts;
use super::sums::Sums;
use super::{NewTools, Odd, PinRules, Seen, Standing};
use crate::ports::{Approved, Changes, Clock, Item, Newcomer, Pin, PinStore, StoreError};

/// Where approved definitions are kept, and what belongs to that.
pub(super) struct Kept {
    pub(super) store: Arc<dyn PinStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) changes: Arc<Changes>,
    sums: Sums,
    firsts: Firsts,
    /// Whoever has the one of a server looks at its list: what many want to know is looked up once.
    turns: HashMap<ServerName, Turn<()>>,
}

// === impl Kept ===

impl Kept {
    pub(super) fn new(
        store: Arc<dyn PinStore>,
        clock: Arc<dyn Clock>,
        changes: Arc<Changes>,
        servers: impl Iterator<Item = ServerName>,
    ) -> Self {
        let turns = servers.map(|server| (server, Turn::default())).collect();
        Self { store, clock, changes, sums: Sums::default(), firsts: Firsts::default(), turns }
    }

    /// Waits until nobody else looks at the list of a server.
    pub(super) async fn turn(&self, server: &ServerName) -> Option<MutexGuard<'_, ()>> {
        match self.turns.get(server) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    /// How the tools of a list stand, and whether that could be looked up.
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
                // What the configuration says holds all the same.
                let mut odd = before.map(|before| Odd::clone(&before.odd)).unwrap_or_default();
                odd.extend(unexpected(rules, items));
                (odd, false)
            }
        }
    }

    /// The tools of a list that are not what was approved. A server that was never seen is approved
    /// as it is; so is whatever a trusted one changes.
    async fn compare(
        &self,
        server: &ServerName,
        rules: &PinRules,
        items: &Arc<[Item]>,
    ) -> Result<Odd, Arc<StoreError>> {
        let (owner, sum) = (rules.owner(server), sum(items));
        let mut seen = self.sums.get(&*self.store).await?;
        if !seen.contains_key(&owner) {
            let new = Newcomer { owner: owner.clone(), sum: sum.clone(), items: Arc::clone(items) };
            self.firsts.begin(&*self.store, new).await?;
            // Another process may have been first, with another list.
            seen = self.sums.get(&*self.store).await?;
        }
        if seen.get(&owner).is_some_and(|whole| whole.as_ref() == Some(&sum)) {
            return Ok(unexpected(rules, items).collect());
        }
        let approved = self.store.pins(&owner).await.map_err(Arc::new)?;
        let pins: Vec<Pin> = pins(&**items).collect();
        let Approved { pins: approved, changes } = approved.unwrap_or_default();
        let approved: HashMap<&str, &Pin> =
            approved.iter().map(|pin| (pin.tool.as_str(), pin)).collect();
        let mut odd = Odd::new();
        for pin in &pins {
            match rules.standing(pin, approved.get(pin.tool.as_str()).copied()) {
                Standing::Approved => {}
                standing @ (Standing::New | Standing::Changed | Standing::Unexpected) => {
                    odd.insert(pin.tool.clone(), standing);
                }
            }
        }
        let is_same = |pin: &Pin| approved.get(pin.tool.as_str()).is_some_and(|one| one.is(pin));
        // Also what nobody expects must be the same: some day it may be expected.
        if pins.iter().all(is_same)
            && let Err(error) = self.store.note(&owner, &sum, changes).await
        {
            debug!(%server, %error, "what was approved is compared one by one the next time, too");
        }
        let is_strict = rules.trust != Trust::Trusted || rules.new_tools == NewTools::Refuse;
        if is_strict || odd.is_empty() {
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

/// The tools that the configuration does not let the server have.
fn unexpected(rules: &PinRules, items: &[Item]) -> impl Iterator<Item = (String, Standing)> {
    let names = items.iter().map(|item| &item.name).filter(|name| !rules.expects(name));
    names.map(|name| (name.clone(), Standing::Unexpected))
}

fn say_broken(server: &ServerName, error: &StoreError) {
    let cause = error.cause.as_ref().map(ToString::to_string).unwrap_or_default();
    warn!(%server, %error, cause, "its tools cannot be compared with what was approved");
}

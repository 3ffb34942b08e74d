//! Looks up what was approved, and compares.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::{ServerName, Trust};
use tracing::{debug, info, warn};

use super::fingerprint::{pins, sum};
use super::sums::Sums;
use super::{NewTools, Odd, PinRules, Seen, Standing};
use crate::ports::{Approved, Changes, Clock, Item, Pin, PinOwner, PinStore, StoreError};

/// Where approved definitions are kept, and what belongs to that.
pub(super) struct Kept {
    pub(super) store: Arc<dyn PinStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) changes: Arc<Changes>,
    pub(super) sums: Sums,
}

// === impl Kept ===

impl Kept {
    /// How the tools of a list stand, and whether that could be looked up.
    pub(super) async fn judge(
        &self,
        server: &ServerName,
        rules: &PinRules,
        items: &[Item],
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

    /// Whether the list with this sum is known to be approved as a whole.
    async fn is_whole(&self, owner: &PinOwner, sum: &String) -> Result<bool, Arc<StoreError>> {
        Ok(self.sums.get(&*self.store).await?.get(owner) == Some(sum))
    }

    /// The tools of a list that are not what was approved. A server that was never seen is approved
    /// as it is; so is whatever a trusted one changes.
    async fn compare(
        &self,
        server: &ServerName,
        rules: &PinRules,
        items: &[Item],
    ) -> Result<Odd, Arc<StoreError>> {
        let owner = rules.owner(server);
        let sum = sum(items);
        if self.is_whole(&owner, &sum).await? {
            return Ok(unexpected(rules, items).collect());
        }
        let pins = pins(items);
        let mut approved = self.store.pins(&owner).await.map_err(Arc::new)?;
        if approved.is_none() {
            self.store.begin(&owner, &pins, &sum).await.map_err(Arc::new)?;
            if self.is_whole(&owner, &sum).await? {
                return Ok(unexpected(rules, items).collect());
            }
            // Another process was first, with another list.
            approved = self.store.pins(&owner).await.map_err(Arc::new)?;
        }
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

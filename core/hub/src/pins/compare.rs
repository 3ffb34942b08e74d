//! Looks up what was approved, and compares.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::{ServerName, Trust};
use tracing::{info, warn};

use super::fingerprint::pins;
use super::{NewTools, Odd, PinRules, Seen, Standing};
use crate::ports::{Changes, Clock, Item, Pin, PinStore, StoreError};

/// Where approved definitions are kept, and what belongs to that.
pub(super) struct Kept {
    pub(super) store: Arc<dyn PinStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) changes: Arc<Changes>,
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
                let unexpected = pins(items).into_iter().filter(|pin| !rules.expects(&pin.tool));
                odd.extend(unexpected.map(|pin| (pin.tool, Standing::Unexpected)));
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
        items: &[Item],
    ) -> Result<Odd, StoreError> {
        let owner = rules.owner(server);
        let pins = pins(items);
        let mut approved = self.store.pins(&owner).await?;
        if approved.is_none() {
            self.store.begin(&owner, &pins).await?;
            // Another process may have been first, with another list.
            approved = self.store.pins(&owner).await?;
        }
        let approved = approved.unwrap_or_default();
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
        let is_strict = rules.trust != Trust::Trusted || rules.new_tools == NewTools::Refuse;
        if is_strict || odd.is_empty() {
            return Ok(odd);
        }
        let new: Vec<Pin> = pins.into_iter().filter(|pin| odd.contains_key(&pin.tool)).collect();
        for pin in &new {
            info!(%server, tool = ?pin.tool, "a trusted server has changed a tool");
        }
        self.store.approve(&owner, &new).await?;
        Ok(Odd::new())
    }
}

fn say_broken(server: &ServerName, error: &StoreError) {
    let cause = error.cause.as_ref().map(ToString::to_string).unwrap_or_default();
    warn!(%server, %error, cause, "its tools cannot be compared with what was approved");
}

//! Caches the effects of tools by definition.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use capstan_model::{Effect, ItemId, Kind};
use capstan_policy::Policy;
use capstan_wire::Json;

/// Cache of effects by definition, so that a new list costs only what changed in it.
///
/// **Invariant:** all cached effects come from one policy; a hub has only one.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    known: Mutex<HashMap<u64, Effect>>,
    /// Randomly seeded, so that a server cannot construct definitions whose hashes collide.
    hasher: RandomState,
}

/// Most definitions that are cached; then the cache is cleared.
const MAX_KNOWN: usize = 20_000;

// === impl Effects ===

impl Effects {
    /// Returns the effect of an item.
    pub(crate) fn of(&self, policy: &Policy, id: &ItemId, kind: Kind, definition: &Json) -> Effect {
        match kind {
            // Nothing to compute, so nothing to cache.
            Kind::Resource | Kind::Prompt => return policy.effect_of(id, kind, definition),
            Kind::Tool => {}
        }
        let key = self.hasher.hash_one((id, definition.as_bytes()));
        if let Some(effect) = self.lock().get(&key) {
            return *effect;
        }
        let effect = policy.effect_of(id, kind, definition);
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, effect);
        effect
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Effect>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use capstan_policy::{PolicySource, ServerPolicy};

    use super::*;

    fn effect(effects: &Effects, server: &str, tool: &str, description: &str) -> Effect {
        let mut policy = PolicySource::default();
        policy.servers.insert("own".parse().unwrap(), ServerPolicy::default());
        let policy = policy.compile();
        let id = ItemId { server: server.parse().unwrap(), item: tool.to_owned() };
        let text = format!(r#"{{"name":"{tool}","description":"{description}"}}"#);
        effects.of(&policy, &id, Kind::Tool, &Json::parse(text).unwrap())
    }

    #[test]
    fn another_definition_is_judged_anew_and_the_same_one_is_remembered() {
        let effects = Effects::default();
        assert_eq!(effect(&effects, "own", "thing", "Get it."), Effect::Read);
        assert_eq!(effect(&effects, "own", "thing", "Delete it."), Effect::Write);
        assert_eq!(effect(&effects, "own", "thing", "Get it."), Effect::Read);
        assert_eq!(effects.lock().len(), 2);
        // The same tool of a server that the policy does not list.
        assert_eq!(effect(&effects, "other", "thing", "Get it."), Effect::Unknown);
    }
}

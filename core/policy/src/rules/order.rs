//! The order of the rules, as one table.
//!
//! Decisions, explanations, rules that depend on arguments, rules that match nothing and rules that
//! are never reached all read [`ORDER`]. The order of the engines around it (exposure, access, new
//! names, pins) is in [`crate::combine`].

use capstan_model::Verdict;

/// The lists of rules in the order in which they are consulted.
///
/// Tool policy and authorization give one verdict, permissions another; for each of the two, the
/// first rule that matches decides.
pub const ORDER: [RuleGroup; 10] = [
    RuleGroup::new(Engine::ToolPolicy, Scope::AllServers, Some(Verdict::Deny)),
    RuleGroup::new(Engine::ToolPolicy, Scope::AllServers, Some(Verdict::Ask)),
    RuleGroup::new(Engine::ToolPolicy, Scope::AllServers, Some(Verdict::Allow)),
    RuleGroup::new(Engine::Authorization, Scope::AllServers, None),
    RuleGroup::new(Engine::Permissions, Scope::AllServers, Some(Verdict::Deny)),
    RuleGroup::new(Engine::Permissions, Scope::OneServer, Some(Verdict::Deny)),
    RuleGroup::new(Engine::Permissions, Scope::OneServer, Some(Verdict::Ask)),
    RuleGroup::new(Engine::Permissions, Scope::OneServer, Some(Verdict::Allow)),
    RuleGroup::new(Engine::Permissions, Scope::AllServers, Some(Verdict::Ask)),
    RuleGroup::new(Engine::Permissions, Scope::AllServers, Some(Verdict::Allow)),
];

/// One list of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleGroup {
    /// The part of the configuration that has the list.
    pub engine: Engine,
    /// Global list, or list of a server.
    pub scope: Scope,
    /// The verdict of its rules; `None` where each rule has its own.
    pub verdict: Option<Verdict>,
}

/// The part of the configuration that a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `[tools.policy]`.
    ToolPolicy,
    /// `[tools.authorization]`; consulted if no rule of the tool policy matches.
    Authorization,
    /// `[permissions]` and `[servers.NAME.permissions]`.
    Permissions,
}

/// The servers that a list of rules applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every server.
    AllServers,
    /// The server that the list belongs to.
    OneServer,
}

/// Engines with one common verdict: the first match among their rules decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// Tool policy, else authorization.
    Tools,
    /// Permissions, else the default.
    Permissions,
}

// === impl RuleGroup ===

impl RuleGroup {
    const fn new(engine: Engine, scope: Scope, verdict: Option<Verdict>) -> Self {
        Self { engine, scope, verdict }
    }
}

// === impl Engine ===

impl Engine {
    /// The engine's name in explanations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolPolicy => "tool_policy",
            Self::Authorization => "authorization",
            Self::Permissions => "permissions",
        }
    }

    pub(crate) fn vote(self) -> Vote {
        match self {
            Self::ToolPolicy | Self::Authorization => Vote::Tools,
            Self::Permissions => Vote::Permissions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in the guide must equal this one.
    #[test]
    fn the_order_in_the_guide_is_this_order() {
        let guide = include_str!("../../../../docs/guide/permissions.md");
        let shown: Vec<&str> =
            guide.lines().filter_map(|line| line.strip_prefix("| rules ")).collect();
        let word = |group: &RuleGroup| {
            let table = match (group.engine, group.scope) {
                (Engine::ToolPolicy, _) => "tools.policy",
                (Engine::Authorization, _) => "tools.authorization",
                (Engine::Permissions, Scope::AllServers) => "permissions",
                (Engine::Permissions, Scope::OneServer) => "servers.NAME.permissions",
            };
            let list = group.verdict.map_or("rules", Verdict::as_str);
            format!("`{table}.{list}`")
        };
        assert_eq!(shown.len(), ORDER.len(), "{shown:?}");
        for (at, (line, group)) in shown.iter().zip(&ORDER).enumerate() {
            let expected = format!("{} | {}", at + 1, word(group));
            assert!(line.starts_with(&expected), "{line}: expected {expected}");
        }
    }
}

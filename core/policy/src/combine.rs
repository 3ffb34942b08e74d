//! Combines the engines' rulings into one verdict.
//!
//! | # | engine | rules | effect on the verdict so far |
//! |--:|---|---|---|
//! | 1 | exposure and trust | deny, or nothing | a deny is final |
//! | 2 | access | deny, or nothing | a deny is final |
//! | 3 | permissions | always, by a rule or by the default | is the verdict so far |
//! | 4 | tool policy, else authorization | allow, ask, deny, or nothing | replaces a laxer verdict, and an equal one of the default |
//! | 5 | rules that match a tool by its new name | ask, deny, or nothing | as 4 |
//! | 6 | pins | ask, deny, or nothing | replaces a laxer verdict, and an equal one |
//! | 7 | flows | ask, deny, or nothing | as 4 |
//!
//! Rules of 3 and 4 are consulted in the order of [`crate::rules::order`].

use capstan_model::{By, Ruling};

/// Decides which of two rulings with equal verdicts counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The ruling so far, unless it comes from the default.
    ///
    /// An explicit ask, which no remembered approval answers, must not be hidden by a default that
    /// asks too.
    KeepsRule,
    /// The further ruling. A yes to a pin's question approves the tool as well.
    Replaces,
}

/// Combines the ruling so far with that of a further engine. It never becomes laxer.
#[must_use]
pub fn tighten(so_far: Ruling, further: Option<Ruling>, tie: Tie) -> Ruling {
    let Some(further) = further else { return so_far };
    let replaces = further.verdict == so_far.verdict
        && match tie {
            Tie::KeepsRule => so_far.by == By::Default,
            Tie::Replaces => so_far.verdict != capstan_model::Verdict::Deny,
        };
    if further.verdict > so_far.verdict || replaces { further } else { so_far }
}

#[cfg(test)]
mod tests {
    use capstan_model::Verdict::{self, Allow, Ask, Deny};

    use super::*;

    #[test]
    fn a_further_ruling_only_tightens_and_ties_are_settled_by_the_table() {
        let ruling = |verdict, by, rule: &str| Ruling { verdict, rule: rule.to_owned(), by };
        let check = |so_far: (Verdict, By), further: Verdict, tie, expected: &str| {
            let before = ruling(so_far.0, so_far.1, "before");
            let after = tighten(before.clone(), Some(ruling(further, By::Rule, "after")), tie);
            assert_eq!(after.rule, expected, "{so_far:?} {further:?} {tie:?}");
            assert!(after.verdict >= before.verdict);
        };
        for tie in [Tie::KeepsRule, Tie::Replaces] {
            for by in [By::Rule, By::Default] {
                check((Allow, by), Ask, tie, "after");
                check((Allow, by), Deny, tie, "after");
                check((Ask, by), Deny, tie, "after");
                check((Ask, by), Allow, tie, "before");
                check((Deny, by), Allow, tie, "before");
                check((Deny, by), Ask, tie, "before");
            }
        }
        check((Ask, By::Rule), Ask, Tie::KeepsRule, "before");
        check((Ask, By::Default), Ask, Tie::KeepsRule, "after");
        check((Deny, By::Default), Deny, Tie::KeepsRule, "after");
        check((Ask, By::Rule), Ask, Tie::Replaces, "after");
        check((Deny, By::Rule), Deny, Tie::Replaces, "before");
        let alone = ruling(Ask, By::Rule, "before");
        assert_eq!(tighten(alone.clone(), None, Tie::Replaces), alone);
    }
}

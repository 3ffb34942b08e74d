//! Shows the decision about a call and its reasons.

use capstan_app::Setup;
use capstan_hub::Explanation;
use capstan_model::{Effect, Verdict};
use capstan_policy::{Step, Tag, Tags};
use capstan_text::clean::one_line;
use capstan_text::screen::stderr_width;
use capstan_text::table::table;
use serde::Serialize;

use crate::print::Printer;

/// A decision, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Decision<'a> {
    verdict: Verdict,
    rule: &'a str,
    steps: &'a [Step],
    /// The effect of the item.
    effect: Effect,
    /// Rules that could apply if arguments were given.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    by_arguments: &'a [Step],
    /// The tags that rules about flows depend on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'static str>,
    /// Rules about flows that could apply in a conversation.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    by_flows: &'a [Step],
}

// === impl Decision ===

impl<'a> Decision<'a> {
    pub(super) fn of(explained: &'a Explanation) -> Self {
        let Explanation { ruling, steps, effect, by_arguments, by_flows, .. } = explained;
        let tags = explained.tags.iter().map(Tag::as_str).collect();
        let (verdict, rule, effect) = (ruling.verdict, &*ruling.rule, *effect);
        Self { verdict, rule, steps, effect, by_arguments, tags, by_flows }
    }
}

/// Warns about roles that no rule or grant mentions, because they are likely misspelt.
pub(super) fn tell_unknown_roles(print: &Printer, setup: &Setup, roles: &[String]) {
    let tables = || setup.loaded.config.access.iter().map(|access| &access.table);
    let known: Vec<&str> =
        tables().flat_map(|table| table.roles.iter().map(|(name, _)| name.as_str())).collect();
    let ordered = |role: &String| {
        tables().flat_map(|table| &table.rules).any(|rule| rule.roles.contains(role))
    };
    if tables().next().is_none() {
        return;
    }
    for role in roles.iter().filter(|role| !known.contains(&role.as_str()) && !ordered(role)) {
        print.warning(&format!("there is no role `{}`", one_line(role, usize::MAX)));
        if !known.is_empty() {
            print.hint(&format!("the roles are {}", known.join(", ")));
        }
    }
}

/// The headers of evaluated rules.
pub(super) const STEP_HEADERS: [&str; 3] = ["ENGINE", "SAYS", "RULE"];

/// The evaluated rules, in order, as rows of a table.
pub(super) fn steps(steps: &[Step]) -> Vec<Vec<String>> {
    let row = |step: &Step| {
        let said = step.verdict.map_or("-", Verdict::as_str);
        vec![step.engine.to_owned(), said.to_owned(), step.rule.clone()]
    };
    steps.iter().map(row).collect()
}

/// Prints the tags of the item, and the rules about flows that could apply in a conversation.
pub(super) fn tell_flows(print: &Printer, tags: Tags, by_flows: &[Step]) {
    if tags == Tags::NONE {
        return;
    }
    let tags: Vec<&str> = tags.iter().map(Tag::words).collect();
    print.note(&format!("\nit {}", tags.join(", and it ")));
    if !by_flows.is_empty() {
        print.note("in one conversation, these rules may apply:");
        print.note(&table(&STEP_HEADERS, &steps(by_flows), stderr_width()));
    }
}

/// Prints the rules that could apply if arguments were given.
pub(super) fn tell_by_arguments(print: &Printer, by_arguments: &[Step]) {
    if by_arguments.is_empty() {
        return;
    }
    print.note("\nthis verdict is for a call without arguments; with arguments, these rules may match first:");
    print.note(&table(&STEP_HEADERS, &steps(by_arguments), stderr_width()));
}

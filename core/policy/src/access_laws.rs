//! Properties that hold for every table of grants.

use proptest::prelude::*;
use proptest::sample::select;

use Strictness::{Strict, Usual};

use super::tests::{Item, grant, grants, ready, ruling};
use super::*;

fn any_grant() -> impl Strategy<Value = String> {
    (
        select(vec!["", "deny "]),
        select(vec!["read", "write", "*"]),
        select(vec!["*", "db", "sentry", "db,sentry", "d*"]),
        select(vec!["", " tools=x", " tools=x*,y", " resources=x", " tools=y prompts=x*"]),
    )
        .prop_map(|(deny, access, server, rest)| format!("{deny}{access} {server}{rest}"))
}

fn any_table() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop::collection::vec(prop::collection::vec(any_grant(), 0..4), 3)
}

fn table_of(texts: &[Vec<String>], strictness: Strictness, default: Says) -> AccessTable {
    let list = |at: usize| {
        let texts: Vec<&str> = texts[at].iter().map(String::as_str).collect();
        grants(&texts)
    };
    let bob = Subject { roles: vec!["b".to_owned()], extra: list(2) };
    AccessTable {
        default,
        strictness,
        roles: vec![("a".to_owned(), list(0)), ("b".to_owned(), list(1))],
        subjects: vec![("bob".to_owned(), bob)],
        rules: Vec::new(),
    }
}

/// Reference implementation: the steps of the specification, over all grants of the caller.
fn by_the_book(
    texts: &[Vec<String>],
    strictness: Strictness,
    default: Says,
    item: &Item<'_>,
) -> Verdict {
    let (server, name) = item.id.split_once("__").unwrap();
    let need = if item.kind == Kind::Tool { item.effect } else { Effect::Read };
    let fits = |text: &&String| {
        let grant = grant(text);
        let list = match item.kind {
            Kind::Tool => grant.tools.clone(),
            Kind::Resource if grant.resources.is_none() && grant.tools.is_some() => Some(vec![]),
            Kind::Prompt if grant.prompts.is_none() && grant.tools.is_some() => Some(vec![]),
            Kind::Resource => grant.resources.clone(),
            Kind::Prompt => grant.prompts.clone(),
        };
        grant.servers.iter().any(|glob| glob.is_match(server))
            && list.is_none_or(|globs| globs.iter().any(|glob| glob.is_match(name)))
    };
    let all: Vec<Grant> = texts.iter().flatten().filter(fits).map(|text| grant(text)).collect();
    let covers = |grant: &&Grant| match grant.access {
        AccessTo::All => true,
        AccessTo::Read => need == Effect::Read,
        AccessTo::Write => need != Effect::Read,
    };
    let unclear = strictness == Strict && need == Effect::Unknown;
    if all.iter().any(|grant| grant.says == Says::Deny && (unclear || covers(&grant))) {
        return Verdict::Deny;
    }
    if unclear {
        return Verdict::Deny;
    }
    if all.iter().any(|grant| grant.says == Says::Allow && covers(&grant)) {
        return Verdict::Allow;
    }
    default.verdict()
}

fn any_strictness() -> impl Strategy<Value = Strictness> {
    select(vec![Usual, Strict])
}

fn any_item() -> impl Strategy<Value = (Kind, &'static str, Effect)> {
    (
        select(vec![Kind::Tool, Kind::Resource, Kind::Prompt]),
        select(vec!["db__x", "db__xx", "db__y", "sentry__x", "sentry__z"]),
        select(vec![Effect::Read, Effect::Write, Effect::Unknown]),
    )
}

proptest! {
    #[test]
    fn what_is_looked_up_is_what_the_book_says(
        texts in any_table(),
        (kind, id, effect) in any_item(),
        strictness in any_strictness(),
        open: bool,
    ) {
        let default = if open { Says::Allow } else { Says::Deny };
        let access = ready(table_of(&texts, strictness, default));
        let item = Item { kind, id, effect };
        let bob = Caller::remote("bob", vec!["a".to_owned(), "b".to_owned(), "z".to_owned()]);
        let verdict = ruling(&access, &bob, &item).verdict;
        prop_assert_eq!(verdict, by_the_book(&texts, strictness, default, &item));
        if verdict == Verdict::Allow {
            let server = id.split_once("__").unwrap().0.parse().unwrap();
            prop_assert!(access.out_of_reach(&bob, &server).is_none(), "allowed, but out of reach");
        }
    }

    #[test]
    fn one_more_deny_never_allows_more_and_one_more_allow_never_denies_more(
        texts in any_table(),
        more in any_grant(),
        (kind, id, effect) in any_item(),
        strictness in any_strictness(),
    ) {
        let bob = Caller::remote("bob", vec!["a".to_owned()]);
        let item = Item { kind, id, effect };
        let verdict = |texts: &[Vec<String>]| {
            ruling(&ready(table_of(texts, strictness, Says::Deny)), &bob, &item).verdict
        };
        let mut with = texts.clone();
        with[0].push(more.clone());
        let (before, after) = (verdict(&texts), verdict(&with));
        if more.starts_with("deny") {
            prop_assert!(after >= before);
        } else {
            prop_assert!(after <= before);
        }
    }
}

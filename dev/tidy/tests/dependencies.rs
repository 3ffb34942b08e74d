//! What may be used from outside: `deny.toml`, checked with what cargo says.
//!
//! `cargo deny check` reads the same file and checks more, for every platform; this needs nothing
//! installed, so that `./dev/test` can always do it.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::collections::BTreeSet;
use std::fs;

use capstan_tidy::licence;
use capstan_tidy::metadata::{DependencyKind, metadata};
use capstan_tidy::tree;
use serde::Deserialize;

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Deny {
    bans: Bans,
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    name: String,
    reason: String,
    #[serde(default)]
    wrappers: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

fn deny() -> Deny {
    toml::from_str(&fs::read_to_string(tree::root().join("deny.toml")).unwrap()).unwrap()
}

#[test]
fn banned_crates_are_used_by_nobody_but_their_wrappers() {
    let metadata = metadata().unwrap();
    for ban in deny().bans.deny {
        for package in metadata.packages.iter().filter(|package| package.name == ban.name) {
            for user in metadata.users(package) {
                let allowed = ban.wrappers.iter().any(|wrapper| wrapper == user);
                assert!(allowed, "{user} may not use {}: {}", ban.name, ban.reason);
            }
        }
    }
}

#[test]
fn our_crates_do_not_even_ask_for_a_banned_crate_on_another_platform() {
    let metadata = metadata().unwrap();
    for ban in deny().bans.deny {
        for package in metadata.ours().filter(|package| !ban.wrappers.contains(&package.name)) {
            let asks = package.dependencies.iter().any(|used| used.name == ban.name);
            assert!(!asks, "{} may not use {}: {}", package.name, ban.name, ban.reason);
        }
    }
}

#[test]
fn rmcp_is_a_peer_for_tests_and_measurements_only() {
    let bans = deny().bans.deny;
    let rmcp = bans.iter().find(|ban| ban.name == "rmcp").unwrap();
    assert_eq!(rmcp.wrappers, ["capstan", "capstan-bench", "capstan-testkit"]);
    let metadata = metadata().unwrap();
    let ships = metadata.ours().filter(|package| package.name != "capstan-bench");
    for used in ships.flat_map(|package| &package.dependencies).filter(|used| used.name == "rmcp") {
        assert_eq!(used.kind, DependencyKind::Dev);
    }
}

#[test]
fn every_licence_is_on_the_list() {
    let allowed = deny().licenses.allow;
    for package in metadata().unwrap().packages {
        let licence = package.license.unwrap_or_default();
        assert!(licence::met(&licence, &allowed), "{}: `{licence}`", package.name);
    }
}

#[test]
fn everything_comes_from_one_registry() {
    let sources: BTreeSet<String> =
        metadata().unwrap().packages.into_iter().filter_map(|package| package.source).collect();
    assert_eq!(sources.len(), 1, "{sources:?}");
    assert!(sources.iter().all(|source| source.starts_with("registry+")), "{sources:?}");
}

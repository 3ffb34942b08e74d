//! Which of our crates may use which: fronts ask, core decides, adapters act.

use capstan_tidy::metadata::{DependencyKind, metadata};
use capstan_tidy::tree;

/// The core, which everything outside it may use.
const CORE: &[&str] = &[
    "capstan-model",
    "capstan-wire",
    "capstan-policy",
    "capstan-safety",
    "capstan-config",
    "capstan-hub",
];

/// The core and the adapters that other adapters may use.
const CORE_AND_SHARED: &[&str] = &[
    "capstan-model",
    "capstan-wire",
    "capstan-policy",
    "capstan-safety",
    "capstan-config",
    "capstan-hub",
    "capstan-process",
    "capstan-lazy",
    "capstan-http",
];

/// What the layer of a folder may use; `None` for a folder without a layer.
fn layer(folder: &str) -> Option<Layer> {
    let layer = match folder.split_once('/') {
        Some(("core", "model" | "wire") | ("dev", "testkit" | "tidy")) => Layer::Only(&[]),
        Some(("core", "policy")) => Layer::Only(&["capstan-model", "capstan-wire"]),
        Some(("core", "safety")) => Layer::Only(&["capstan-model"]),
        Some(("core", "config")) => {
            Layer::Only(&["capstan-model", "capstan-wire", "capstan-policy", "capstan-safety"])
        }
        Some(("core", "hub")) => Layer::Only(&[
            "capstan-model",
            "capstan-wire",
            "capstan-policy",
            "capstan-safety",
            "capstan-config",
        ]),
        // `http` knows nothing of calls; its errors become those of `lazy`.
        Some(("adapters", "http")) => {
            Layer::Only(&["capstan-model", "capstan-safety", "capstan-lazy"])
        }
        Some(("adapters", "mcp" | "command" | "openapi" | "registry")) => {
            Layer::Only(CORE_AND_SHARED)
        }
        Some(("adapters" | "fronts", _)) => Layer::Only(CORE),
        None if folder == "demo" => Layer::Only(&["capstan-wire"]),
        None if folder == "bench" => Layer::Measures,
        None if folder == "capstan" => Layer::Product,
        _ => return None,
    };
    Some(layer)
}

/// What a crate may use of ours.
#[derive(Clone, Copy)]
enum Layer {
    /// These crates.
    Only(&'static [&'static str]),
    /// The core, the demo servers and the testkit.
    Measures,
    /// Whatever ships: the one place that names adapters and fronts.
    Product,
}

impl Layer {
    fn may_use(self, used: &str, kind: DependencyKind) -> bool {
        if used == "capstan-testkit" && kind == DependencyKind::Dev {
            return true;
        }
        match self {
            Self::Only(crates) => crates.contains(&used),
            Self::Measures => {
                CORE.contains(&used) || ["capstan-demo", "capstan-testkit"].contains(&used)
            }
            Self::Product => !["capstan-testkit", "capstan-tidy", "capstan-bench"].contains(&used),
        }
    }
}

#[test]
fn every_crate_has_a_layer_and_the_name_of_its_folder() {
    for package in metadata().unwrap().ours() {
        let folder = package.folder().unwrap();
        assert!(layer(&folder).is_some(), "{folder}: say in layers.rs what it may use");
        let last = folder.rsplit('/').next().unwrap();
        let expected = if folder == "capstan" { folder.clone() } else { format!("capstan-{last}") };
        assert_eq!(package.name, expected, "name of the crate in {folder}");
    }
}

#[test]
fn every_crate_uses_only_what_its_layer_may_use() {
    for package in metadata().unwrap().ours() {
        let Some(layer) = layer(&package.folder().unwrap()) else { continue };
        let of_ours = package.dependencies.iter().filter(|d| d.name.starts_with("capstan"));
        for used in of_ours {
            let allowed = layer.may_use(&used.name, used.kind);
            assert!(allowed, "{} may not use {} ({:?})", package.name, used.name, used.kind);
        }
    }
}

#[test]
fn the_layers_refuse_every_way_around_them() {
    use DependencyKind::{Build, Dev, Normal};
    for (folder, used, kind) in [
        ("core/model", "capstan-wire", Normal),
        ("core/wire", "capstan-model", Normal),
        ("core/policy", "capstan-hub", Normal),
        ("core/policy", "capstan-config", Dev),
        ("core/safety", "capstan-policy", Normal),
        ("core/hub", "capstan-mcp", Dev),
        ("core/hub", "capstan-testkit", Build),
        ("adapters/audit", "capstan-files", Normal),
        ("adapters/audit", "capstan-http", Normal),
        ("adapters/process", "capstan-http", Normal),
        ("adapters/http", "capstan-process", Normal),
        ("adapters/http", "capstan-hub", Normal),
        ("adapters/mcp", "capstan-command", Normal),
        ("adapters/command", "capstan-files", Normal),
        ("adapters/mcp", "capstan-openapi", Normal),
        ("adapters/openapi", "capstan-command", Normal),
        ("adapters/openapi", "capstan-mcp", Normal),
        ("fronts/cli", "capstan-command", Normal),
        ("adapters/audit", "capstan-cli", Dev),
        ("adapters/mcp", "capstan-testkit", Normal),
        ("fronts/cli", "capstan-process", Normal),
        ("fronts/terminal", "capstan-cli", Normal),
        ("demo", "capstan-model", Normal),
        ("dev/testkit", "capstan-model", Normal),
        ("bench", "capstan-mcp", Normal),
        ("bench", "capstan", Normal),
        ("capstan", "capstan-testkit", Normal),
    ] {
        let layer = layer(folder).unwrap();
        assert!(!layer.may_use(used, kind), "{folder} -> {used} ({kind:?})");
    }
    assert!(layer("core/helpers").is_none());
    assert!(layer("tools").is_none());
}

#[test]
fn the_layers_grant_what_the_architecture_needs() {
    for (folder, used, kind) in [
        ("core/policy", "capstan-model", DependencyKind::Normal),
        ("core/hub", "capstan-policy", DependencyKind::Normal),
        ("adapters/mcp", "capstan-hub", DependencyKind::Normal),
        ("adapters/mcp", "capstan-testkit", DependencyKind::Dev),
        ("adapters/command", "capstan-process", DependencyKind::Normal),
        ("adapters/mcp", "capstan-http", DependencyKind::Normal),
        ("fronts/gateway", "capstan-hub", DependencyKind::Normal),
        ("demo", "capstan-wire", DependencyKind::Normal),
        ("capstan", "capstan-mcp", DependencyKind::Normal),
        ("capstan", "capstan-cli", DependencyKind::Normal),
        ("capstan", "capstan-testkit", DependencyKind::Dev),
    ] {
        assert!(layer(folder).unwrap().may_use(used, kind), "{folder} -> {used} ({kind:?})");
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let manifests = tree::files_ending("/Cargo.toml").unwrap();
    assert!(!manifests.is_empty());
    for manifest in manifests {
        let table: toml::Table = manifest.text.parse().unwrap();
        let inherits = table.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
        assert_eq!(inherits, Some(true), "{}: `[lints] workspace = true`", manifest.path);
    }
}

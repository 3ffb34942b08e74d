//! Which of our crates may use which: fronts ask, core decides, adapters act.

use capstan_tidy::metadata::{DependencyKind, metadata};
use capstan_tidy::tree;

/// The nouns and the wire.
const MODEL: &[&str] = &["capstan-model", "capstan-wire"];

/// Pure decisions: about calls, and about environments, commands, addresses and texts.
const DECISIONS: &[&str] = &["capstan-policy", "capstan-safety"];

/// The native configuration, and other programs' files.
const FILES: &[&str] = &["capstan-config", "capstan-import"];

/// The road.
const HUB: &[&str] = &["capstan-hub"];

/// The adapters that other adapters may use.
const SHARED: &[&str] = &["capstan-process", "capstan-lazy", "capstan-http"];

/// Returns the crates that a folder may use; `None` for a folder without a layer.
fn layer(folder: &str) -> Option<Layer> {
    let layer = match folder.split_once('/') {
        Some(("core", "model" | "wire") | ("dev", "tidy")) => Layer::Only(&[]),
        Some(("core", "policy")) => Layer::Only(&[MODEL]),
        Some(("core", "safety")) => Layer::Only(&[&["capstan-model"]]),
        Some(("core", "config" | "hub")) => Layer::Only(&[MODEL, DECISIONS]),
        Some(("core", "import")) => Layer::Only(&[MODEL, DECISIONS, &["capstan-config"]]),
        Some(("core", "app")) => Layer::Only(&[MODEL, DECISIONS, FILES, HUB]),
        // `http` knows nothing of calls; its errors become those of `lazy`.
        Some(("adapters", "http")) => {
            Layer::Only(&[&["capstan-model", "capstan-safety", "capstan-lazy"]])
        }
        Some((
            "adapters",
            "auth"
            | "authorization-server"
            | "mcp"
            | "command"
            | "google"
            | "login"
            | "openapi"
            | "provider"
            | "search"
            | "telemetry",
        )) => Layer::Only(&[MODEL, DECISIONS, HUB, SHARED]),
        Some(("adapters", "registry")) => Layer::Only(&[MODEL, DECISIONS, FILES, SHARED]),
        // The testkit has fakes of the hub's ports.
        Some(("adapters", _) | ("fronts", "gateway") | ("dev", "testkit")) => {
            Layer::Only(&[MODEL, DECISIONS, HUB])
        }
        Some(("fronts", "text")) => Layer::Only(&[MODEL, DECISIONS, FILES, HUB, &["capstan-app"]]),
        Some(("fronts", _)) => {
            Layer::Only(&[MODEL, DECISIONS, FILES, HUB, &["capstan-app", "capstan-text"]])
        }
        None if folder == "demo" => Layer::Only(&[&["capstan-wire"]]),
        None if folder == "bench" => Layer::Measures,
        None if folder == "capstan" => Layer::Product,
        _ => return None,
    };
    Some(layer)
}

/// What a crate may use of ours.
#[derive(Clone, Copy)]
enum Layer {
    /// The crates of these groups.
    Only(&'static [&'static [&'static str]]),
    /// The core, the demo servers, tool search and the testkit.
    Measures,
    /// Whatever ships: the one place that names adapters and fronts.
    Product,
}

impl Layer {
    fn may_use(self, used: &str, kind: DependencyKind) -> bool {
        if ["capstan-testkit", "capstan-tidy"].contains(&used) && kind == DependencyKind::Dev {
            return true;
        }
        match self {
            Self::Only(groups) => groups.iter().any(|group| group.contains(&used)),
            Self::Measures => {
                let others = &["capstan-demo", "capstan-testkit", "capstan-search"][..];
                [MODEL, DECISIONS, FILES, HUB, others].iter().any(|group| group.contains(&used))
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
        ("core/config", "capstan-import", Normal),
        ("core/hub", "capstan-config", Normal),
        ("core/hub", "capstan-mcp", Dev),
        ("core/hub", "capstan-app", Normal),
        ("core/app", "capstan-files", Dev),
        ("core/app", "capstan-cli", Normal),
        ("fronts/gateway", "capstan-app", Normal),
        ("fronts/gateway", "capstan-config", Normal),
        ("fronts/gateway", "capstan-text", Normal),
        ("fronts/text", "capstan-cli", Normal),
        ("adapters/control", "capstan-app", Normal),
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
        ("adapters/provider", "capstan-mcp", Normal),
        ("adapters/provider", "capstan-app", Normal),
        ("adapters/audit", "capstan-cli", Dev),
        ("adapters/mcp", "capstan-testkit", Normal),
        ("fronts/cli", "capstan-process", Normal),
        ("fronts/terminal", "capstan-cli", Normal),
        ("demo", "capstan-model", Normal),
        ("dev/testkit", "capstan-mcp", Normal),
        ("bench", "capstan-mcp", Normal),
        ("bench", "capstan", Normal),
        ("capstan", "capstan-testkit", Normal),
        ("capstan", "capstan-tidy", Normal),
        ("fronts/cli", "capstan-tidy", Normal),
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
        ("core/app", "capstan-hub", DependencyKind::Normal),
        ("fronts/cli", "capstan-app", DependencyKind::Normal),
        ("demo", "capstan-wire", DependencyKind::Normal),
        ("capstan", "capstan-mcp", DependencyKind::Normal),
        ("capstan", "capstan-cli", DependencyKind::Normal),
        ("capstan", "capstan-testkit", DependencyKind::Dev),
        ("fronts/cli", "capstan-tidy", DependencyKind::Dev),
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

#[test]
fn in_the_binary_only_the_start_and_the_gateway_know_the_command_line() {
    for file in tree::files_ending(".rs").unwrap() {
        let may = ["capstan/src/main.rs", "capstan/src/serve.rs"].contains(&file.path.as_str());
        let knows = file.path.starts_with("capstan/src/") && file.text.contains("capstan_cli");
        assert!(may || !knows, "{}: use capstan_app instead", file.path);
    }
}

//! Asks cargo about our crates and the crates they use.

use std::collections::HashMap;
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::tree;

/// The metadata that cargo has of the workspace, for this machine's platform.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Our crates and all that they use.
    pub packages: Vec<Package>,
    /// Who uses whom in this build.
    pub resolve: Resolve,
}

/// A crate.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Cargo's name for this very version.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its licence expression.
    pub license: Option<String>,
    /// Where it comes from; `None` for our own.
    pub source: Option<String>,
    /// Its manifest.
    pub manifest_path: String,
    /// The dependencies in its manifest.
    pub dependencies: Vec<Dependency>,
    /// The features and dependencies that each of its features switches on.
    pub features: HashMap<String, Vec<String>>,
}

/// A line of a manifest's tables of dependencies, of any platform.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The crate asked for.
    pub name: String,
    /// In which table it stands.
    #[serde(deserialize_with = "kind")]
    pub kind: DependencyKind,
    /// Whether it is used only when a feature says so.
    pub optional: bool,
    /// The name that the manifest gives it, when that is another one.
    pub rename: Option<String>,
}

/// Which table of the manifest a dependency stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// `[dependencies]`
    Normal,
    /// `[dev-dependencies]`
    Dev,
    /// `[build-dependencies]`
    Build,
}

/// Who uses whom.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// One a crate.
    pub nodes: Vec<Node>,
}

/// A crate and what it uses in this build.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// The crate's id.
    pub id: String,
    /// The ids of what it uses.
    pub dependencies: Vec<String>,
    /// Its features that are switched on.
    pub features: Vec<String>,
}

/// Asks cargo, without touching the network or the lock file.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban is about servers; cargo inherits the environment of the cargo that runs us"
)]
pub fn metadata() -> anyhow::Result<Metadata> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .args(["--filter-platform", "host-tuple"])
        .current_dir(tree::root())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cannot read what cargo says")
}

// === impl Metadata ===

impl Metadata {
    /// Our own crates.
    pub fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }

    /// The names of the crates that use this one directly in this build.
    pub fn users(&self, package: &Package) -> Vec<&str> {
        let users =
            self.resolve.nodes.iter().filter(|node| node.dependencies.contains(&package.id));
        let users = users.filter_map(|node| {
            let user = self.packages.iter().find(|user| user.id == node.id)?;
            user.builds_with(&package.name, &node.features).then_some(user.name.as_str())
        });
        users.collect()
    }
}

// === impl Package ===

impl Package {
    /// Whether the crate is built with this dependency when these features are on.
    ///
    /// Cargo's answer lists an optional dependency as soon as a feature has `name?/…`, which by
    /// itself switches nothing on.
    fn builds_with(&self, dependency: &str, features: &[String]) -> bool {
        let mut asked = self.dependencies.iter().filter(|asked| asked.name == dependency);
        asked.any(|asked| {
            let name = asked.rename.as_deref().unwrap_or(&asked.name);
            let (plain, deep) = (format!("dep:{name}"), format!("{name}/"));
            let turns_on = |item: &String| *item == plain || item.starts_with(&deep);
            let on = |feature| self.features.get(feature).is_some_and(|on| on.iter().any(turns_on));
            !asked.optional || features.iter().any(on)
        })
    }

    /// The crate's folder, from the root of the repository; `None` for a crate that is not ours.
    pub fn folder(&self) -> Option<String> {
        let root = tree::root().canonicalize().ok()?;
        let manifest = self.manifest_path.strip_prefix(root.to_str()?)?;
        Some(manifest.strip_prefix('/')?.strip_suffix("/Cargo.toml")?.to_owned())
    }
}

fn kind<'de, D: serde::Deserializer<'de>>(input: D) -> Result<DependencyKind, D::Error> {
    match Option::<String>::deserialize(input)?.as_deref() {
        None | Some("normal") => Ok(DependencyKind::Normal),
        Some("dev") => Ok(DependencyKind::Dev),
        Some("build") => Ok(DependencyKind::Build),
        Some(other) => Err(serde::de::Error::custom(format!("unknown kind `{other}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_dependency_counts_only_when_a_feature_switches_it_on() {
        let package: Package = serde_json::from_value(serde_json::json!({
            "id": "p", "name": "p", "license": null, "source": null, "manifest_path": "",
            "dependencies": [
                {"name": "always", "kind": null, "optional": false, "rename": null},
                {"name": "real", "kind": null, "optional": true, "rename": "mine"},
                {"name": "weak", "kind": null, "optional": true, "rename": null},
            ],
            "features": {"mine": ["dep:mine"], "deep": ["mine/x"], "loose": ["weak?/x"]},
        }))
        .unwrap();
        let on = |name, features: &[&str]| {
            let features: Vec<String> = features.iter().map(ToString::to_string).collect();
            package.builds_with(name, &features)
        };
        assert!(on("always", &[]) && on("real", &["mine"]) && on("real", &["deep"]));
        assert!(!on("real", &["loose"]) && !on("weak", &["loose"]) && !on("other", &["mine"]));
    }
}

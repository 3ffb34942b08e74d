//! Asks cargo about our crates and the crates they use.

use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::tree;

/// What cargo knows of the workspace, for this machine's platform.
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
    /// What its manifest asks for.
    pub dependencies: Vec<Dependency>,
}

/// A line of a manifest's tables of dependencies, of any platform.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The crate asked for.
    pub name: String,
    /// In which table it stands.
    #[serde(deserialize_with = "kind")]
    pub kind: DependencyKind,
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
        users.filter_map(|node| self.name(&node.id)).collect()
    }

    fn name(&self, id: &str) -> Option<&str> {
        self.packages.iter().find(|package| package.id == id).map(|package| package.name.as_str())
    }
}

// === impl Package ===

impl Package {
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

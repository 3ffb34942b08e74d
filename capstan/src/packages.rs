//! Plugin folders and bundles: finds the files to load in a package that the user names.
//!
//! Only packages that the user names are read this way. A project cannot bring a plugin or a
//! bundle, because none of the files that are read automatically can name one.

use std::path::{Path, PathBuf};

use capstan_app::{AppError, ConfigFile};
use capstan_config::{Dialect, Plugin, PluginPart, Scope, SourceFile};
use capstan_files::{BundleLimits, bundle};
use capstan_import::packages;

use crate::host::{explained, read_file};

/// Possible paths of a plugin's manifest.
const MANIFESTS: [&str; 2] = [".claude-plugin/plugin.json", "plugin.json"];

/// Default paths of a plugin's server files, if the manifest names none.
const SERVERS: [&str; 2] = ["mcp/.mcp.json", ".mcp.json"];

/// File extensions of bundles; the second is an older one.
const BUNDLES: [&str; 2] = ["mcpb", "dxt"];

/// A folder with servers in it.
struct Folder {
    /// Its path, with links resolved.
    root: PathBuf,
    /// The path as text, because it is inserted into configuration values.
    text: String,
    scope: Scope,
}

/// True if a file that was named is a plugin's folder or a bundle.
pub(crate) fn is_package(file: &ConfigFile) -> bool {
    let named = match file.scope {
        Scope::Flag | Scope::User => true,
        Scope::Managed | Scope::Project => false,
    };
    let bundle = |extension| BUNDLES.contains(&extension);
    let extension = file.path.extension().and_then(|extension| extension.to_str());
    named
        && match file.dialect {
            Some(Dialect::Mcpb) => true,
            None => extension.is_some_and(bundle) || file.path.is_dir(),
            Some(Dialect::Claude | Dialect::Caliban) => file.path.is_dir(),
            Some(
                Dialect::Native
                | Dialect::Avelino
                | Dialect::Zeph
                | Dialect::Llxprt
                | Dialect::Codex
                | Dialect::VsCode
                | Dialect::Cursor
                | Dialect::Goose
                | Dialect::Zed
                | Dialect::OpenCode,
            ) => false,
        }
}

/// Reads the files of a package; the last takes precedence.
pub(crate) fn read(file: &ConfigFile, cache: &Path) -> Result<Vec<SourceFile>, AppError> {
    if !file.exists {
        let message = format!("{} does not exist", file.path.display());
        return Err(AppError::config(message));
    }
    if file.path.is_dir() {
        let folder = Folder::open(&file.path, file.scope)?;
        return folder.files(file.dialect);
    }
    let root = capstan_files::unpack(&file.path, &cache.join("bundles"), BundleLimits::default())
        .map_err(|error| explained(&error, error.hint()))?;
    let folder = Folder::open(&root, file.scope)?;
    // The manifest is shown with the path of the bundle, not of its folder in the cache.
    let shown = file.path.join(bundle::MANIFEST).display().to_string();
    let manifest = folder.bundle()?.ok_or_else(|| nothing_in(&file.path))?;
    Ok(vec![SourceFile { path: shown, ..manifest }])
}

// === impl Folder ===

impl Folder {
    fn open(path: &Path, scope: Scope) -> Result<Self, AppError> {
        let refused = |why: String| {
            let message = format!("cannot use {}: {why}", path.display());
            AppError::config(message)
        };
        let root = path.canonicalize().map_err(|error| refused(error.to_string()))?;
        match root.to_str().map(str::to_owned) {
            Some(text) => Ok(Self { root, text, scope }),
            None => Err(refused("its path is not UTF-8".to_owned())),
        }
    }

    fn files(&self, dialect: Option<Dialect>) -> Result<Vec<SourceFile>, AppError> {
        let told = dialect == Some(Dialect::Mcpb);
        let plugin = if told { Vec::new() } else { self.plugin()? };
        if !plugin.is_empty() {
            return Ok(plugin);
        }
        self.bundle()?.map(|file| vec![file]).ok_or_else(|| nothing_in(&self.root))
    }

    /// The files of a plugin: the server files, then the manifest, whose servers take precedence.
    fn plugin(&self) -> Result<Vec<SourceFile>, AppError> {
        let mut manifest = None;
        for name in MANIFESTS {
            if manifest.is_none() {
                manifest = self.text_of(name)?.map(|text| (name, text));
            }
        }
        let text = manifest.as_ref().map_or("{}", |(_, text)| text);
        let (plugin, named) = packages::plugin(&self.text, text);
        let mut sources: Vec<SourceFile> = Vec::new();
        for name in SERVERS {
            if let Some(text) = self.text_of(name)? {
                sources.push(self.source(name, text, plugin.servers()));
            }
        }
        for name in &named {
            let Some(text) = self.text_of(name)? else {
                let message =
                    format!("the plugin {} names {name}, which does not exist", self.text);
                return Err(AppError::config(message).hint("correct `mcpServers` in its manifest"));
            };
            let source = self.source(name, text, plugin.servers());
            if sources.iter().all(|known| known.path != source.path) {
                sources.push(source);
            }
        }
        sources.extend(manifest.map(|(name, text)| self.source(name, text, plugin)));
        Ok(sources)
    }

    /// The manifest of an unpacked bundle in this folder.
    fn bundle(&self) -> Result<Option<SourceFile>, AppError> {
        let text = self.text_of(bundle::MANIFEST)?;
        Ok(text.map(|text| {
            let plugin = packages::bundle(&self.text, &text);
            self.source(bundle::MANIFEST, text, plugin)
        }))
    }

    fn source(&self, name: &str, text: String, plugin: Plugin) -> SourceFile {
        let name = name.trim_start_matches("./");
        let path = format!("{}/{name}", self.text.trim_end_matches('/'));
        let dialect = Some(match plugin.part {
            PluginPart::Manifest | PluginPart::Servers => Dialect::Claude,
            PluginPart::Bundle => Dialect::Mcpb,
        });
        let file = SourceFile::new(path, self.scope, text);
        SourceFile { dialect, plugin: Some(plugin), ..file }
    }

    /// The text of a file in the folder; a link that leads out of it is refused.
    fn text_of(&self, name: &str) -> Result<Option<String>, AppError> {
        let path = self.root.join(name);
        match path.canonicalize() {
            Ok(real) if !real.starts_with(&self.root) => {
                let message = format!("{} is a link that leaves its plugin", path.display());
                Err(AppError::config(message).hint("replace the link by the file"))
            }
            Ok(_) | Err(_) => read_file(&path),
        }
    }
}

fn nothing_in(path: &Path) -> AppError {
    let message = format!("{} is neither a plugin nor a bundle", path.display());
    AppError::config(message).hint(
        "a plugin has `.claude-plugin/plugin.json` or `.mcp.json`, a bundle has `manifest.json`",
    )
}

//! Plugin folders and bundles: finds the files to load in a package that the user names.
//!
//! Only packages that the user names are read this way. A project cannot bring a plugin or a
//! bundle, because none of the files that are read automatically can name one.

use std::path::{Path, PathBuf};

use capstan_config::{Dialect, Plugin, PluginPart, Scope, SourceFile};
use capstan_import::packages;

use crate::{AppError, ConfigFile, Environment, FileFacts, Files};

/// Possible paths of a plugin's manifest.
const MANIFESTS: [&str; 2] = [".claude-plugin/plugin.json", "plugin.json"];

/// Default paths of a plugin's server files, if the manifest names none.
const SERVERS: [&str; 2] = ["mcp/.mcp.json", ".mcp.json"];

/// File extensions of bundles; the second is an older one.
const BUNDLES: [&str; 2] = ["mcpb", "dxt"];

/// The manifest of a bundle.
const MANIFEST: &str = "manifest.json";

/// A folder with servers in it.
struct Folder<'a> {
    files: &'a dyn Files,
    /// Its path, with links resolved.
    root: PathBuf,
    /// The path as text, because it is inserted into configuration values.
    text: String,
    scope: Scope,
}

/// True if a file that was named is a plugin's folder or a bundle.
pub(super) fn is_package(environment: &Environment, file: &ConfigFile) -> bool {
    let named = match file.scope {
        Scope::Flag | Scope::User => true,
        Scope::Managed | Scope::Project => false,
    };
    let bundle = |extension| BUNDLES.contains(&extension);
    let extension = file.path.extension().and_then(|extension| extension.to_str());
    let is_folder = || is_folder(&*environment.files, &file.path);
    named
        && match file.dialect {
            Some(Dialect::Mcpb) => true,
            None => extension.is_some_and(bundle) || is_folder(),
            Some(Dialect::Claude | Dialect::Caliban) => is_folder(),
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

/// Reads the files of a package; the last takes precedence. Bundles are unpacked below `folder`.
pub(crate) fn read(
    environment: &Environment,
    file: &ConfigFile,
    folder: &Path,
) -> Result<Vec<SourceFile>, AppError> {
    let files = &*environment.files;
    if !file.exists {
        let message = format!("{} does not exist", file.path.display());
        return Err(AppError::config(message));
    }
    if is_folder(files, &file.path) {
        let folder = Folder::open(files, &file.path, file.scope)?;
        return folder.files(file.dialect);
    }
    let root = files.unpack(&file.path, &folder.join("bundles"))?;
    let folder = Folder::open(files, &root, file.scope)?;
    // The manifest is shown with the path of the bundle, not of the folder that it is unpacked in.
    let shown = file.path.join(MANIFEST).display().to_string();
    let manifest = folder.bundle()?.ok_or_else(|| nothing_in(&file.path))?;
    Ok(vec![SourceFile { path: shown, ..manifest }])
}

fn is_folder(files: &dyn Files, path: &Path) -> bool {
    files.facts(path).is_some_and(FileFacts::is_folder)
}

// === impl Folder ===

impl<'a> Folder<'a> {
    fn open(files: &'a dyn Files, path: &Path, scope: Scope) -> Result<Self, AppError> {
        let refused = |why: String| {
            let message = format!("cannot use {}: {why}", path.display());
            AppError::config(message)
        };
        let root = files.real_path(path).map_err(refused)?;
        match root.to_str().map(str::to_owned) {
            Some(text) => Ok(Self { files, root, text, scope }),
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
        let text = self.text_of(MANIFEST)?;
        Ok(text.map(|text| {
            let plugin = packages::bundle(&self.text, &text);
            self.source(MANIFEST, text, plugin)
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
        match self.files.real_path(&path) {
            Ok(real) if !real.starts_with(&self.root) => {
                let message = format!("{} is a link that leaves its plugin", path.display());
                Err(AppError::config(message).hint("replace the link by the file"))
            }
            Ok(_) | Err(_) => self.files.read(&path),
        }
    }
}

fn nothing_in(path: &Path) -> AppError {
    let message = format!("{} is neither a plugin nor a bundle", path.display());
    AppError::config(message).hint(
        "a plugin has `.claude-plugin/plugin.json` or `.mcp.json`, a bundle has `manifest.json`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::fakes::{FakeFiles, configs};

    /// The paths that a package is read from, by its name on the command line.
    fn read(files: &[(&str, &str)], named: &str) -> Result<Vec<String>, AppError> {
        let selection = Selection { config: vec![named.to_owned()], ..Selection::default() };
        let sources = configs(FakeFiles::with(files)).sources(&selection)?;
        Ok(sources.into_iter().map(|source| source.path).collect())
    }

    #[test]
    fn the_manifest_of_a_plugin_takes_precedence_over_its_server_files() {
        let plugin = [
            ("/p/.claude-plugin/plugin.json", r#"{"mcpServers": "./more.json"}"#),
            ("/p/.mcp.json", "{}"),
            ("/p/more.json", "{}"),
        ];
        let expected = ["/p/.mcp.json", "/p/more.json", "/p/.claude-plugin/plugin.json"];
        assert_eq!(read(&plugin, "/p").unwrap(), expected);
    }

    #[test]
    fn a_plugin_that_names_a_missing_file_is_refused() {
        let plugin = [("/p/plugin.json", r#"{"mcpServers": "./more.json"}"#)];
        let error = read(&plugin, "/p").unwrap_err();
        assert!(error.message.contains("more.json, which does not exist"), "{}", error.message);
    }

    #[test]
    fn a_folder_that_is_no_package_and_a_missing_bundle_are_refused() {
        let error = read(&[("/p/x", "")], "/p").unwrap_err();
        assert!(error.message.contains("neither a plugin nor a bundle"), "{}", error.message);
        let error = read(&[], "/p/x.mcpb").unwrap_err();
        assert_eq!(error.message, "/p/x.mcpb does not exist");
    }

    #[test]
    fn a_bundle_is_shown_with_the_path_of_its_archive() {
        let manifest = r#"{"name": "b", "server": {"type": "binary", "entry_point": "x"}}"#;
        let files =
            [("/x.mcpb", ""), ("/home/me/.cache/capstan/bundles/x/manifest.json", manifest)];
        assert_eq!(read(&files, "/x.mcpb").unwrap(), ["/x.mcpb/manifest.json"]);
    }

    #[test]
    fn a_link_that_leads_out_of_a_plugin_is_refused() {
        let files = FakeFiles::with(&[("/p/plugin.json", "{}"), ("/etc/secret", "x")]);
        files.link("/p/.mcp.json", "/etc/secret");
        let selection = Selection { config: vec!["/p".to_owned()], ..Selection::default() };
        let error = configs(files).sources(&selection).unwrap_err();
        assert_eq!(error.message, "/p/.mcp.json is a link that leaves its plugin");
    }
}

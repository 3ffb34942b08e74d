//! The plugin or bundle that a file belongs to.
//!
//! `capstan-import` reads it from the package's manifest.

/// The package that a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Its name; the servers of a plugin are called `plugin:server`, that of a bundle as the
    /// bundle.
    pub name: String,
    /// Its folder, the value of `${CLAUDE_PLUGIN_ROOT}` or `${__dirname}`.
    pub root: String,
    /// The role of the file in it.
    pub part: PluginPart,
    /// The settings that its manifest requests from the user.
    pub settings: Vec<UserSetting>,
}

/// The role of a file in its package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginPart {
    /// The manifest of a plugin, which may name servers itself.
    Manifest,
    /// A file with servers next to the manifest.
    Servers,
    /// The manifest of a bundle, which is one server.
    Bundle,
}

/// A setting that a manifest requests from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSetting {
    /// Its key in the manifest.
    pub key: String,
    /// The type of its values.
    pub kind: SettingKind,
    /// True if the servers need it.
    pub required: bool,
    /// True if it may have several values.
    pub multiple: bool,
    /// True if its values must not be shown.
    pub sensitive: bool,
    /// Its default values.
    pub default: Option<Vec<String>>,
    /// The minimum and the maximum of a number, as they were written.
    pub range: [Option<String>; 2],
}

/// The type of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
}

// === impl Plugin ===

impl Plugin {
    /// Returns the package with the role of a file with servers.
    #[must_use]
    pub fn servers(&self) -> Self {
        Self { part: PluginPart::Servers, ..self.clone() }
    }

    /// Returns the name of the environment variable for one of its settings.
    ///
    /// Two underscores separate the name from the key, so that no package can imitate the variable
    /// of another by splitting its words differently.
    pub fn variable(&self, key: &str) -> String {
        format!("CAPSTAN_{}__{}", shout(&self.name), shout(key))
    }
}

/// Converts a name to capitals, with one underscore for each run of other characters.
fn shout(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_uppercase).collect::<Vec<String>>().join("_")
}

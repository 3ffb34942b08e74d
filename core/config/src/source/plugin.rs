//! The plugin or bundle that a file belongs to.
//!
//! `capstan-import` reads it from the package's manifest.

/// The package that a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Its name; the servers of a plugin are called `plugin:server`, that of a bundle as the
    /// bundle.
    pub name: String,
    /// Its folder, which `${CLAUDE_PLUGIN_ROOT}` or `${__dirname}` stands for.
    pub root: String,
    /// What the file is to it.
    pub part: PluginPart,
    /// What its manifest wants to know from the user.
    pub settings: Vec<UserSetting>,
}

/// What a file is to its package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginPart {
    /// The manifest of a plugin, which may name servers itself.
    Manifest,
    /// A file with servers beside it.
    Servers,
    /// The manifest of a bundle, which is one server.
    Bundle,
}

/// Something that a manifest wants to know from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSetting {
    /// What the manifest calls it.
    pub key: String,
    /// The type of its values.
    pub kind: SettingKind,
    /// Whether the servers need it.
    pub required: bool,
    /// Whether it may have several values.
    pub multiple: bool,
    /// Whether its values must not be shown.
    pub sensitive: bool,
    /// What it is unless the user says otherwise.
    pub default: Option<Vec<String>>,
    /// The least and the most that a number may be, as they were written.
    pub range: [Option<String>; 2],
}

/// What the values of a setting are.
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
    /// The same package, for a file with servers.
    #[must_use]
    pub fn servers(&self) -> Self {
        Self { part: PluginPart::Servers, ..self.clone() }
    }

    /// The environment variable that gives one of its settings. Two underscores part the name
    /// from the key, so that no package can pass for another by where it puts its words.
    pub fn variable(&self, key: &str) -> String {
        format!("CAPSTAN_{}__{}", shout(&self.name), shout(key))
    }
}

/// A name as it stands in the name of a variable: in capitals, and one underscore for whatever
/// else there is.
fn shout(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_uppercase).collect::<Vec<String>>().join("_")
}

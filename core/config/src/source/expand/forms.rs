//! The notations of variables, by program.
//!
//! Notations are never mixed: a form of one program is plain text to another.

/// The set of forms that a file may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forms {
    /// `${VAR}` and `${VAR:-default}`; the default replaces an empty variable too.
    #[default]
    Braces,
    /// Like `Braces`, but a variable that is set and empty stays empty.
    BracesKeepingEmpty,
    /// Like `Braces`, and `$VAR` and `%VAR%`.
    Shell,
    /// `${VAR}` with or without spaces, and `$VAR`; no defaults.
    Spaced,
    /// `${env:VAR}`, `${input:ID}`, `${userHome}`, `${workspaceFolder}` and the like.
    Editor,
    /// `{env:VAR}`.
    Curly,
    /// Like `Braces`, and `${user_config.KEY}`.
    Plugin,
    /// `${user_config.KEY}`, `${__dirname}`, `${HOME}` and the like, and no variables.
    Bundle,
    /// No forms; every text is literal.
    Nothing,
}

/// One form found in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'t> {
    /// A variable, which must be set.
    Variable(&'t str),
    /// A variable with its default.
    Default(&'t str, &'t str),
    /// A variable that is replaced only if it is set.
    IfSet(&'t str),
    /// A predefined name, for example of a folder.
    Place(&'t str),
    /// An input that the user must supply.
    Input(&'t str),
    /// The content of a file.
    File(&'t str),
    /// A form of another program.
    Foreign(&'t str),
    /// A `${` without an end.
    Unclosed,
}

/// A form, and the text after it.
pub type Taken<'t> = (Form<'t>, &'t str);

const PLACES: [&str; 5] =
    ["userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/"];

const BUNDLE_PLACES: [&str; 7] =
    ["__dirname", "HOME", "DESKTOP", "DOCUMENTS", "DOWNLOADS", "pathSeparator", "/"];

/// The prefix of the names of settings.
const SETTING: &str = "user_config.";

// === impl Forms ===

impl Forms {
    /// Returns the characters that a form can begin with.
    pub fn marks(self) -> &'static [char] {
        match self {
            Self::Braces
            | Self::BracesKeepingEmpty
            | Self::Spaced
            | Self::Editor
            | Self::Plugin
            | Self::Bundle
            | Self::Nothing => &['$'],
            Self::Shell => &['$', '%'],
            Self::Curly => &['$', '{'],
        }
    }

    /// True if an empty variable with a default counts as unset.
    pub fn empty_is_unset(self) -> bool {
        match self {
            Self::Braces | Self::Shell | Self::Plugin => true,
            Self::BracesKeepingEmpty
            | Self::Spaced
            | Self::Editor
            | Self::Curly
            | Self::Bundle
            | Self::Nothing => false,
        }
    }

    /// Returns a description of the forms, for a message.
    pub fn known(self) -> &'static str {
        match self {
            Self::Braces | Self::BracesKeepingEmpty => {
                "this file supports `${VAR}` and `${VAR:-default}`"
            }
            Self::Shell => "this file supports `$VAR`, `${VAR}` and `${VAR:-default}`",
            Self::Spaced => "this file supports `${VAR}` and `$VAR`",
            Self::Editor => "this file supports `${env:VAR}`",
            Self::Curly => "this file supports `{env:VAR}`",
            Self::Plugin => {
                "this file supports `${VAR}`, `${VAR:-default}` and `${user_config.KEY}`"
            }
            Self::Bundle => "a bundle supports `${user_config.KEY}`, `${__dirname}` and `${HOME}`",
            Self::Nothing => "this file has no variables; write the value itself",
        }
    }

    /// Returns the remedy for a variable that is not set.
    pub fn remedy(self, name: &str) -> String {
        match self {
            Self::Braces | Self::BracesKeepingEmpty | Self::Shell | Self::Plugin => {
                format!("set it: `export {name}=…`, or give a default: `${{{name}:-default}}`")
            }
            Self::Spaced | Self::Editor | Self::Curly | Self::Bundle | Self::Nothing => {
                format!("set it: `export {name}=…`")
            }
        }
    }

    /// Returns a description of an input that the file does not declare, and the remedy.
    pub fn undeclared(self, id: &str) -> (String, String) {
        match self {
            Self::Plugin | Self::Bundle => (
                format!("the setting `{id}`, which the manifest does not declare"),
                format!("declare `{id}` among the manifest's settings"),
            ),
            Self::Braces
            | Self::BracesKeepingEmpty
            | Self::Shell
            | Self::Spaced
            | Self::Editor
            | Self::Curly
            | Self::Nothing => (
                format!("the input `{id}`"),
                "Capstan does not prompt for inputs; give it a `default`, or write `${env:NAME}` instead"
                    .to_owned(),
            ),
        }
    }

    /// Returns the form that a text begins with, if any.
    pub fn take(self, text: &str) -> Option<Taken<'_>> {
        if let Some(after) = text.strip_prefix("${") {
            let Some((inside, behind)) = split_at_end(after) else {
                return self.has_braces().then_some((Form::Unclosed, after));
            };
            return self.inside(inside).map(|form| (form, behind));
        }
        if let Some(after) = text.strip_prefix('$') {
            let bare = matches!(self, Self::Shell | Self::Spaced);
            let (name, behind) = after.split_at_checked(name_len(after))?;
            return (bare && !name.is_empty()).then_some((Form::Variable(name), behind));
        }
        if let Some(after) = text.strip_prefix('%') {
            let (name, behind) = after.split_once('%')?;
            return is_name(name).then_some((Form::IfSet(name), behind));
        }
        let (inside, behind) = text.strip_prefix('{')?.split_once('}')?;
        match inside.split_once(':') {
            Some(("env", name)) if is_name(name) => Some((Form::Variable(name), behind)),
            Some(("file", path)) => Some((Form::File(path), behind)),
            Some(_) | None => None,
        }
    }

    /// Interprets the text between `${` and `}`.
    fn inside(self, inside: &str) -> Option<Form<'_>> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let editor = inside.split_once(':').filter(|(kind, _)| ["env", "input"].contains(kind));
        let place = PLACES.contains(&inside);
        let setting = inside.strip_prefix(SETTING).filter(|key| !key.is_empty());
        match self {
            Self::Plugin | Self::Bundle if let Some(key) = setting => Some(Form::Input(key)),
            Self::Bundle if BUNDLE_PLACES.contains(&inside) => Some(Form::Place(inside)),
            Self::Braces | Self::BracesKeepingEmpty | Self::Shell | Self::Plugin => match default {
                Some(default) if is_name(name) => Some(Form::Default(name, default)),
                None if is_name(name) => Some(Form::Variable(name)),
                Some(_) | None => editor.is_some().then_some(Form::Foreign(inside)),
            },
            Self::Spaced if is_name(inside.trim()) => Some(Form::Variable(inside.trim())),
            Self::Spaced => editor.is_some().then_some(Form::Foreign(inside)),
            Self::Editor => match editor {
                Some(("env", name)) if is_name(name) => Some(Form::Variable(name)),
                Some((_, id)) => Some(Form::Input(id)),
                None if place => Some(Form::Place(inside)),
                None => is_name(name).then_some(Form::Foreign(inside)),
            },
            Self::Curly | Self::Bundle | Self::Nothing => {
                (is_name(name) || editor.is_some()).then_some(Form::Foreign(inside))
            }
        }
    }

    fn has_braces(self) -> bool {
        match self {
            Self::Braces | Self::BracesKeepingEmpty | Self::Shell | Self::Spaced | Self::Plugin => {
                true
            }
            Self::Editor | Self::Curly | Self::Bundle | Self::Nothing => false,
        }
    }
}

/// Splits at the brace that closes a form; a form nested in its default has a brace of its own.
fn split_at_end(after: &str) -> Option<(&str, &str)> {
    let mut open = 0_usize;
    let mut previous = ' ';
    for (at, c) in after.char_indices() {
        match c {
            '{' if previous == '$' => open += 1,
            '}' if open == 0 => return Some((after.get(..at)?, after.get(at + 1..)?)),
            '}' => open -= 1,
            _ => {}
        }
        previous = c;
    }
    None
}

/// True if a text is the name of a variable.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && name_len(text) == text.len()
}

/// The length in bytes of the variable name at the beginning of a text.
fn name_len(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count()
}

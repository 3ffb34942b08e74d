//! Files that are named explicitly, in addition to those that are found.

use std::path::{Path, PathBuf};

use capstan_app::ConfigFile;
use capstan_config::{Dialect, Scope};

/// Removes found files that are also named explicitly, so that each is read once, as named.
pub(crate) fn without_repeats(mut files: Vec<ConfigFile>) -> Vec<ConfigFile> {
    let whole = |file: &ConfigFile| file.path.canonicalize().ok();
    let flags = files.iter().filter(|file| file.scope == Scope::Flag);
    let named: Vec<PathBuf> = flags.filter_map(whole).collect();
    files.retain(|file| match file.scope {
        Scope::Managed | Scope::Flag => true,
        Scope::Project | Scope::User => whole(file).is_none_or(|path| !named.contains(&path)),
    });
    files
}

/// The hint for `WORD:FILE` where no such file exists: `WORD` may be a misspelt dialect.
pub(crate) fn unknown_dialect(path: &Path, here: &Path) -> Option<String> {
    let (word, file) = path.strip_prefix(here).unwrap_or(path).to_str()?.split_once(':')?;
    let is_word = !word.is_empty() && !word.contains('/') && !file.is_empty();
    let unknown = word.parse::<Dialect>().err()?;
    is_word.then(|| unknown.to_string())
}

//! The environment that the program was started in: variables, folders and files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_config::{Loaded, SourceFile, Surroundings};
use capstan_import::AllDialects;

use crate::{AppError, Files};

/// Entries that mark a folder as a project.
const PROJECT_SIGNS: [&str; 3] = [".capstan", ".git", ".mcp.json"];

/// The name of the program.
const PROGRAM: &str = "capstan";

/// Variables, folders and files of the machine and the user that the program runs for.
///
/// The binary reads variables and folders once, at startup.
pub struct Environment {
    /// The environment variables. A configuration cannot refer to others than these, in UTF-8.
    pub variables: BTreeMap<String, String>,
    /// The current folder at startup.
    pub current_folder: PathBuf,
    /// The user's home folder.
    pub home: PathBuf,
    /// The configuration folder that all programs share.
    pub shared_config: PathBuf,
    /// Our configuration folder.
    pub config: PathBuf,
    /// Our folder for state that must be kept: the audit log and approvals.
    pub state: PathBuf,
    /// Our folder for data that can be recreated.
    pub cache: PathBuf,
    /// Our folder for data that users create.
    pub data: PathBuf,
    /// The file of the running program, or the reason why it is not known.
    pub program: Result<PathBuf, String>,
    /// The files of the machine.
    pub files: Arc<dyn Files>,
}

// === impl Environment ===

impl Environment {
    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// The value of a variable that is set and not empty.
    pub fn filled_variable(&self, name: &str) -> Option<String> {
        self.variable(name).filter(|value| !value.is_empty())
    }

    /// The current project: the nearest folder upwards that looks like one.
    ///
    /// The home folder is never a project, even if it is a git repository.
    pub fn project(&self) -> Option<PathBuf> {
        let exists = |path: PathBuf| self.files.facts(&path).is_some();
        let signs = |folder: &Path| PROJECT_SIGNS.iter().any(|sign| exists(folder.join(sign)));
        let inside = self.current_folder.ancestors().take_while(|folder| **folder != *self.home);
        inside.into_iter().find(|folder| signs(folder)).map(Path::to_owned)
    }

    /// The root of the workspace: the project, or the current folder.
    pub fn workspace(&self) -> PathBuf {
        self.project().unwrap_or_else(|| self.current_folder.clone())
    }

    /// Merges sources into a configuration, with the variables of this environment.
    pub fn load(&self, sources: &[SourceFile]) -> Loaded {
        self.load_with(sources, &|name| self.variable(name))
    }

    /// Merges sources into a configuration that takes variables from `variable`.
    pub fn load_with(
        &self,
        sources: &[SourceFile],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Loaded {
        let workspace = self.workspace();
        let around = Surroundings { variable, project_dir: &workspace.to_string_lossy() };
        capstan_config::load(sources, &around, &AllDialects)
    }

    /// The file of the running program.
    ///
    /// # Errors
    /// If it is not known.
    pub fn program(&self) -> Result<&Path, AppError> {
        let unknown = |error: &String| {
            AppError::internal(format!(
                "the path of the capstan program cannot be determined: {error}"
            ))
        };
        self.program.as_deref().map_err(unknown)
    }

    /// The command that starts this program again, from the first word of the command line:
    /// `capstan`, a path, or `cargo run --`.
    pub fn typed_command(&self, first: &str) -> String {
        match first {
            "" => PROGRAM.to_owned(),
            // `cargo run` starts the program by a path that the user did not type.
            _ if self.variable("CARGO_PKG_NAME").as_deref() == Some(PROGRAM) => {
                "cargo run --".to_owned()
            }
            typed => shell_word(typed.to_owned()),
        }
    }

    /// The full path by which other programs start this one.
    ///
    /// # Errors
    /// If the path is not known or is not UTF-8.
    pub fn own_path(&self) -> Result<String, AppError> {
        let own = self.program()?;
        // A name in `PATH` survives updates; the real path may not.
        let whole = self.files.real_path(own).ok();
        let is_own = |named: &PathBuf| {
            whole.is_some() && named.is_absolute() && self.files.real_path(named).ok() == whole
        };
        let path = self.named_in_path().find(is_own).unwrap_or_else(|| own.to_owned());
        path.to_str().map(str::to_owned).ok_or_else(|| {
            AppError::usage(format!(
                "the path of the capstan program is not UTF-8: {}",
                path.display()
            ))
            .hint("move the program to a folder with a UTF-8 name")
        })
    }

    /// The paths at which a shell looks for this program.
    fn named_in_path(&self) -> impl Iterator<Item = PathBuf> {
        let path = self.variable("PATH").unwrap_or_default();
        let named = |folder: &str| Path::new(folder).join(PROGRAM);
        path.split(':').map(named).collect::<Vec<_>>().into_iter()
    }
}

/// Quotes a word for a shell, if needed.
fn shell_word(word: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:".contains(c);
    if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use crate::fakes::{FakeFiles, environment};

    #[test]
    fn the_project_is_the_nearest_marked_folder_below_home() {
        let at = |folder: &str| {
            let files = FakeFiles::with(&[
                ("/home/me/.git/HEAD", ""),
                ("/home/me/a/.mcp.json", "{}"),
                ("/home/me/a/b/.capstan/config.toml", ""),
            ]);
            let mut environment = environment(files);
            environment.current_folder = folder.into();
            environment.project()
        };
        assert_eq!(at("/home/me/a/b/c/d"), Some("/home/me/a/b".into()));
        assert_eq!(at("/home/me/a/x"), Some("/home/me/a".into()));
        assert_eq!(at("/home/me/x"), None, "the home folder is no project");
    }

    #[test]
    fn the_command_is_the_one_that_was_typed() {
        let mut here = environment(FakeFiles::default());
        for (typed, expected) in [
            ("capstan", "capstan"),
            ("./target/capstan", "./target/capstan"),
            ("/srv/a b/capstan", "'/srv/a b/capstan'"),
            ("", "capstan"),
        ] {
            assert_eq!(here.typed_command(typed), expected);
        }
        here.variables.insert("CARGO_PKG_NAME".to_owned(), "capstan".to_owned());
        assert_eq!(here.typed_command("target/debug/capstan"), "cargo run --");
        here.program = Err("gone".to_owned());
        assert_eq!(
            here.own_path().unwrap_err().message,
            "the path of the capstan program cannot be determined: gone"
        );
    }
}

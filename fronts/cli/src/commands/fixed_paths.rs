//! Paths of a new server that must mean the same from every folder.
//!
//! A file of the user applies everywhere, so a relative path in it would lead to another program or
//! folder from each place. Paths in a project's file stay relative: the project may be elsewhere for
//! others.

use std::path::Path;

use capstan_app::{ConfigFile, FileFacts};
use capstan_config::Scope;
use capstan_config::edit::{NewProgram, NewServer, NewTarget};

use crate::context::Context;

/// The changes that were made to a new server, for the user.
#[derive(Default)]
pub(super) struct Changes {
    /// The words as typed, with the paths that are written instead.
    made_absolute: Vec<(String, String)>,
    /// Words that look like paths from here, and lead to nothing.
    unknown: Vec<String>,
}

/// Replaces paths from here by absolute ones, unless the entry is for a project's file.
pub(super) fn fix(context: &Context, server: &mut NewServer, file: &ConfigFile) -> Changes {
    let mut changes = Changes::default();
    let (NewTarget::Stdio(program) | NewTarget::Cli(program)) = &mut server.target else {
        return changes;
    };
    if file.scope != Scope::Project || context.is_attached() {
        let environment = &context.app.configs.environment;
        let facts = |path: &Path| environment.files.facts(path);
        changes.fix_program(program, &environment.current_folder, &facts);
    }
    changes
}

// === impl Changes ===

impl Changes {
    fn fix_program(
        &mut self,
        program: &mut NewProgram,
        here: &Path,
        facts: &dyn Fn(&Path) -> Option<FileFacts>,
    ) {
        let command = program.command.as_str();
        let is_path = command.contains('/') && !command.starts_with(['/', '~']);
        if is_path && !command.contains("${") {
            let path = joined(here, command);
            self.made_absolute.push((command.to_owned(), path.clone()));
            program.command = path;
        }
        for argument in &mut program.args {
            if argument.starts_with(['-', '/', '~']) || argument.contains("${") {
                continue;
            }
            let path = joined(here, argument);
            let found = facts(Path::new(&path));
            let is_from_here = matches!(argument.as_str(), "." | "..")
                || ["./", "../"].iter().any(|start| argument.starts_with(start));
            match found {
                // A script, which the program would look for in its own folder.
                Some(facts) if is_from_here || facts.is_file() => {
                    self.made_absolute.push((argument.clone(), path.clone()));
                    *argument = path;
                }
                None if is_from_here => self.unknown.push(argument.clone()),
                Some(_) | None => {}
            }
        }
    }

    /// Tells the user what is written instead of the typed words.
    pub(super) fn tell(&self, context: &Context) {
        for (typed, written) in &self.made_absolute {
            context.print.note(&format!("`{typed}` is written as `{written}`"));
        }
        for typed in &self.unknown {
            context.print.warning(&format!(
                "`{typed}` does not exist here, and is another path from each folder"
            ));
        }
    }
}

/// A path from a folder, without its `.` and `..`.
fn joined(here: &Path, path: &str) -> String {
    let mut whole = here.to_path_buf();
    for part in Path::new(path).components() {
        match part {
            std::path::Component::ParentDir => {
                whole.pop();
            }
            std::path::Component::CurDir => {}
            std::path::Component::Normal(_)
            | std::path::Component::RootDir
            | std::path::Component::Prefix(_) => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_from_here_loses_its_dots() {
        for (path, expected) in [
            (".", "/a/b"),
            ("..", "/a"),
            ("./x", "/a/b/x"),
            ("../x/./y", "/a/x/y"),
            ("x/y", "/a/b/x/y"),
        ] {
            assert_eq!(joined(Path::new("/a/b"), path), expected, "{path}");
        }
    }
}

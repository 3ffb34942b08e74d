//! Examples of the documents of other programs, as they stand there, and what they mean here.
//! The names begin with the row of the table of examples that they belong to.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod caliban;
mod avelino;
mod zeph;
mod llxprt;
mod rules;

use capstan_config::{
    Kind, Loaded, Problem, Program, Remote, Scope, ServerEntry, Severity, SourceFile, Surroundings,
    load,
};
use capstan_import::AllDialects;
use capstan_model::ServerName;

pub(crate) const NO_STRINGS: [&str; 0] = [];

fn variable(name: &str) -> Option<String> {
    match name {
        "LINEAR_API_KEY" | "NOTION_TOKEN" | "MY_CLIENT_ID" => Some(format!("value of {name}")),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

pub(crate) fn load_files(files: &[SourceFile]) -> Loaded {
    load(files, &Surroundings { variable: &variable, project_dir: "/project" }, &AllDialects)
}

/// A file of the user at some place.
pub(crate) fn at(path: &str, text: &str) -> Loaded {
    load_files(&[SourceFile::new(path, Scope::User, text)])
}

pub(crate) fn caliban(text: &str) -> Loaded {
    at(".caliban/settings.toml", text)
}

pub(crate) fn avelino(text: &str) -> Loaded {
    at("/home/me/.config/mcp/servers.json", text)
}

pub(crate) fn zeph(text: &str) -> Loaded {
    at("/home/me/.config/zeph/config.toml", text)
}

pub(crate) fn llxprt(text: &str) -> Loaded {
    at("/home/me/.llxprt/settings.json", text)
}

pub(crate) trait Ask {
    fn entry(&self, name: &str) -> &ServerEntry;
    fn program(&self, name: &str) -> &Program;
    fn remote(&self, name: &str) -> (&'static str, &Remote);
    fn of(&self, severity: Severity) -> Vec<&Problem>;
}

impl Ask for Loaded {
    #[track_caller]
    fn entry(&self, name: &str) -> &ServerEntry {
        self.config.servers.get(&name.parse::<ServerName>().unwrap()).unwrap()
    }

    #[track_caller]
    fn program(&self, name: &str) -> &Program {
        let kind = &self.entry(name).status.as_ref().unwrap().kind;
        let program = match kind {
            Kind::Stdio(program) => Some(program),
            Kind::Cli(cli) => Some(&cli.program),
            Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_) => None,
        };
        program.unwrap()
    }

    #[track_caller]
    fn remote(&self, name: &str) -> (&'static str, &Remote) {
        let kind = &self.entry(name).status.as_ref().unwrap().kind;
        let remote = match kind {
            Kind::Http(remote) | Kind::Sse(remote) => Some(remote),
            Kind::Stdio(_) | Kind::Cli(_) | Kind::OpenApi(_) => None,
        };
        (kind.as_str(), remote.unwrap())
    }

    fn of(&self, severity: Severity) -> Vec<&Problem> {
        self.problems.iter().filter(|problem| problem.severity == severity).collect()
    }
}

//! Which of the files that were read count, and what is wrong with them.

use capstan_app::{AppError, Setup};
use capstan_config::source::DYNAMIC;
use capstan_config::{Loaded, Problem, Scope, Severity, SourceFile};

use super::{Face, Live};
use crate::assemble::Approve;
use crate::host::approve;

impl Live {
    /// The files as they count: a project file that has changed and that nobody has approved stays
    /// as it was approved. With the files of which that is so.
    pub(super) fn settled(&self, files: Vec<SourceFile>) -> (Vec<SourceFile>, Vec<String>) {
        if approve(&self.selection) == Approve::All {
            return (files, Vec::new());
        }
        let (held, before) = (unapproved(&files), self.setup());
        let settle = |file: SourceFile| {
            let known = before.files.iter().find(|known| known.path == file.path);
            let known = known.filter(|known| known.approved && held.contains(&known.path));
            known.cloned().unwrap_or(file)
        };
        (files.into_iter().map(settle).collect(), held.clone())
    }

    /// The files that are in force.
    pub(super) fn files(&self) -> Vec<SourceFile> {
        let setup = self.setup();
        let is_file = |file: &&SourceFile| !file.path.starts_with(DYNAMIC);
        setup.files.iter().filter(is_file).cloned().collect()
    }

    /// Notes which files wait for an approval, and tells of those that are new.
    pub(super) fn hold(&self, held: &[String]) {
        let before = std::mem::replace(&mut self.now().held, held.to_vec());
        for file in held.iter().filter(|file| !before.contains(file)) {
            tracing::warn!(
                "{file} has changed and is not approved, so nothing of it is used; read it and run \
                 `capstan trust`"
            );
        }
    }

    /// Whether a file waits for an approval.
    pub(super) fn awaits_approval(&self) -> bool {
        !self.now().held.is_empty()
    }
}

/// The project files whose text nobody has approved.
pub(super) fn unapproved(files: &[SourceFile]) -> Vec<String> {
    let waits = |file: &&SourceFile| !file.approved && file.scope == Scope::Project;
    files.iter().filter(waits).map(|file| file.path.clone()).collect()
}

/// Whether these files say the same.
pub(super) fn same(files: &[SourceFile], others: &[SourceFile]) -> bool {
    let one = |file: &SourceFile, other: &SourceFile| {
        (&file.path, &file.text, file.scope, file.approved)
            == (&other.path, &other.text, other.scope, other.approved)
    };
    files.len() == others.len() && files.iter().zip(others).all(|(file, other)| one(file, other))
}

/// Refuses a configuration that concerns everything, or that is worse than the one before.
pub(super) fn check(setup: &Setup, before: &Setup, face: Face) -> Result<(), AppError> {
    let loaded = &setup.loaded;
    let known = |problem: &&Problem, known: &[Problem]| {
        known.iter().any(|known| known.message == problem.message && known.key == problem.key)
    };
    let errors = loaded.problems.iter().filter(|problem| problem.severity == Severity::Error);
    // A server whose variable is not set fails alone, as it does at the start: it must not keep a
    // rule from counting.
    let fails_alone = |one: &&Problem| one.is_unset || known(one, &before.loaded.problems);
    let new = errors.filter(|one| one.server.is_none() || !fails_alone(one));
    // What the gateway cannot do it must not seem to do.
    let asked: &[Problem] = match face {
        Face::Stdio => &[],
        Face::Http => &loaded.gateway,
    };
    let asked = asked.iter().filter(|one| !known(one, &before.loaded.gateway));
    let heard = |problem: &&Problem| {
        let place = problem.place.as_ref();
        let file = place.and_then(|place| setup.files.iter().find(|f| f.path == place.file));
        file.is_none_or(|file| file.approved)
    };
    let wrong: Vec<Problem> = new.chain(asked).filter(heard).cloned().collect();
    if wrong.is_empty() { Ok(()) } else { Err(AppError::problems(wrong, setup.files.to_vec())) }
}

/// Tells what is odd in a configuration that was not before, and which files are gone.
pub(super) fn tell(setup: &Setup, before: &Setup) {
    let is_there = |file: &SourceFile| setup.files.iter().any(|known| known.path == file.path);
    let is_file = |file: &&SourceFile| !file.path.starts_with(DYNAMIC);
    for file in before.files.iter().filter(is_file).filter(|file| !is_there(file)) {
        let (gone, stay) = (names_of(before, Some(&file.path)), names_of(setup, None));
        tracing::warn!(
            "{} is gone, and with it what it said (servers: {gone}); servers that are \
             left: {stay}",
            file.path
        );
    }
    let known = &before.loaded.problems;
    for problem in setup.loaded.problems.iter().filter(|problem| !known.contains(problem)) {
        let help = problem.help.as_deref().unwrap_or_default();
        tracing::warn!(help, "{problem}");
    }
}

/// Tells which keys need a new start, when those are others than before.
pub(super) fn tell_stale(keys: &[&str], before: &[&str]) {
    if !keys.is_empty() && keys != before {
        let keys = keys.join("`, `");
        tracing::warn!("`{keys}` changed; that counts when the gateway is started again");
    }
}

/// The servers of a file, or all of them, in words.
fn names_of(setup: &Setup, file: Option<&str>) -> String {
    let servers = setup.loaded.config.servers.values();
    let servers = servers.filter(|entry| file.is_none_or(|file| entry.origin.file == file));
    let names: Vec<&str> = servers.map(|entry| entry.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The keys of which the gateway takes no notice while it runs, as far as they have changed.
pub(super) fn needs_restart(before: &Loaded, now: &Loaded) -> Vec<&'static str> {
    let (old, new) = (&before.config.gateway, &now.config.gateway);
    let (old_log, new_log) = (&before.config.audit, &now.config.audit);
    let log = |log: &capstan_config::Audit| capstan_config::Audit {
        arguments: capstan_config::AuditArguments::default(),
        ..log.clone()
    };
    [
        ("gateway.listen", old.listen != new.listen),
        ("gateway.metrics_listen", old.metrics_listen != new.metrics_listen),
        ("gateway.public_url", old.public_url != new.public_url),
        ("gateway.allowed_hosts", old.allowed_hosts != new.allowed_hosts),
        ("gateway.allowed_origins", old.allowed_origins != new.allowed_origins),
        ("gateway.tls_cert", old.tls_cert != new.tls_cert),
        ("gateway.tls_key", old.tls_key != new.tls_key),
        ("gateway.limits", old.limits != new.limits),
        ("audit", log(old_log) != log(new_log)),
    ]
    .into_iter()
    .filter_map(|(key, changed)| changed.then_some(key))
    .collect()
}

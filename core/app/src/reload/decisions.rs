//! Decides which of the files that a reload read are used, and whether the result may take effect.

use capstan_config::source::DYNAMIC;
use capstan_config::{Audit, AuditArguments, Loaded, Problem, Scope, Severity, SourceFile};

use super::Transport;
use crate::{AppError, Setup};

/// The files to use: a project file that has changed without approval keeps its approved text.
pub(super) fn settled(files: Vec<SourceFile>, before: &Setup) -> Vec<SourceFile> {
    let held = unapproved(&files);
    let settle = |file: SourceFile| {
        let known = before.files.iter().find(|known| known.path == file.path);
        let known = known.filter(|known| known.approved && held.contains(&known.path));
        known.cloned().unwrap_or(file)
    };
    files.into_iter().map(settle).collect()
}

/// The files of a setup, without servers that were added at run time.
pub(super) fn files(setup: &Setup) -> Vec<SourceFile> {
    let is_file = |file: &&SourceFile| !file.path.starts_with(DYNAMIC);
    setup.files.iter().filter(is_file).cloned().collect()
}

/// The paths of project files whose text is not approved.
pub(super) fn unapproved(files: &[SourceFile]) -> Vec<String> {
    let waits = |file: &&SourceFile| !file.approved && file.scope == Scope::Project;
    files.iter().filter(waits).map(|file| file.path.clone()).collect()
}

/// True if these files have the same text, scope and approval.
pub(super) fn same(files: &[SourceFile], others: &[SourceFile]) -> bool {
    let one = |file: &SourceFile, other: &SourceFile| {
        (&file.path, &file.text, file.scope, file.approved)
            == (&other.path, &other.text, other.scope, other.approved)
    };
    files.len() == others.len() && files.iter().zip(others).all(|(file, other)| one(file, other))
}

/// Refuses a configuration with an error that affects everything, or with a new error.
///
/// # Errors
/// The errors.
pub(super) fn check(setup: &Setup, before: &Setup, transport: Transport) -> Result<(), AppError> {
    let loaded = &setup.loaded;
    let known = |problem: &&Problem, known: &[Problem]| {
        known.iter().any(|known| known.message == problem.message && known.key == problem.key)
    };
    let errors = loaded.problems.iter().filter(|problem| problem.severity == Severity::Error);
    // A server whose variable is not set fails alone, as it does at startup; it must not keep new
    // rules from taking effect.
    let fails_alone = |one: &&Problem| one.is_unset || known(one, &before.loaded.problems);
    let new = errors.filter(|one| one.server.is_none() || !fails_alone(one));
    // A key that this gateway cannot honour must not appear to work.
    let asked: &[Problem] = match transport {
        Transport::Stdio => &[],
        Transport::Http => &loaded.gateway,
    };
    let asked = asked.iter().filter(|one| !known(one, &before.loaded.gateway));
    let wrong: Vec<Problem> =
        new.chain(asked).filter(|problem| setup.counts(problem)).cloned().collect();
    if wrong.is_empty() { Ok(()) } else { Err(AppError::problems(wrong, setup.files.to_vec())) }
}

/// Warns about new problems and about files that no longer exist.
pub(super) fn warn_changes(setup: &Setup, before: &Setup) {
    let is_there = |file: &SourceFile| setup.files.iter().any(|known| known.path == file.path);
    let is_file = |file: &&SourceFile| !file.path.starts_with(DYNAMIC);
    for file in before.files.iter().filter(is_file).filter(|file| !is_there(file)) {
        let (gone, stay) = (names_of(before, Some(&file.path)), names_of(setup, None));
        tracing::warn!(
            "{} was removed, and with it its servers ({gone}); remaining servers: \
             {stay}",
            file.path
        );
    }
    let known = &before.loaded.problems;
    for problem in setup.loaded.problems.iter().filter(|problem| !known.contains(problem)) {
        let help = problem.help.as_deref().unwrap_or_default();
        tracing::warn!(help, "{problem}");
    }
}

/// Warns about keys that take effect after a restart, if they differ from those before.
pub(super) fn warn_restart(keys: &[&str], before: &[&str]) {
    if !keys.is_empty() && keys != before {
        let keys = keys.join("`, `");
        tracing::warn!("`{keys}` changed; restart the gateway to apply it");
    }
}

/// The names of a file's servers, or of all servers, joined by commas.
fn names_of(setup: &Setup, file: Option<&str>) -> String {
    let servers = setup.loaded.config.servers.values();
    let servers = servers.filter(|entry| file.is_none_or(|file| entry.origin.file == file));
    let names: Vec<&str> = servers.map(|entry| entry.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The changed keys that a gateway reads only at startup.
pub(super) fn needs_restart(before: &Loaded, now: &Loaded) -> Vec<&'static str> {
    let (old, new) = (&before.config.gateway, &now.config.gateway);
    let (old_log, new_log) = (&before.config.audit, &now.config.audit);
    let log = |log: &Audit| Audit { arguments: AuditArguments::default(), ..log.clone() };
    [
        ("gateway.listen", old.listen != new.listen),
        ("gateway.metrics_listen", old.metrics_listen != new.metrics_listen),
        ("gateway.auth", old.auth != new.auth),
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

//! The rules for files, by Landlock, and for signals to processes outside.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

use super::base::{DEVICES, SYSTEM};

/// The version of Landlock that is needed: the first one that also confines signals.
const NEEDED: ABI = ABI::V6;

/// The message if the kernel does not have it.
const MISSING: &str = "this kernel cannot confine files and signals: Landlock with ABI 6 is needed \
                       (Linux 6.12, with `landlock` in its list of security modules)";

/// Restricts this process, and all that it will start, to these files.
pub(super) fn apply(read: &[PathBuf], write: &[PathBuf]) -> io::Result<()> {
    let reading = AccessFs::from_read(NEEDED);
    // No device files: a sandbox that could make them could read disks.
    let writing = AccessFs::from_all(NEEDED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = created()?
        .add_rules(path_beneath_rules(SYSTEM, reading))
        .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES, device)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(read, reading)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(write, writing)))
        .map_err(|error| {
            io::Error::other(format!("the rules for files cannot be made: {error}"))
        })?;
    let status = rules
        .restrict_self()
        .map_err(|error| io::Error::other(format!("the rules for files cannot be set: {error}")))?;
    if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
        Ok(())
    } else {
        Err(io::Error::other(MISSING))
    }
}

/// An empty set of rules that forbids everything.
fn created() -> io::Result<RulesetCreated> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .and_then(|rules| rules.scope(Scope::from_all(NEEDED)))
        .and_then(Ruleset::create)
        .map_err(|_| io::Error::other(MISSING))
}

//! Precedence between the files of one program.

use crate::read::Part;
use crate::read::file::ShownServer;
use crate::show::Shown;
use crate::source::Dialect;
use crate::source::expand::join;
use crate::source::problem::Problem;
use crate::source::reader::{FileRole, SwitchedOff};
use crate::source::{Scope, SourceFile};

/// Drops the files that others replace, and disables servers that another file disables.
pub(crate) fn settle(parts: &mut [(&SourceFile, Part)]) {
    let settings = |(_, part): &(&SourceFile, Part)| part.conventions.role == FileRole::Settings;
    if let Some((file, _)) = parts.iter().find(|part| settings(part)) {
        let winner = file.path.clone();
        for (file, part) in parts.iter_mut() {
            if part.conventions.role == FileRole::Legacy {
                *part = replaced(file, &winner);
            }
        }
    }
    let off: Vec<SwitchedOff> = parts
        .iter_mut()
        .flat_map(|(_, part)| std::mem::take(&mut part.conventions.switched_off))
        .collect();
    for (file, part) in parts {
        if part.dialect != Some(Dialect::Claude) || file.scope != Scope::Project {
            continue;
        }
        for server in &mut part.servers {
            if let Some(off) = off.iter().find(|off| off.name == server.entry.display) {
                switch_off(server, off);
            }
        }
    }
}

fn switch_off(server: &mut ShownServer, off: &SwitchedOff) {
    server.entry.enabled = false;
    if let Ok(server) = &mut server.entry.status {
        server.enabled = false;
    }
    let key = join(&join("servers", &server.entry.display), "enabled");
    server.shown.retain(|shown| shown.key != key);
    let (value, origin) = (false.to_string(), off.origin.to_string());
    server.shown.push(Shown { key, value, origin });
}

/// Replaces Caliban's older file by a warning.
///
/// That file counts only if no settings file names a server.
fn replaced(file: &SourceFile, winner: &str) -> Part {
    let message = format!("this file is not used, because {winner} names servers");
    let mut problem = Problem::warning(message).help("move its servers there, then remove it");
    problem.place = Some(file.place(&(0..0)));
    Part { problems: vec![problem], ..Part::default() }
}

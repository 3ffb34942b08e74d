//! What files of one program have to say about each other.

use crate::dialect::{Dialect, Kin};
use crate::problem::Problem;
use crate::read::Part;
use crate::source::{Scope, SourceFile};

/// Leaves out the files that others replace, and switches off what others switch off.
pub(crate) fn settle(parts: &mut [(&SourceFile, Part)]) {
    let settings = |(_, part): &(&SourceFile, Part)| part.manner.kin == Kin::Settings;
    if let Some((file, _)) = parts.iter().find(|part| settings(part)) {
        let winner = file.path.clone();
        for (file, part) in parts.iter_mut() {
            if part.manner.kin == Kin::Legacy {
                *part = replaced(file, &winner);
            }
        }
    }
    let off: Vec<String> =
        parts.iter().flat_map(|(_, part)| part.manner.switched_off.clone()).collect();
    for (file, part) in parts {
        let shared = part.dialect == Some(Dialect::Claude) && file.scope == Scope::Project;
        for server in part.servers.iter_mut().filter(|_| shared) {
            if off.contains(&server.entry.display) {
                server.entry.enabled = false;
                if let Ok(server) = &mut server.entry.status {
                    server.enabled = false;
                }
            }
        }
    }
}

/// Caliban's older file counts only where no settings name a server.
fn replaced(file: &SourceFile, winner: &str) -> Part {
    let message = format!("this file is not used, because {winner} names servers");
    let mut problem = Problem::warning(message).help("move its servers there, then remove it");
    problem.place = Some(file.place(&(0..0)));
    Part { problems: vec![problem], ..Part::default() }
}

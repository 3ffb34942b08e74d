//! A second record of the servers that have pins, outside of the database.
//!
//! An empty database is normal in the very first run, and also remains if the file was deleted,
//! emptied or replaced. This file distinguishes the two: a server that is in it and not in the
//! database had pins, which are lost. It is written after the database, and completed
//! whenever the database is opened, so that a kill between the two loses nothing and raises no
//! alarm.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The first line of the file.
const TITLE: &str = "capstan: servers with approved definitions, see state.db";

/// Maximum number of servers in the file.
const MAX_SERVERS: usize = 10_000;

/// Maximum size of the file, in bytes.
const MAX_SIZE: u64 = 8 * 1024 * 1024;

/// A server, and a digest of its command or URL.
pub(crate) type Owner = (String, String);

/// The file on disk.
#[derive(Debug)]
pub(crate) struct PinnedServersFile {
    path: PathBuf,
}

/// The content of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PinnedServers {
    /// There is no file: this is the first run, or the first one since an earlier version.
    None,
    /// These servers had pins.
    Seen(BTreeSet<Owner>),
    /// The file is damaged: any server may have had pins.
    Damaged,
}

// === impl PinnedServersFile ===

impl PinnedServersFile {
    /// The file of a database.
    pub(crate) fn beside(database: &Path) -> Self {
        Self { path: database.with_extension("pins") }
    }

    pub(crate) fn read(&self) -> io::Result<PinnedServers> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Ok(PinnedServers::None);
            }
            Err(cause) => return Err(cause),
        };
        let mut text = Vec::new();
        file.take(MAX_SIZE).read_to_end(&mut text)?;
        let seen = String::from_utf8(text).ok().and_then(|text| parse(&text));
        Ok(seen.map_or(PinnedServers::Damaged, PinnedServers::Seen))
    }

    /// Replaces the servers in the file. The caller must hold the lock of the database.
    pub(crate) fn write(&self, seen: &BTreeSet<Owner>) -> io::Result<()> {
        let new = self.path.with_extension("pins.new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(print(seen).as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

// === impl PinnedServers ===

impl PinnedServers {
    /// True if the file has exactly these servers.
    pub(crate) fn is_of(&self, owners: &BTreeSet<Owner>) -> bool {
        match self {
            Self::Seen(seen) => seen.iter().eq(noted(owners)),
            Self::None | Self::Damaged => false,
        }
    }

    /// True if a server had, or may have had, approved definitions.
    pub(crate) fn knows_any(&self) -> bool {
        match self {
            Self::None => false,
            Self::Seen(seen) => !seen.is_empty(),
            Self::Damaged => true,
        }
    }
}

/// Parses a complete file: the last line has the number of servers.
fn parse(text: &str) -> Option<BTreeSet<Owner>> {
    let (title, rest) = text.strip_suffix('\n')?.split_once('\n')?;
    let (lines, end) = rest.rsplit_once('\n').unwrap_or(("", rest));
    let count: usize = end.strip_prefix("servers: ")?.parse().ok()?;
    let owner = |line: &str| {
        let (identity, server) = line.split_once('\t')?;
        Some((server.to_owned(), identity.to_owned()))
    };
    let seen = lines.lines().map(owner).collect::<Option<BTreeSet<Owner>>>()?;
    (title == TITLE && seen.len() == count).then_some(seen)
}

/// The servers that can be written to the file, up to its limit.
fn noted(seen: &BTreeSet<Owner>) -> impl Iterator<Item = &Owner> {
    let is_plain = |text: &String| !text.contains(['\t', '\n']);
    let is_plain = move |(server, identity): &&Owner| is_plain(server) && is_plain(identity);
    seen.iter().filter(is_plain).take(MAX_SERVERS)
}

fn print(seen: &BTreeSet<Owner>) -> String {
    let line = |(server, identity): &Owner| format!("{identity}\t{server}\n");
    let lines: Vec<String> = noted(seen).map(line).collect();
    format!("{TITLE}\n{}servers: {}\n", lines.concat(), lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_believed_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let witness = PinnedServersFile::beside(&folder.path().join("state.db"));
        assert_eq!(witness.read().unwrap(), PinnedServers::None);
        let of = |names: &[&str]| -> BTreeSet<Owner> {
            names.iter().map(|name| ((*name).to_owned(), "digest".to_owned())).collect()
        };
        for names in [&[][..], &["a"], &["a", "b"]] {
            witness.write(&of(names)).unwrap();
            assert_eq!(witness.read().unwrap(), PinnedServers::Seen(of(names)));
        }
        let whole = fs::read_to_string(&witness.path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&witness.path, &whole.as_bytes()[..cut]).unwrap();
            assert_eq!(witness.read().unwrap(), PinnedServers::Damaged, "cut at {cut}");
        }
        for damage in ["{}", &whole.replace("servers: 2", "servers: 3"), &whole.replace('\t', " ")]
        {
            fs::write(&witness.path, damage).unwrap();
            assert_eq!(witness.read().unwrap(), PinnedServers::Damaged, "{damage}");
        }
        fs::write(&witness.path, [0xff, 0xfe, 0]).unwrap();
        assert_eq!(witness.read().unwrap(), PinnedServers::Damaged);
    }
}

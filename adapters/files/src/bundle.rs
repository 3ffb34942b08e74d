//! Unpacks bundles: archives from untrusted sources.
//!
//! A bundle is unpacked once, into a folder named after the hash of its bytes. The folder gets that
//! name by a rename when it is complete, so that other processes see all of it or nothing, and two
//! processes that unpack at the same time end up with one folder.
//!
//! **Invariant:** nothing is written outside that folder, no link is created, and written bytes are
//! counted: the sizes that an archive declares are not trusted.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use zip::ZipArchive;
use zip::read::ZipFile;

/// The file that makes an archive a bundle.
pub const MANIFEST: &str = "manifest.json";

/// Limits on the size of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleLimits {
    /// Maximum size of the archive, in bytes.
    pub archive: u64,
    /// Maximum number of files and folders in it.
    pub entries: usize,
    /// Maximum size of all files together, in bytes.
    pub unpacked: u64,
    /// Maximum ratio of the unpacked size to the archive's size.
    pub ratio: u64,
}

/// A bundle could not be unpacked.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the bundle `{}`", path.display())]
pub struct BundleError {
    /// The bundle.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub reason: BundleFault,
}

/// The faults of a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleFault {
    /// It cannot be read, or its content cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is not an archive, or a damaged one.
    #[error("it is not a whole zip archive ({0})")]
    NotAnArchive(String),
    /// It has no manifest.
    #[error("it has no `manifest.json`")]
    NoManifest,
    /// A file in it would be written outside of the folder.
    #[error("it contains `{0}`, a path outside of it")]
    Escapes(String),
    /// It contains a link, a pipe or a device.
    #[error("it contains `{0}`, which is neither a file nor a folder")]
    Special(String),
    /// Two files in it have the same name.
    #[error("it contains `{0}` twice")]
    Twice(String),
    /// An entry is encrypted.
    #[error("it contains `{0}`, which is encrypted")]
    Encrypted(String),
    /// The archive is too large.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// It has too many entries.
    #[error("it contains more than {0} files")]
    TooMany(usize),
    /// Its content is too large.
    #[error("its content has more than {0} bytes")]
    TooMuch(u64),
}

/// Age at which an unfinished folder is removed: until then, its process may still be working.
const ABANDONED: Duration = Duration::from_hours(24);

/// Prefix of the names of unfinished folders.
const UNFINISHED: &str = ".unpacking-";

/// Maximum length of a path in an archive, in bytes.
const LONGEST_PATH: usize = 1024;

/// Unpacked size that is always allowed, in bytes, even for a small archive.
const ALWAYS: u64 = 16 * 1024 * 1024;

/// File types in the mode of an entry.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

/// The record at the end of an archive, which may be followed by a comment.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_RECORD: usize = 22;
const END_WINDOW: u64 = 64 * 1024 + 64;

/// The number of bytes that may still be written.
struct Left {
    bytes: u64,
    limit: u64,
}

/// Unpacks a bundle into a folder below `bundles`, unless it exists already; returns the folder.
pub fn unpack(path: &Path, bundles: &Path, limits: BundleLimits) -> Result<PathBuf, BundleError> {
    into_folder(path, bundles, limits)
        .map_err(|reason| BundleError { path: path.to_owned(), reason })
}

// === impl BundleLimits ===

impl Default for BundleLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self { archive: 512 * MIB, entries: 50_000, unpacked: 2048 * MIB, ratio: 100 }
    }
}

// === impl BundleError ===

impl BundleError {
    /// A hint how to fix it.
    pub fn hint(&self) -> Option<String> {
        match &self.reason {
            BundleFault::Io(_) => None,
            BundleFault::NotAFile => Some("name a `.mcpb` file".to_owned()),
            BundleFault::NotAnArchive(_) => Some("get the bundle again".to_owned()),
            BundleFault::NoManifest => {
                Some("check that it is a bundle; the manifest must not be in a folder".to_owned())
            }
            BundleFault::Escapes(_)
            | BundleFault::Special(_)
            | BundleFault::Twice(_)
            | BundleFault::Encrypted(_) => {
                Some("nothing was unpacked; report this to the author of the bundle".to_owned())
            }
            BundleFault::TooLarge(_) | BundleFault::TooMany(_) | BundleFault::TooMuch(_) => {
                Some("nothing was unpacked; unpack it yourself and name its folder".to_owned())
            }
        }
    }
}

// === impl Left ===

impl Left {
    /// Copies to the end, or until the limit is reached.
    fn copy(&mut self, from: impl Read, to: &mut impl Write) -> Result<(), BundleFault> {
        let mut bounded = from.take(self.bytes.saturating_add(1));
        let written = io::copy(&mut bounded, to).map_err(broken)?;
        match self.bytes.checked_sub(written) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => Err(BundleFault::TooMuch(self.limit)),
        }
    }
}

fn into_folder(path: &Path, bundles: &Path, limits: BundleLimits) -> Result<PathBuf, BundleFault> {
    let (mut file, size) = open(path, limits.archive)?;
    let folder = bundles.join(hash(&mut file, limits.archive)?);
    if folder.join(MANIFEST).is_file() {
        return Ok(folder);
    }
    let mut archive = archive(file, size, limits.entries)?;
    if archive.index_for_name(MANIFEST).is_none() {
        return Err(BundleFault::NoManifest);
    }
    private_folder(bundles)?;
    remove_abandoned(bundles);
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(bundles)?;
    let limit = size.saturating_mul(limits.ratio).max(ALWAYS).min(limits.unpacked);
    let mut left = Left { bytes: limit, limit };
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(not_whole)?;
        write_entry(&mut entry, unfinished.path(), &mut left)?;
    }
    finish(unfinished, &folder)?;
    Ok(folder)
}

/// Renames a complete folder.
///
/// A process that comes second uses the existing one, which is identical.
fn finish(unfinished: tempfile::TempDir, folder: &Path) -> Result<(), BundleFault> {
    let made = unfinished.keep();
    match fs::rename(&made, folder) {
        Ok(()) => Ok(()),
        Err(cause) => {
            drop(fs::remove_dir_all(&made));
            if folder.join(MANIFEST).is_file() { Ok(()) } else { Err(cause.into()) }
        }
    }
}

/// Opens without blocking on a pipe.
fn open(path: &Path, max: u64) -> Result<(File, u64), BundleFault> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(BundleFault::NotAFile);
    }
    if meta.len() > max { Err(BundleFault::TooLarge(max)) } else { Ok((file, meta.len())) }
}

fn hash(file: &mut File, max: u64) -> Result<String, BundleFault> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut bounded = Read::take(&mut *file, max);
    loop {
        let read = bounded.read(&mut buffer)?;
        match buffer.get(..read) {
            Some(bytes) if !bytes.is_empty() => hasher.update(bytes),
            Some(_) | None => break,
        }
    }
    file.rewind()?;
    Ok(hasher.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

/// Opens the archive; the number of entries is checked before their list is read into memory.
fn archive(mut file: File, size: u64, most: usize) -> Result<ZipArchive<File>, BundleFault> {
    if declared_entries(&mut file, size)?.is_none_or(|entries| entries > most) {
        return Err(BundleFault::TooMany(most));
    }
    let archive = ZipArchive::new(file).map_err(not_whole)?;
    if archive.len() > most {
        return Err(BundleFault::TooMany(most));
    }
    // The library keeps the last of several entries with one name; other programs may keep the
    // first.
    if archive.has_duplicate_names() {
        return Err(BundleFault::Twice("a file".to_owned()));
    }
    Ok(archive)
}

/// The largest number of entries that a record at the end of the archive declares.
///
/// `None` if one declares more than fit into it. The reader decides which record counts.
fn declared_entries(file: &mut File, size: u64) -> Result<Option<usize>, BundleFault> {
    file.seek(SeekFrom::Start(size.saturating_sub(END_WINDOW)))?;
    let mut end = Vec::new();
    Read::take(&mut *file, END_WINDOW).read_to_end(&mut end)?;
    file.rewind()?;
    let records = end.windows(END_RECORD).filter(|bytes| bytes.starts_with(END_MARK));
    let counts = records.filter_map(|record| match record {
        [_, _, _, _, _, _, _, _, _, _, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    });
    let most = counts.max().unwrap_or_default();
    Ok((most < u16::MAX).then_some(usize::from(most)))
}

fn write_entry(
    entry: &mut ZipFile<'_, File>,
    folder: &Path,
    left: &mut Left,
) -> Result<(), BundleFault> {
    let name = entry.name().map_err(not_whole)?.into_owned();
    if entry.encrypted() {
        return Err(BundleFault::Encrypted(name));
    }
    let kind = entry.unix_mode().unwrap_or_default() & KIND;
    if entry.is_symlink() || ![0, REGULAR, FOLDER].contains(&kind) {
        return Err(BundleFault::Special(name));
    }
    if !is_inside(&name) {
        return Err(BundleFault::Escapes(name));
    }
    let place = folder.join(&name);
    if entry.is_dir() {
        return Ok(private_folder(&place)?);
    }
    if let Some(parent) = place.parent() {
        private_folder(parent)?;
    }
    // Archives from other systems have no executable flag. The folder is private to the user, so
    // all files can be executable.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&place);
    let mut file = match made {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            return Err(BundleFault::Twice(name));
        }
        Err(cause) => return Err(cause.into()),
    };
    left.copy(entry, &mut file)
}

/// True if a path of an archive stays in its folder, on any system.
fn is_inside(name: &str) -> bool {
    let name = name.strip_suffix('/').unwrap_or(name);
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    name.len() <= LONGEST_PATH && !name.contains(['\\', '\0', ':']) && name.split('/').all(plain)
}

fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Removes folders that killed processes left behind. Failures are harmless.
fn remove_abandoned(bundles: &Path) {
    let Ok(entries) = fs::read_dir(bundles) else { return };
    for entry in entries.flatten() {
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        let changed = entry.metadata().and_then(|meta| meta.modified()).ok();
        let age = changed.and_then(|changed| changed.elapsed().ok());
        if unfinished && age.is_some_and(|age| age > ABANDONED) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

fn not_whole(error: impl std::fmt::Display) -> BundleFault {
    BundleFault::NotAnArchive(error.to_string())
}

/// Damage inside of an archive appears as a read error.
fn broken(cause: io::Error) -> BundleFault {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    let of_archive = [InvalidData, InvalidInput, UnexpectedEof].contains(&cause.kind());
    if of_archive { not_whole(cause) } else { BundleFault::Io(cause) }
}

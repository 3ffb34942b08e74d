//! A copy of the facts that lists show, in a text file beside the database.
//!
//! To open the database takes longer than the rest of `capstan list`. The copy has a stamp of the
//! database. While the stamp fits, the database is as it was when the copy was made.
//!
//! **Invariant:** the copy is for display only. Calls are decided by the [`Database`].

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use capstan_hub::ports::{
    Approved, BoxFuture, Newcomer, Pin, PinOwner, PinStore, StoreError, UsageLog, UsageRow,
};

use crate::Database;

/// A store for commands that list: it reads the copy, and the database if that does not fit.
pub struct ListStore {
    database: Arc<Database>,
    path: PathBuf,
    copy: Mutex<Copied>,
}

/// The state of the copy. A command that lists takes a moment, so it reads the copy once.
#[derive(Clone)]
enum Copied {
    /// It was not read yet.
    Unread,
    /// It fitted when it was read, and nothing was changed by this process since.
    Held(Arc<Facts>),
    /// The database is read.
    Unfit,
}

/// The content of a copy.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    digests: HashMap<PinOwner, Option<String>>,
    usage: Vec<UsageRow>,
}

/// The first line of the file.
const TITLE: &str = "capstan: copy of what lists show, see state.db";

/// Maximum number of digests and rows in a copy.
const MAX_LINES: usize = 10_000;

/// Maximum size of a copy, in bytes.
const MAX_SIZE: u64 = 4 * 1024 * 1024;

/// Minimum age of a change that a stamp covers. File systems give changes that follow each other
/// quickly the same time.
const SETTLED: Duration = Duration::from_secs(2);

// === impl ListStore ===

impl ListStore {
    /// Creates a store that reads and writes the copy of a database.
    pub fn new(database: Arc<Database>) -> Self {
        let path = database.path.with_extension("lists");
        Self { database, path, copy: Mutex::new(Copied::Unread) }
    }

    /// The content of the copy, if it fits.
    fn copied(&self) -> Option<Arc<Facts>> {
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*copy, Copied::Unread) {
            *copy = self.read_copy().map_or(Copied::Unfit, |facts| Copied::Held(Arc::new(facts)));
        }
        match &*copy {
            Copied::Held(facts) => Some(Arc::clone(facts)),
            Copied::Unread | Copied::Unfit => None,
        }
    }

    fn read_copy(&self) -> Option<Facts> {
        let stamp = stamp(&self.database.path)?;
        let file = File::open(&self.path).ok()?;
        let size = file.metadata().ok()?.len().min(MAX_SIZE);
        let mut text = String::with_capacity(usize::try_from(size).ok()? + 1);
        file.take(MAX_SIZE).read_to_string(&mut text).ok()?;
        parse(&text, &stamp)
    }

    /// The database, which is about to be changed: from now on the copy does not fit.
    fn changing(&self) -> &Database {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = Copied::Unfit;
        &self.database
    }

    /// Reads the database, and copies what was read.
    async fn read_all(&self) -> Result<Facts, StoreError> {
        let before = stamp(&self.database.path);
        let digests = self.database.approved_digests().await?;
        let usage = self.database.read(i64::MIN).await?;
        let facts = Facts { digests, usage };
        if let Some(stamp) = before
            && is_settled(&self.database.path)
            && self::stamp(&self.database.path).as_ref() == Some(&stamp)
            && let Err(error) = self.save(&facts, &stamp)
        {
            tracing::debug!(%error, "the copy for lists cannot be saved");
        }
        Ok(facts)
    }

    fn save(&self, facts: &Facts, stamp: &str) -> io::Result<()> {
        let Some(text) = print(facts, stamp) else { return Ok(()) };
        let new = self.path.with_extension(format!("lists.{}", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let saved = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&new, &self.path));
        if saved.is_err() {
            drop(fs::remove_file(&new));
        }
        saved
    }
}

impl PinStore for ListStore {
    fn get_ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.copied().is_none() {
                self.database.get_ready().await;
            }
        })
    }

    fn approved_digests(
        &self,
    ) -> BoxFuture<'_, Result<HashMap<PinOwner, Option<String>>, StoreError>> {
        Box::pin(async {
            match self.copied() {
                Some(facts) => Ok(facts.digests.clone()),
                None => Ok(self.read_all().await?.digests),
            }
        })
    }

    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Approved>, StoreError>> {
        self.database.pins(whose)
    }

    fn begin<'a>(&'a self, new: &'a [Newcomer]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.changing().begin(new)
    }

    fn note<'a>(
        &'a self,
        whose: &'a PinOwner,
        sum: &'a str,
        changes: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.changing().note(whose, sum, changes)
    }

    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.changing().approve(whose, pins)
    }

    fn end_loss<'a>(&'a self, lost: &'a [PinOwner]) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.changing().end_loss(lost)
    }
}

impl UsageLog for ListStore {
    fn read(&self, since: i64) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>> {
        Box::pin(async move {
            let Some(facts) = self.copied() else { return self.database.read(since).await };
            Ok(facts.usage.iter().filter(|row| row.hour >= since).cloned().collect())
        })
    }

    fn add<'a>(
        &'a self,
        rows: &'a [UsageRow],
        forget: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.changing().add(rows, forget)
    }
}

/// The state of a database, of which every change makes another; `None` while changes wait to be
/// written into its file.
fn stamp(database: &Path) -> Option<String> {
    let is_waiting = fs::metadata(log_of(database)).is_ok_and(|log| log.len() > 0);
    let of = |path: &Path| {
        let file = fs::metadata(path).ok()?;
        let (place, time) = ((file.dev(), file.ino()), (file.mtime(), file.mtime_nsec()));
        Some(format!("{} {} {} {} {}", place.0, place.1, file.len(), time.0, time.1))
    };
    let pinned = database.with_extension("pins");
    (!is_waiting).then(|| Some(format!("{} {}", of(database)?, of(&pinned)?)))?
}

/// The file in which `SQLite` collects changes.
fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// True if the last change is old enough for a later one to have another time.
fn is_settled(database: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let is_old = |time: SystemTime| time.elapsed().is_ok_and(|age| age >= SETTLED);
    [database.to_owned(), database.with_extension("pins")]
        .iter()
        .all(|path| changed(path).is_some_and(is_old))
}

/// Formats a copy; `None` if it would be too large.
fn print(Facts { digests, usage }: &Facts, stamp: &str) -> Option<String> {
    let count = digests.len() + usage.len();
    let mut text = format!("{TITLE}\nstamp: {stamp}\n");
    for (PinOwner { server, identity }, sum) in digests {
        let _ = writeln!(text, "pins\t{server}\t{identity}\t{}", sum.as_deref().unwrap_or("-"));
    }
    for UsageRow { server, hour, calls, seconds } in usage {
        let _ = writeln!(text, "usage\t{server}\t{hour}\t{calls}\t{seconds}");
    }
    let _ = writeln!(text, "lines: {count}");
    let is_small = count <= MAX_LINES && u64::try_from(text.len()).is_ok_and(|len| len < MAX_SIZE);
    is_small.then_some(text)
}

/// Parses a complete copy with this stamp: the last line has the number of the others.
fn parse(text: &str, stamp: &str) -> Option<Facts> {
    let rest = text.strip_prefix(TITLE)?.strip_prefix("\nstamp: ")?.strip_prefix(stamp)?;
    let (lines, end) = rest.strip_prefix('\n')?.strip_suffix('\n')?.rsplit_once('\n')?;
    let count: usize = end.strip_prefix("lines: ")?.parse().ok()?;
    let mut facts = Facts::default();
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match *fields.as_slice() {
            ["pins", server, identity, sum] => {
                let server = server.parse().ok()?;
                let owner = PinOwner { server, identity: identity.to_owned() };
                facts.digests.insert(owner, (sum != "-").then(|| sum.to_owned()));
            }
            ["usage", server, hour, calls, seconds] => facts.usage.push(UsageRow {
                server: server.parse().ok()?,
                hour: hour.parse().ok()?,
                calls: calls.parse().ok()?,
                seconds: seconds.parse().ok()?,
            }),
            _ => return None,
        }
    }
    (facts.digests.len() + facts.usage.len() == count).then_some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> PinOwner {
        PinOwner { server: name.parse().unwrap(), identity: format!("digest of {name}") }
    }

    fn newcomer(name: &str) -> Newcomer {
        Newcomer { owner: owner(name), sum: format!("sum of {name}"), items: Arc::new([]) }
    }

    /// Gives the files of a database an older time, as if nothing had changed for a while.
    fn settle(path: &Path) {
        let before = SystemTime::now() - 5 * SETTLED;
        for path in [path.to_owned(), path.with_extension("pins")] {
            File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
        }
    }

    /// A database with the pins and the usage of a server, which nothing has open.
    async fn closed(path: &Path) {
        let database = Database::at(path);
        database.begin(&[newcomer("a")]).await.unwrap();
        let server = "a".parse().unwrap();
        let row = UsageRow { server, hour: 7, calls: 3, seconds: 60 };
        database.add(&[row], 0).await.unwrap();
        database.pool().await.unwrap().pool.close().await;
        settle(path);
    }

    fn is_open(store: &ListStore) -> bool {
        store.database.cell().get().is_some()
    }

    #[tokio::test]
    async fn a_list_of_what_did_not_change_opens_no_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        closed(&path).await;
        let first = ListStore::new(Arc::new(Database::at(&path)));
        let (digests, usage) =
            (first.approved_digests().await.unwrap(), first.read(i64::MIN).await.unwrap());
        assert_eq!(digests.get(&owner("a")), Some(&Some("sum of a".to_owned())));
        assert!(is_open(&first));
        first.database.pool().await.unwrap().pool.close().await;
        let second = ListStore::new(Arc::new(Database::at(&path)));
        second.get_ready().await;
        assert_eq!(second.approved_digests().await.unwrap(), digests);
        assert_eq!(second.read(i64::MIN).await.unwrap(), usage);
        assert_eq!((usage.len(), second.read(8).await.unwrap().len()), (1, 0));
        assert!(!is_open(&second));
    }

    #[tokio::test]
    async fn every_change_is_seen_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        closed(&path).await;
        let store = ListStore::new(Arc::new(Database::at(&path)));
        store.approved_digests().await.unwrap();
        let store = ListStore::new(Arc::new(Database::at(&path)));
        assert!(store.copied().is_some());
        // In the same process, in another one, and after the log was written into the file.
        store.begin(&[newcomer("b")]).await.unwrap();
        let other = ListStore::new(Arc::new(Database::at(&path)));
        for store in [&store, &other] {
            assert!(store.approved_digests().await.unwrap().contains_key(&owner("b")));
        }
        store.approve(&owner("a"), &[]).await.unwrap();
        for store in [&store, &other] {
            store.database.pool().await.unwrap().pool.close().await;
        }
        let later = ListStore::new(Arc::new(Database::at(&path)));
        assert_eq!(later.approved_digests().await.unwrap().get(&owner("a")), Some(&None));
        // It is too recent to be copied.
        assert_eq!(later.read_copy(), None);
    }

    #[tokio::test]
    async fn a_copy_is_believed_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        closed(&path).await;
        let store = ListStore::new(Arc::new(Database::at(&path)));
        store.approved_digests().await.unwrap();
        let whole = fs::read_to_string(&store.path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&store.path, &whole.as_bytes()[..cut]).unwrap();
            assert_eq!(store.read_copy(), None, "cut at {cut}");
        }
        fs::write(&store.path, whole.replace("lines: 2", "lines: 3")).unwrap();
        assert_eq!(store.read_copy(), None);
        fs::write(&store.path, &whole).unwrap();
        assert!(store.read_copy().is_some());
        fs::remove_file(path.with_extension("pins")).unwrap();
        assert_eq!(store.read_copy(), None);
    }
}

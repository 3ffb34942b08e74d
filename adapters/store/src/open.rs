//! Opens the file, and repairs it if needed.
//!
//! An intact file is opened under a shared lock. Everything else happens under an exclusive one:
//! creating the file, migrating it, keeping a damaged one under another name. Then servers that are
//! in the [`PinnedServersFile`] but not in the database are entered as lost.
//!
//! **Invariant:** no server counts as new because the file was damaged, emptied, deleted or
//! replaced.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use crate::backup::keep_aside;
use crate::damage::{is_busy, is_damage};
use crate::lock::Lock;
use crate::pinned_servers::{Owner, PinnedServers, PinnedServersFile};
use crate::schema::{self, SchemaError};

/// Timeout for another process that writes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Retry interval for a file that other processes are opening too.
pub(crate) const AGAIN: Duration = Duration::from_millis(10);

/// Size of the page cache, in KiB.
///
/// Few pages are read twice, and the cache never shrinks after a large list.
const CACHE: u32 = 256;

/// Stands for every server, if it is unknown which ones had approved definitions.
///
/// No server can have this name.
pub(crate) const EVERY: &str = "*";

/// The end of messages about refused tools.
const UNTIL: &str = " until `capstan pins SERVER --approve`";

/// An open database.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) pool: SqlitePool,
    pub(crate) file: FileId,
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

/// The reason why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The file system reports an error.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The database reports an error.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// Its tables are not valid.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Another process holds the lock.
    #[error("`{}` is locked by another process, waited {PATIENCE:?}", path.display())]
    Locked {
        /// The file that carries the lock.
        path: PathBuf,
    },
}

/// A file to open.
pub(crate) struct Opening<'a> {
    path: &'a Path,
    witness: PinnedServersFile,
    /// The file that turned out to be damaged during use.
    damaged: Option<FileId>,
}

/// A problem of a file, for the log.
enum Finding {
    Gone,
    Damaged(String),
    Incomplete,
}

// === impl Opening ===

impl<'a> Opening<'a> {
    pub(crate) fn new(path: &'a Path, damaged: Option<FileId>) -> Self {
        Self { path, witness: PinnedServersFile::beside(path), damaged }
    }

    /// Opens the file. If it is not intact, it is kept under another name and a new one is created.
    pub(crate) async fn open(&self) -> Result<Opened, OpenError> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        {
            let _lock = Lock::shared(self.path).await?;
            if let Some(opened) = self.as_it_is().await {
                return Ok(opened);
            }
        }
        let _lock = Lock::exclusive(self.path).await?;
        self.repaired().await
    }

    /// Adds all servers of the database to the witness.
    pub(crate) async fn testify(&self, pool: &SqlitePool) -> Result<(), OpenError> {
        let _lock = Lock::exclusive(self.path).await?;
        let mut all = owners(pool).await?;
        if let PinnedServers::Seen(seen) = self.witness.read()? {
            all.extend(seen);
        }
        Ok(self.witness.write(&all)?)
    }

    /// Marks only these servers as lost, instead of every one; returns true if every one was.
    pub(crate) async fn lose_only(
        &self,
        pool: &SqlitePool,
        lost: &BTreeSet<Owner>,
    ) -> Result<bool, OpenError> {
        let _lock = Lock::exclusive(self.path).await?;
        if !owners(pool).await?.contains(&every()) {
            return Ok(false);
        }
        insert_lost(pool, lost).await?;
        sqlx::query("DELETE FROM pinned_servers WHERE server = $1")
            .bind(EVERY)
            .execute(pool)
            .await?;
        let mut all = owners(pool).await?;
        if let PinnedServers::Seen(seen) = self.witness.read()? {
            all.extend(seen.into_iter().filter(|owner| *owner != every()));
        }
        self.witness.write(&all)?;
        Ok(true)
    }

    /// The file, if it is intact.
    async fn as_it_is(&self) -> Option<Opened> {
        if self.is_empty().ok()? || FileId::of(self.path).ok() == self.damaged {
            return None;
        }
        let opened = self.connect().await.ok()?;
        let is_whole = async {
            let is_current = schema::is_current(&opened.pool).await;
            let owners = owners(&opened.pool).await.ok()?;
            let told = self.witness.read().ok()?;
            (is_current && told.is_of(&owners)).then_some(())
        };
        if is_whole.await.is_none() {
            opened.pool.close().await;
            return None;
        }
        Some(opened)
    }

    /// The file, after all repairs. The caller must hold the lock.
    async fn repaired(&self) -> Result<Opened, OpenError> {
        let told = self.witness.read()?;
        let (mut finding, mut kept) = (None, None);
        let mut is_new = self.is_empty()?;
        if is_new && (told.knows_any() || told == PinnedServers::None && self.path.exists()) {
            (finding, kept) = (Some(Finding::Gone), self.keep_aside(&told)?);
        } else if FileId::of(self.path).ok().is_some_and(|file| Some(file) == self.damaged) {
            let what = "damage was found while it was used".to_owned();
            (finding, kept, is_new) = (Some(Finding::Damaged(what)), self.keep_aside(&told)?, true);
        }
        if finding.is_none() && is_new && told == PinnedServers::None {
            // Before the file, and never without it: an empty file without a witness is not a first
            // run that was killed or found a full disk.
            self.witness.write(&BTreeSet::new())?;
        }
        let opened = match self.up_to_date().await {
            Err(error) if error.is_damage() => {
                (finding, kept) =
                    (Some(Finding::Damaged(error.to_string())), self.keep_aside(&told)?);
                is_new = true;
                self.up_to_date().await
            }
            done => done,
        };
        let (mut opened, mut known, was_bare) = opened?;
        let is_doubtful = told.knows_any() || told == PinnedServers::None && was_bare;
        if !is_new && known.is_empty() && is_doubtful {
            // It is a database, but without any approved definition.
            opened.pool.close().await;
            (finding, kept) = (Some(Finding::Gone), self.keep_aside(&told)?);
            (opened, known, _) = self.up_to_date().await?;
        }
        let lost = told.lacking(&known, finding.as_ref());
        insert_lost(&opened.pool, &lost).await?;
        if let Some(finding) = finding.or((!lost.is_empty()).then_some(Finding::Incomplete)) {
            finding.tell(self.path, kept.as_deref(), &lost);
        }
        known.extend(lost);
        if !told.is_of(&known) {
            self.note(&known);
        }
        Ok(opened)
    }

    /// Keeps the file under another name.
    ///
    /// Without a usable witness, every server is lost, and a new witness says so first: an
    /// interruption before the new file has its entries must not loosen anything.
    fn keep_aside(&self, told: &PinnedServers) -> io::Result<Option<PathBuf>> {
        match told {
            PinnedServers::None | PinnedServers::Damaged => self.note(&BTreeSet::from([every()])),
            PinnedServers::Seen(_) => {}
        }
        keep_aside(self.path)
    }

    fn note(&self, known: &BTreeSet<Owner>) {
        if let Err(error) = self.witness.write(known) {
            tracing::warn!(%error, "the list of pinned servers cannot be saved");
        }
    }

    /// True if the file is empty or missing.
    fn is_empty(&self) -> io::Result<bool> {
        match fs::metadata(self.path) {
            Ok(meta) => Ok(meta.len() == 0),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(cause) => Err(cause),
        }
    }

    /// The migrated file, the servers in it, and true if it had no tables of ours.
    async fn up_to_date(&self) -> Result<(Opened, BTreeSet<Owner>, bool), OpenError> {
        let opened = self.connect().await?;
        let brought = async {
            let was_bare = schema::bring_up_to_date(&opened.pool).await? == 0;
            Ok((owners(&opened.pool).await?, was_bare))
        };
        let brought: Result<_, OpenError> = brought.await;
        if brought.is_err() {
            opened.pool.close().await;
        }
        let (owners, was_bare) = brought?;
        Ok((opened, owners, was_bare))
    }

    async fn connect(&self) -> Result<Opened, OpenError> {
        make_private(self.path)?;
        let options = SqliteConnectOptions::new()
            .filename(self.path)
            .journal_mode(SqliteJournalMode::Wal)
            // Acknowledged writes survive a power cut.
            .synchronous(SqliteSynchronous::Full)
            // A negative value is a size in KiB, not a number of pages.
            .pragma("cache_size", format!("-{CACHE}"))
            .busy_timeout(PATIENCE);
        let pool = connect(options).await?;
        Ok(Opened { pool, file: FileId::of(self.path)? })
    }
}

// === impl FileId ===

impl FileId {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        Ok(Self { device: meta.dev(), inode: meta.ino() })
    }
}

// === impl OpenError ===

impl OpenError {
    /// True if the file is damaged.
    fn is_damage(&self) -> bool {
        match self {
            Self::Database(cause) | Self::Schema(SchemaError::Database(cause)) => is_damage(cause),
            Self::Schema(SchemaError::Unfit(_)) => true,
            Self::Schema(SchemaError::Newer(_)) | Self::File(_) | Self::Locked { .. } => false,
        }
    }
}

// === impl PinnedServers ===

impl PinnedServers {
    /// The servers that had approved definitions and are not in `known`.
    fn lacking(&self, known: &BTreeSet<Owner>, finding: Option<&Finding>) -> BTreeSet<Owner> {
        let every = || BTreeSet::from([every()]);
        match self {
            // An earlier version kept no such record.
            Self::None if finding.is_some() => every(),
            Self::None => BTreeSet::new(),
            Self::Seen(seen) => seen.difference(known).cloned().collect(),
            // If the database is intact, it is complete.
            Self::Damaged if finding.is_none() => BTreeSet::new(),
            Self::Damaged => every(),
        }
    }
}

// === impl Finding ===

impl Finding {
    fn tell(&self, path: &Path, kept: Option<&Path>, lost: &BTreeSet<Owner>) {
        let path = path.display();
        let what = match self {
            Self::Gone => format!("the state database `{path}` was emptied or deleted"),
            Self::Damaged(cause) => format!("the state database `{path}` is damaged ({cause})"),
            Self::Incomplete => format!("the state database `{path}` lacks servers"),
        };
        let kept = kept.map(|kept| format!("; it is kept as `{}`", kept.display()));
        let then = match lost.iter().map(|(server, _)| server.as_str()).collect::<Vec<_>>()[..] {
            [] => String::new(),
            [EVERY] => format!(
                "; the tools of all servers are refused{UNTIL}; `capstan pins --approve` pins all of them, and ends this state"
            ),
            ref servers => format!(
                "; the tools of {} are refused{UNTIL}, except those of trusted servers",
                servers.join(", ")
            ),
        };
        tracing::error!(
            "{what}{}{then}; approvals that were not used yet must be given again",
            kept.unwrap_or_default()
        );
    }
}

fn every() -> Owner {
    (EVERY.to_owned(), String::new())
}

/// The servers in the database.
async fn owners(pool: &SqlitePool) -> Result<BTreeSet<Owner>, sqlx::Error> {
    let rows: Vec<Owner> =
        sqlx::query_as("SELECT server, identity FROM pinned_servers").fetch_all(pool).await?;
    Ok(rows.into_iter().collect())
}

/// Enters servers whose approved definitions are lost.
async fn insert_lost(pool: &SqlitePool, lost: &BTreeSet<Owner>) -> Result<(), sqlx::Error> {
    if lost.is_empty() {
        return Ok(());
    }
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    for (server, identity) in lost {
        sqlx::query(
            "INSERT INTO pinned_servers (server, identity, lost) VALUES ($1, $2, 1) \
             ON CONFLICT (server, identity) DO NOTHING",
        )
        .bind(server)
        .bind(identity)
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await
}

/// Connects, and waits for other processes that open the same new file.
///
/// The busy timeout does not cover this: if two processes read a file and then switch its journal
/// mode, `SQLite` refuses one immediately to avoid a deadlock.
async fn connect(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    let began = Instant::now();
    loop {
        // One connection: several writers would only wait for each other.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            // A file does not go away between two queries.
            .test_before_acquire(false)
            .acquire_timeout(PATIENCE * 2)
            .connect_with(options.clone())
            .await;
        match pool {
            Err(cause) if is_busy(&cause) && began.elapsed() < PATIENCE => {
                tokio::time::sleep(AGAIN).await;
            }
            done => return done,
        }
    }
}

/// Creates the file if it is missing, for its owner only.
///
/// `SQLite` gives its other files the same permissions. An existing file that others can access is
/// closed to them.
fn make_private(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    let permissions = file.metadata()?.permissions();
    if permissions.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

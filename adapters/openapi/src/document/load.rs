//! Loads the text of a document: from its file, from the web, or from the cache.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capstan_http::{PlainRequest, WebAddress};
use capstan_lazy::AttemptError;
use capstan_model::Secret;
use sha2::{Digest, Sha256};
use tracing::{debug, info};

use crate::settings::{OpenApiSettings, Source};

/// The largest document that is read, in bytes.
pub(crate) const MAX_DOCUMENT: usize = 32 * 1024 * 1024;

/// How long a fetched document is used without fetching it again.
const FRESH: Duration = Duration::from_mins(10);

/// How long a cached document is used when it cannot be fetched.
const STALE: Duration = Duration::from_hours(24 * 7);

/// The largest number of cached documents.
const MAX_KEPT: usize = 32;

/// The text of a document and its origin.
pub(crate) struct Loaded {
    pub(crate) text: String,
    /// The address that the document was fetched from.
    pub(crate) home: Option<WebAddress>,
    /// The reason why an older version is used, if it is.
    pub(crate) stale: Option<String>,
}

/// Loads the document.
///
/// # Errors
/// The reason why it cannot be loaded.
pub(crate) async fn load(settings: &OpenApiSettings) -> Result<Loaded, AttemptError> {
    match &settings.source {
        Source::File(path) => {
            let (path, shown) = (path.clone(), path.display().to_string());
            let read = blocking(move || read_file(&path, None)).await;
            let text = read.map_err(|error| format!("cannot read `{shown}`: {error}"))?;
            Ok(Loaded { text, home: None, stale: None })
        }
        Source::Web(url) => from_web(settings, url.reveal()).await,
    }
}

async fn from_web(settings: &OpenApiSettings, url: &str) -> Result<Loaded, AttemptError> {
    let home = WebAddress::parse(url).map_err(|error| format!("`openapi`: {error}"))?;
    let kept = settings.cache.as_ref().map(|folder| kept(folder, settings, url));
    let recall = async |age| {
        let path = kept.clone()?;
        blocking(move || read_file(&path, Some(age))).await.ok()
    };
    if let Some(text) = recall(FRESH).await {
        debug!(server = %settings.name, "its document was fetched recently");
        return Ok(Loaded { text, home: Some(home), stale: None });
    }
    match fetch(settings, &home).await {
        Ok(text) => {
            if let Some(path) = kept {
                let copy = text.clone();
                let stored = blocking(move || store(&path, copy.as_bytes())).await;
                if stored.is_err() {
                    info!(server = %settings.name, "its document could not be cached");
                }
            }
            Ok(Loaded { text, home: Some(home), stale: None })
        }
        Err(error @ (AttemptError::Blocked(_) | AttemptError::Elsewhere(_))) => {
            Err(error.within(|reason| format!("its document is not fetched: {reason}")))
        }
        Err(AttemptError::Failed(reason)) => match recall(STALE).await {
            Some(text) => {
                let stale = Some(format!("an older copy of its document is used: {reason}"));
                Ok(Loaded { text, home: Some(home), stale })
            }
            None => Err(format!("its document cannot be fetched: {reason}").into()),
        },
    }
}

async fn fetch(settings: &OpenApiSettings, home: &WebAddress) -> Result<String, AttemptError> {
    // Headers for the interface are sent nowhere else, not even to the origin of its document.
    let base = settings.base_url.as_ref().map(|base| WebAddress::parse(base.reveal()));
    let is_ours = base.is_none_or(|base| base.is_ok_and(|base| base.same_origin(home)));
    let headers = if is_ours { settings.headers.as_slice() } else { &[] };
    let client = settings.client(home, headers)?;
    let request = PlainRequest {
        method: "GET",
        path: home.path().to_owned(),
        query: home.query().map(ToOwned::to_owned),
        headers: vec![(
            "accept".to_owned(),
            "application/json, application/yaml, */*;q=0.5".to_owned(),
        )],
        body: Vec::new(),
    };
    let response = client.send(request, MAX_DOCUMENT).await?;
    if !(200..300).contains(&response.status) {
        return Err(format!("HTTP status {}", response.status).into());
    }
    if !response.whole {
        return Err(too_large().to_string().into());
    }
    let text = String::from_utf8(response.body.to_vec());
    Ok(text.map_err(|_| "it is not UTF-8".to_owned())?)
}

/// The cache file of a document; requests with the same URL and headers share it.
fn kept(folder: &Path, settings: &OpenApiSettings, url: &str) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(url);
    let headers = settings.headers.iter().map(|(name, value)| (name, Secret::reveal(value)));
    for (name, value) in headers {
        hash.update([0]);
        hash.update(name);
        hash.update([0]);
        hash.update(value);
    }
    let mut name = String::new();
    for byte in hash.finalize() {
        let _ = write!(name, "{byte:02x}");
    }
    folder.join("openapi").join(name)
}

/// Reads a file that is not older than `age`.
pub(crate) fn read_file(path: &Path, age: Option<Duration>) -> std::io::Result<String> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    let old = age.zip(about.modified()?.elapsed().ok()).is_some_and(|(age, since)| since > age);
    if old || !about.is_file() {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let limit = u64::try_from(MAX_DOCUMENT).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_DOCUMENT {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(std::io::Error::other)
}

/// Stores a text, readable only by us. Concurrent readers see the old file or the new one.
fn store(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if !path.exists() {
        make_room(folder)?;
    }
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes the oldest files if one more would exceed the limit.
fn make_room(folder: &Path) -> std::io::Result<()> {
    let age = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut files: Vec<_> = fs::read_dir(folder)?.flatten().filter_map(age).collect();
    files.sort();
    let extra = (files.len() + 1).saturating_sub(MAX_KEPT);
    for (_, path) in files.iter().take(extra) {
        // Another process may have removed it first.
        drop(fs::remove_file(path));
    }
    Ok(())
}

fn too_large() -> std::io::Error {
    std::io::Error::other(format!("it has more than {MAX_DOCUMENT} bytes"))
}

/// Runs blocking work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a pipe is made by a program that is told nothing"
    )]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).env_clear().status().unwrap();
        assert!(made.success());
        let (sender, receiver) = std::sync::mpsc::channel();
        let own = folder.path().to_owned();
        std::thread::spawn(move || {
            sender.send([read_file(&pipe, None), read_file(&own, None)].map(|read| read.is_err()))
        });
        assert_eq!(receiver.recv_timeout(Duration::from_mins(1)), Ok([true, true]));
    }

    #[test]
    fn few_documents_are_kept_and_for_nobody_else() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("openapi");
        for n in 0..MAX_KEPT + 9 {
            store(&folder.join(n.to_string()), b"text").unwrap();
        }
        let newest = folder.join((MAX_KEPT + 8).to_string());
        store(&newest, b"other").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), MAX_KEPT);
        assert_eq!(read_file(&newest, Some(STALE)).unwrap(), "other");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&newest)), (0o700, 0o600));
    }
}

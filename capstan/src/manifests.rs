//! The store of manifests: the saved lists of servers, in files of the cache folder.

use std::io;
use std::sync::Arc;

use capstan_app::Environment;
use capstan_files::Cache;
use capstan_hub::ports::{Manifests, SavedText};
use jiff::Timestamp;
use tracing::{debug, warn};

/// The folder of manifests in the cache.
const FOLDER: &str = "manifests";

/// Maximum size of a manifest, in bytes.
const MAX_SIZE: u64 = 8 * 1024 * 1024;

/// Maximum number of stored manifests.
const MAX_FILES: usize = 500;

/// Stores manifests in files. The time of a file is the time at which its text was confirmed.
pub(crate) struct ManifestFiles(Cache);

// === impl ManifestFiles ===

impl ManifestFiles {
    pub(crate) fn shared(environment: &Environment) -> Arc<dyn Manifests> {
        Arc::new(Self(Cache::new(environment.cache.join(FOLDER), MAX_SIZE, MAX_FILES)))
    }
}

impl Manifests for ManifestFiles {
    fn load(&self, key: &str) -> Option<SavedText> {
        let (text, modified) = self.0.load(key)?;
        let confirmed = Timestamp::try_from(modified).ok()?;
        // Fractions of a second would only make the time harder to read.
        Some(SavedText { text, confirmed: Timestamp::from_second(confirmed.as_second()).ok()? })
    }

    fn save(&self, key: &str, text: &dyn Fn(&mut dyn io::Write) -> io::Result<()>) {
        if let Err(error) = self.0.save(key, text) {
            warn!(%error, "the lists of a server were not saved");
        }
    }

    fn confirm(&self, key: &str) {
        if let Err(error) = self.0.touch(key) {
            debug!(%error, "the age of a server's saved lists was not changed");
        }
    }
}

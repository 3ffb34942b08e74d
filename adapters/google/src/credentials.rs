//! Application default credentials: where they are, and the forms of the file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use capstan_model::Secret;
use serde::Deserialize;

use crate::error::GoogleError;

/// Largest file.
const MAX_FILE: u64 = 64 * 1024;

/// The places of the credentials.
#[derive(Clone, Debug)]
pub struct Places {
    /// The file that the user names (`GOOGLE_APPLICATION_CREDENTIALS`).
    pub named: Option<PathBuf>,
    /// The file that `gcloud auth application-default login` writes.
    pub usual: PathBuf,
}

/// Credentials from a file.
pub(crate) enum Found {
    /// The refresh token of a user.
    User { client_id: String, client_secret: Secret<String>, refresh_token: Secret<String> },
    /// The key of a service account.
    Service { email: String, key: Secret<String>, key_id: Option<String> },
}

/// The file, as it is written.
#[derive(Deserialize)]
struct Raw {
    #[serde(rename = "type")]
    kind: String,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
}

// === impl Places ===

impl Places {
    /// Reads the credentials; `None` if there is no file, and none was named.
    pub(crate) fn read(&self) -> Result<Option<Found>, GoogleError> {
        let path = self.named.as_deref().unwrap_or(&self.usual);
        let text = match read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.named.is_none() => {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(path, &error.to_string())),
        };
        // The messages of the parser could repeat a secret.
        let raw: Raw = serde_json::from_str(&text).map_err(|error| {
            unreadable(path, &format!("line {} cannot be understood", error.line()))
        })?;
        Found::of(raw).map(Some).map_err(|reason| unreadable(path, &reason))
    }
}

// === impl Found ===

impl Found {
    fn of(raw: Raw) -> Result<Self, String> {
        let missing = |key: &str| format!("it has no `{key}`");
        match raw.kind.as_str() {
            "authorized_user" => Ok(Self::User {
                client_id: raw.client_id.ok_or_else(|| missing("client_id"))?,
                client_secret: Secret::new(
                    raw.client_secret.ok_or_else(|| missing("client_secret"))?,
                ),
                refresh_token: Secret::new(
                    raw.refresh_token.ok_or_else(|| missing("refresh_token"))?,
                ),
            }),
            "service_account" => Ok(Self::Service {
                email: raw.client_email.ok_or_else(|| missing("client_email"))?,
                key: Secret::new(raw.private_key.ok_or_else(|| missing("private_key"))?),
                key_id: raw.private_key_id,
            }),
            other => Err(format!(
                "its type is `{other}`; Capstan knows `authorized_user` and `service_account`"
            )),
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(text)
}

fn unreadable(path: &Path, reason: &str) -> GoogleError {
    GoogleError::Unreadable { path: path.to_owned(), reason: reason.to_owned() }
}

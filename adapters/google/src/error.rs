//! The reasons why there is no token.

use std::path::PathBuf;

/// The reason why there is no token. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoogleError {
    /// There are no application default credentials.
    #[error(
        "there are no Google credentials at {}; run `gcloud auth application-default login`, or set \
         GOOGLE_APPLICATION_CREDENTIALS", .0.display()
    )]
    NoCredentials(PathBuf),
    /// The file cannot be read.
    #[error("the Google credentials in {} cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Google, or the metadata server, gives no token.
    #[error("{endpoint} gives no token: {reason}")]
    Refused {
        /// The endpoint.
        endpoint: String,
        /// The reason.
        reason: String,
    },
    /// The server must not get the token.
    #[error(
        "an access token of your Google account is sent only to hosts of Google \
         (`*.googleapis.com`), and not to `{0}`; use `service_account_impersonation` for others"
    )]
    ForeignHost(String),
    /// The token would be sent without encryption.
    #[error("tokens are sent only over https, and the address of the server is `{0}`")]
    Unencrypted(String),
}

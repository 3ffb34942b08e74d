//! The gateway's own OAuth authorization server.
//!
//! [`AuthorizationServer`] answers requests of one endpoint each and knows no transport: `http` has
//! its requests and responses, `settings` what the operator decides. `metadata`, `register`,
//! `authorize`, `token` and `revoke` are the endpoints; `documents` finds clients by their metadata
//! documents, `redirect` decides about redirect addresses, `sign_in` about users, `consent` writes
//! the pages. `keys` has the keys, `access_token` makes tokens, `validate` checks those that callers
//! present. `import` reads the state of another program.
//!
//! **Invariant:** a code is issued only after a person has agreed on the page of this client, in
//! the browser that the page was made for.

mod access_token;
mod authorize;
mod consent;
mod documents;
mod error;
mod events;
mod form_token;
mod http;
mod import;
mod keys;
mod metadata;
mod params;
mod password;
mod random;
mod rate_limit;
mod redirect;
mod register;
mod revoke;
mod server;
mod settings;
mod sign_in;
mod token;
mod upstream;
mod upstream_http;
mod validate;

pub use consent::{escape, page};
pub use documents::{ClientDocuments, HttpDocuments};
pub use events::{Event, EventLog};
pub use http::{Endpoint, Request, Response};
pub use import::{ImportError, Imported};
pub use password::{BadPassword, hash as hash_password, verify as verify_password};
pub use server::{AuthorizationServer, Ports, StartError};
pub use settings::{Settings, SettingsError, SignIn, Signing, TrustedProxy};
pub use upstream::{Upstream, UpstreamProvider, UpstreamSignIn, UpstreamUser};
pub use upstream_http::{HttpUpstream, UpstreamSettings};
pub use validate::{AccessTokens, Identity, Refused};

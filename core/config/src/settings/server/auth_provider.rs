//! The key `auth_provider`: tokens of an account instead of a login.

use crate::fields::{Fields, Words};
use crate::settings::define::keys;
use crate::settings::form::{OneOf, WordSchema};
use crate::source::problem::Problem;

/// An account whose tokens are sent to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudAccount {
    /// The kind of account.
    pub kind: ProviderKind,
    /// The scopes of the token; empty for the usual ones.
    pub scopes: Vec<String>,
    /// The audience of the ID token.
    pub target_audience: Option<String>,
    /// The service account to impersonate.
    pub target_service_account: Option<String>,
}

/// The kind of account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// No account: the login that the server asks for.
    DynamicDiscovery,
    /// The application default credentials of Google.
    GoogleCredentials,
    /// A service account of Google that the own account may impersonate.
    ServiceAccountImpersonation,
}

keys! {
    /// Tokens of an account instead of a login.
    pub(crate) table AuthProviderKeys
    by_hand {
        /// The account: your application default credentials at Google, a service account that they may impersonate, or none (`dynamic_discovery`: the login that the server asks for).
        r#type: WordSchema<ProviderKind>;
    }
    keys {
        /// The scopes of the access token. Default: `https://www.googleapis.com/auth/cloud-platform`.
        scopes: Vec<String>;
        /// The audience of the ID token, such as the client ID of Identity-Aware Proxy.
        target_audience: String;
        /// The e-mail address of the service account to impersonate.
        target_service_account: String;
    }
}

/// Reads the table; `None` if it is absent, has a mistake, or asks for the usual login.
pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<CloudAccount> {
    let mut nested = fields.nested("auth_provider")?;
    let keys = AuthProviderKeys::read(&mut nested);
    let AuthProviderKeys { scopes, target_audience, target_service_account } = keys;
    let kind = nested.word("type", ProviderKind::WORDS);
    let missing = match kind {
        None => Some("type"),
        Some(ProviderKind::ServiceAccountImpersonation) if target_audience.is_none() => {
            Some("target_audience")
        }
        Some(ProviderKind::ServiceAccountImpersonation) if target_service_account.is_none() => {
            Some("target_service_account")
        }
        Some(_) => None,
    };
    if let Some(missing) = missing.filter(|key| !nested.has(key)) {
        let message = format!("`{}` has no `{missing}`", nested.path());
        let help = "set it, or remove the table";
        nested.table_problem(Problem::error(message).help(help));
    }
    nested.finish();
    let scopes = scopes.unwrap_or_default();
    match kind? {
        ProviderKind::DynamicDiscovery => None,
        kind @ (ProviderKind::GoogleCredentials | ProviderKind::ServiceAccountImpersonation) => {
            Some(CloudAccount { kind, scopes, target_audience, target_service_account })
        }
    }
}

// === impl ProviderKind ===

impl OneOf for ProviderKind {
    const WORDS: Words<Self> = &[
        ("dynamic_discovery", Self::DynamicDiscovery),
        ("google_credentials", Self::GoogleCredentials),
        ("service_account_impersonation", Self::ServiceAccountImpersonation),
    ];
}

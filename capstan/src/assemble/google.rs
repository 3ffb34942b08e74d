//! Tokens of Google accounts: translates their configuration for the adapter.

use std::sync::Arc;

use capstan_app::Environment;
use capstan_config::{CloudAccount, ProviderKind};
use capstan_google::{Endpoints, GoogleTokens, Places, Wanted};
use capstan_hub::ports::Clock;
use capstan_model::Secret;

/// The tokens for a server. Nothing is requested yet.
pub(super) fn tokens(
    environment: &Environment,
    clock: &Arc<dyn Clock>,
    url: &str,
    provider: &CloudAccount,
) -> GoogleTokens {
    let wanted = match provider.kind {
        ProviderKind::ServiceAccountImpersonation => Wanted::Identity {
            audience: provider.target_audience.clone().unwrap_or_default(),
            account: provider.target_service_account.clone().unwrap_or_default(),
        },
        ProviderKind::GoogleCredentials | ProviderKind::DynamicDiscovery => {
            Wanted::Access { scopes: provider.scopes.clone() }
        }
    };
    let named = environment.filled_variable("GOOGLE_APPLICATION_CREDENTIALS");
    let folder = match environment.filled_variable("CLOUDSDK_CONFIG") {
        Some(folder) => folder.into(),
        None => environment.shared_config.join("gcloud"),
    };
    GoogleTokens {
        server: Secret::new(url.to_owned()),
        wanted,
        places: Places {
            named: named.map(Into::into),
            usual: folder.join("application_default_credentials.json"),
        },
        endpoints: endpoints(environment),
        clock: Arc::clone(clock),
    }
}

/// The endpoints; only variables of the user change them, never a file that comes with a project.
fn endpoints(environment: &Environment) -> Endpoints {
    let usual = Endpoints::default();
    let variable = |name, usual| environment.filled_variable(name).unwrap_or(usual);
    Endpoints {
        token: variable("CAPSTAN_GOOGLE_TOKEN_URL", usual.token),
        iam: variable("CAPSTAN_GOOGLE_IAM_URL", usual.iam),
        metadata: variable("GCE_METADATA_HOST", usual.metadata),
    }
}

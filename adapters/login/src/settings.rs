//! The configuration of one server's login.

use capstan_model::{Secret, ServerName};
use capstan_safety::address::AddressPolicy;

/// The login to a server.
#[derive(Clone, Debug)]
pub struct LoginSettings {
    /// The server.
    pub server: ServerName,
    /// Its address.
    pub url: Secret<String>,
    /// The network addresses that may be connected to.
    pub addresses: AddressPolicy,
    /// The name of the login, for several accounts at one address.
    pub login: Option<String>,
    /// The configured client and endpoints.
    pub oauth: OAuthSettings,
}

/// The configured client and endpoints of a login. All are optional.
#[derive(Clone, Debug, Default)]
pub struct OAuthSettings {
    /// The ID of the client, or the address of its metadata document.
    pub client_id: Option<String>,
    /// The address of the metadata document that our gateway publishes. It is used if there is no
    /// `client_id`, the authorization server reads such documents, and it is there.
    pub document: Option<String>,
    /// The secret of the client.
    pub client_secret: Option<Secret<String>>,
    /// The private key of the client, in PEM.
    pub private_key: Option<Secret<String>>,
    /// How the client authenticates; `None` to choose.
    pub client_auth: Option<ClientAuth>,
    /// How tokens are granted.
    pub grant: Grant,
    /// The page where a person logs in.
    pub auth_url: Option<String>,
    /// The token endpoint.
    pub token_url: Option<String>,
    /// The endpoint for the registration of clients.
    pub registration_url: Option<String>,
    /// The authorization server.
    pub issuer: Option<String>,
    /// The address of its metadata.
    pub metadata_url: Option<String>,
    /// The scopes to request; `None` for those that the server asks for.
    pub scopes: Option<Vec<String>>,
    /// The `audience` to request.
    pub audience: Vec<String>,
    /// The `resource` to request.
    pub resource: Option<String>,
    /// The port of the callback.
    pub callback_port: Option<u16>,
    /// The callback as the client is registered with it.
    pub redirect_uri: Option<String>,
    /// The token endpoint of the identity provider.
    pub idp_token_url: Option<String>,
    /// The ID of the client at the identity provider.
    pub idp_client_id: Option<String>,
    /// The secret of the client at the identity provider.
    pub idp_client_secret: Option<Secret<String>>,
    /// The ID token of the person.
    pub id_token: Option<Secret<String>>,
}

/// How tokens are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// To a person in a browser.
    #[default]
    Code,
    /// To a person who enters a code on another device.
    Device,
    /// To the client itself.
    ClientCredentials,
    /// By the identity provider of a company.
    Enterprise,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// With its ID alone.
    None,
    /// With its secret in the header `Authorization`.
    Basic,
    /// With its secret in the body.
    Post,
    /// With a token that its private key signs.
    PrivateKey,
}

// === impl Grant ===

impl Grant {
    /// True if no person is needed.
    pub fn is_automatic(self) -> bool {
        match self {
            Self::Code | Self::Device => false,
            Self::ClientCredentials | Self::Enterprise => true,
        }
    }
}

//! The decisions of the operator.

use std::time::Duration;

use capstan_model::Secret;
use capstan_safety::address::Network;
use url::{Host, Url};

use crate::redirect::RedirectPattern;
use crate::upstream::UpstreamProvider;

/// Smallest size of a signing secret, in bytes: that of the hash that it keys.
const MIN_SECRET: usize = 32;

/// The settings of the server, as configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The public address of the server, `iss` of all tokens.
    pub issuer: String,
    /// The public address of the gateway, if it is not the issuer.
    pub gateway: Option<String>,
    /// The keys that sign access tokens.
    pub signing: Signing,
    /// How users prove who they are.
    pub sign_in: SignIn,
    /// Lifetime of access tokens.
    pub access_token_ttl: Duration,
    /// Lifetime of refresh tokens.
    pub refresh_token_ttl: Duration,
    /// Lifetime of authorization codes.
    pub code_ttl: Duration,
    /// The scopes that clients may ask for.
    pub scopes: Vec<String>,
    /// Patterns of the redirect addresses that clients may use.
    pub redirect_patterns: Vec<String>,
    /// Roles that every token has.
    pub injected_roles: Vec<String>,
}

/// The keys that sign access tokens.
#[derive(Clone, Debug)]
pub enum Signing {
    /// HS256 with a configured secret.
    Secret(Secret<String>),
    /// ES256 with keys that the server makes and replaces.
    Es256,
    /// `EdDSA` with keys that the server makes and replaces.
    EdDsa,
}

/// How users prove who they are.
#[derive(Clone, Debug)]
pub enum SignIn {
    /// A proxy before the gateway knows them.
    Proxy(TrustedProxy),
    /// They type the password of a local user.
    Users,
    /// An OpenID Connect provider knows them.
    Upstream(UpstreamProvider),
}

/// A proxy that names users in headers.
#[derive(Clone, Debug)]
pub struct TrustedProxy {
    /// The addresses of the proxy. Other peers do not reach the authorization endpoint.
    pub networks: Vec<Network>,
    /// The header with the name of the user.
    pub user_header: String,
    /// The header with the user's groups, separated by commas.
    pub groups_header: String,
}

/// The reason why the settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The issuer is no address that clients accept.
    #[error(
        "the issuer `{0}` must be `https://HOST` without a path; `http` is for this machine only"
    )]
    Issuer(String),
    /// The secret can be guessed.
    #[error("the secret for tokens has fewer than {MIN_SECRET} bytes")]
    Secret,
    /// Everyone could name a user.
    #[error("no network of the trusted proxy is named, so everyone could name a user")]
    Networks,
    /// A header name is empty.
    #[error("a header of the trusted proxy has no name")]
    Header,
    /// A pattern is missing or could match another host.
    #[error(
        "`{0}` is no pattern of redirect addresses; `*` may be the end or one segment of the path"
    )]
    Pattern(String),
    /// A lifetime is zero.
    #[error("a lifetime of codes or tokens is zero")]
    Lifetime,
}

/// Settings that were checked.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) issuer: String,
    /// The public address of the gateway, without a slash at the end.
    pub(crate) gateway: String,
    pub(crate) sign_in: SignIn,
    pub(crate) access_token_ttl: Duration,
    pub(crate) refresh_token_ttl: Duration,
    pub(crate) code_ttl: Duration,
    pub(crate) scopes: Vec<String>,
    pub(crate) redirects: Vec<RedirectPattern>,
    pub(crate) injected_roles: Vec<String>,
}

// === impl Settings ===

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// If the server would be unsafe or unusable with them.
    pub(crate) fn check(self) -> Result<(Checked, Signing), SettingsError> {
        let issuer = issuer(&self.issuer)?;
        if matches!(&self.signing, Signing::Secret(secret) if secret.reveal().len() < MIN_SECRET) {
            return Err(SettingsError::Secret);
        }
        if let SignIn::Proxy(proxy) = &self.sign_in {
            if proxy.networks.is_empty() {
                return Err(SettingsError::Networks);
            }
            if proxy.user_header.trim().is_empty() || proxy.groups_header.trim().is_empty() {
                return Err(SettingsError::Header);
            }
        }
        let lifetimes = [self.access_token_ttl, self.refresh_token_ttl, self.code_ttl];
        if lifetimes.iter().any(Duration::is_zero) {
            return Err(SettingsError::Lifetime);
        }
        if self.redirect_patterns.is_empty() {
            return Err(SettingsError::Pattern(String::new()));
        }
        let redirects = self.redirect_patterns.iter().map(|pattern| {
            let parsed = RedirectPattern::parse(pattern);
            parsed.ok_or_else(|| SettingsError::Pattern(pattern.clone()))
        });
        let gateway = self.gateway.unwrap_or_else(|| issuer.clone());
        let checked = Checked {
            gateway: gateway.trim_end_matches('/').to_owned(),
            issuer,
            sign_in: self.sign_in,
            access_token_ttl: self.access_token_ttl,
            refresh_token_ttl: self.refresh_token_ttl,
            code_ttl: self.code_ttl,
            scopes: self.scopes,
            redirects: redirects.collect::<Result<_, _>>()?,
            injected_roles: self.injected_roles,
        };
        Ok((checked, self.signing))
    }
}

// === impl Checked ===

impl Checked {
    /// The resource that tokens are for: the gateway as a whole.
    pub(crate) fn resource(&self) -> String {
        format!("{}/mcp", self.gateway)
    }

    /// The resource of tokens for the one that a client asks for; `None` if it is not ours.
    ///
    /// All addresses of the gateway are one resource: which servers a caller may use is decided by
    /// access rules, for each call.
    pub(crate) fn own_resource(&self, asked: &str) -> Option<String> {
        let rest = asked.strip_prefix(&self.gateway)?;
        let is_path = rest.is_empty() || rest.starts_with('/');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-._~%".contains(c);
        (is_path && rest.chars().all(is_plain)).then(|| self.resource())
    }
}

/// Checks the issuer, and returns it as tokens name it.
fn issuer(text: &str) -> Result<String, SettingsError> {
    let bad = || SettingsError::Issuer(text.to_owned());
    let url = Url::parse(text).map_err(|_| bad())?;
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_local;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    let is_usable = is_safe && is_bare && is_anonymous;
    if is_usable { Ok(url.origin().ascii_serialization()) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let proxy = TrustedProxy {
            networks: vec!["127.0.0.1".parse().unwrap()],
            user_header: "x-forwarded-user".to_owned(),
            groups_header: "x-forwarded-groups".to_owned(),
        };
        Settings {
            issuer: "https://mcp.example.com".to_owned(),
            gateway: None,
            signing: Signing::Secret(Secret::new("s".repeat(32))),
            sign_in: SignIn::Proxy(proxy),
            access_token_ttl: Duration::from_hours(1),
            refresh_token_ttl: Duration::from_hours(30 * 24),
            code_ttl: Duration::from_mins(1),
            scopes: Vec::new(),
            redirect_patterns: vec!["https://chat.openai.com/aip/*/oauth/callback".to_owned()],
            injected_roles: Vec::new(),
        }
    }

    /// C36: the boot fails with a secret of 31 bytes and without networks.
    #[test]
    fn unsafe_settings_do_not_start_a_server() {
        assert!(settings().check().is_ok());
        let check = |change: fn(&mut Settings)| {
            let mut settings = settings();
            change(&mut settings);
            settings.check().map(drop).unwrap_err()
        };
        let short = |s: &mut Settings| s.signing = Signing::Secret(Secret::new("s".repeat(31)));
        assert_eq!(check(short), SettingsError::Secret);
        let open = |s: &mut Settings| {
            if let SignIn::Proxy(proxy) = &mut s.sign_in {
                proxy.networks.clear();
            }
        };
        assert_eq!(check(open), SettingsError::Networks);
        assert_eq!(check(|s| s.code_ttl = Duration::ZERO), SettingsError::Lifetime);
        let star = SettingsError::Pattern("https://*".to_owned());
        assert_eq!(check(|s| s.redirect_patterns.push("https://*".to_owned())), star);
        assert!(matches!(check(|s| s.redirect_patterns.clear()), SettingsError::Pattern(_)));
    }

    #[test]
    fn an_issuer_is_an_encrypted_origin_or_this_machine() {
        for (text, expected) in [
            ("https://mcp.example.com", "https://mcp.example.com"),
            ("https://mcp.example.com/", "https://mcp.example.com"),
            ("https://mcp.example.com:8443", "https://mcp.example.com:8443"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ] {
            assert_eq!(issuer(text).unwrap(), expected);
        }
        for bad in [
            "http://mcp.example.com",
            "https://mcp.example.com/base",
            "https://mcp.example.com?x",
            "https://user@mcp.example.com",
            "ftp://localhost",
            "mcp.example.com",
            "",
        ] {
            assert!(issuer(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_address_of_the_gateway_is_one_resource_and_no_other_is() {
        let (checked, _) = settings().check().unwrap();
        let own = |asked: &str| checked.own_resource(asked);
        for asked in ["", "/", "/mcp", "/sse", "/servers/files/mcp"] {
            let asked = format!("https://mcp.example.com{asked}");
            assert_eq!(own(&asked).as_deref(), Some("https://mcp.example.com/mcp"), "{asked}");
        }
        for other in [
            "https://other.test/mcp",
            "https://mcp.example.com.evil.test/mcp",
            "https://mcp.example.com@evil.test",
            "https://mcp.example.com:444/mcp",
            "http://mcp.example.com/mcp",
            "https://mcp.example.com/mcp#x",
            "",
        ] {
            assert_eq!(own(other), None, "{other}");
        }
    }
}

//! Logins to servers: translates their configuration for the adapter.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use capstan_app::{
    AppError, ErrorKind, LoginPage, LoginState, Logins, Logout, Revocation, Secrets, Setup,
    WantedLogin, WantedLogout, secrets, server_settings,
};
use capstan_config::{
    ClientAuth, Config, Grant, Kind, OAuth, OAuthConfig, Remote, Server, ServerEntry,
};
use capstan_http::Credentials;
use capstan_hub::ports::{BoxFuture, Clock, LoginPerson, PrincipalId, Vault};
use capstan_import::logins::ForeignLogin;
use capstan_login::{
    ForeignTokens, LoggedIn, Login, LoginError, LoginRequest, LoginSettings, OAuthSettings, Revoke,
};
use capstan_mcp::{CallerCredentials, FindCredentials};
use capstan_model::{Secret, ServerName};
use jiff::Timestamp;

/// The logins of this process.
pub(crate) struct ServerLogins {
    vault: Arc<dyn Vault>,
    clock: Arc<dyn Clock>,
    secrets: Arc<Secrets>,
    /// The logins that servers use, so that a person who logs in profits from what they answered.
    used: Mutex<HashMap<ServerName, Login>>,
}

/// The logins of callers to one server, made from that of the operator.
struct OfCallers(Login);

/// The name of a caller's login.
fn login_of(caller: PrincipalId) -> String {
    format!("caller-{}", caller.to_hex())
}

// === impl OfCallers ===

impl FindCredentials for OfCallers {
    fn find(
        &self,
        caller: PrincipalId,
    ) -> BoxFuture<'_, Result<Option<Arc<dyn Credentials>>, String>> {
        Box::pin(async move {
            let login = self.0.named(&login_of(caller)).map_err(|error| error.to_string())?;
            let status = login.status().await.map_err(|error| error.to_string())?;
            Ok(status.map(|_| Arc::new(login) as Arc<dyn Credentials>))
        })
    }
}

// === impl ServerLogins ===

impl ServerLogins {
    pub(crate) fn new(secrets: Arc<Secrets>, clock: Arc<dyn Clock>) -> Self {
        Self { vault: Arc::clone(&secrets.vault), clock, secrets, used: Mutex::default() }
    }

    /// The login to a server; `None` if its credentials are configured, or it must have none.
    pub(crate) fn of(
        &self,
        config: &Config,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
    ) -> Option<Login> {
        let has_own = remote.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let has_own = has_own || remote.headers_helper.is_some() || remote.auth_provider.is_some();
        if server.oauth == OAuth::Off || has_own {
            return None;
        }
        // An invalid address fails when the server is connected to, with a better error.
        let login = self.create(config, entry, server, remote).ok()?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(entry.name.clone(), login.clone());
        drop(used);
        Some(login)
    }

    /// Finds the logins of callers to a server that they use with accounts of their own.
    pub(crate) fn of_callers(
        &self,
        config: &Config,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
    ) -> Option<CallerCredentials> {
        let login = self.of(config, entry, server, remote)?;
        Some(CallerCredentials(Arc::new(OfCallers(login))))
    }

    /// The login of a caller to a server that is in use.
    pub(crate) fn of_caller(&self, server: &ServerName, caller: PrincipalId) -> Option<Login> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned();
        used?.named(&login_of(caller)).ok()
    }

    fn create(
        &self,
        config: &Config,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
    ) -> Result<Login, LoginError> {
        let document = config.gateway.client_document();
        let oauth = server.oauth_config.as_ref().map(oauth).unwrap_or_default();
        let settings = LoginSettings {
            server: entry.name.clone(),
            url: Secret::new(remote.url.clone()),
            addresses: server_settings::addresses(entry, server),
            login: server.login.clone(),
            oauth: OAuthSettings { document, ..oauth },
        };
        Login::new(settings, Arc::clone(&self.vault), Arc::clone(&self.clock))
    }

    /// Resolves the references of an entry to secrets, then creates its login.
    async fn create_resolved(
        &self,
        setup: &Setup,
        entry: &ServerEntry,
        server: &Server,
        remote: &Remote,
    ) -> Result<Result<Login, LoginError>, AppError> {
        let config = &setup.loaded.config;
        if !secrets::must_be_resolved(server) {
            return Ok(self.create(config, entry, server, remote));
        }
        let resolved = self.secrets.resolve(config, entry).await.map_err(AppError::config)?;
        let entry = resolved.entry.unwrap_or_else(|| entry.clone());
        let server = entry.status.as_ref().unwrap_or(server);
        let remote = match &server.kind {
            Kind::Http(remote) | Kind::Sse(remote) => remote,
            Kind::Stdio(_) | Kind::Cli(_) | Kind::OpenApi(_) => remote,
        };
        Ok(self.create(config, &entry, server, remote))
    }

    /// The login that a person means.
    async fn find(
        &self,
        setup: &Setup,
        name: &ServerName,
        login: Option<&str>,
    ) -> Result<Login, AppError> {
        let entry = setup.server(name.as_str())?;
        let server = match &entry.status {
            Ok(server) => server,
            Err(problem) => return Err(AppError::config(problem.message.clone())),
        };
        let remote = match &server.kind {
            Kind::Http(remote) | Kind::Sse(remote) => remote,
            Kind::Stdio(_) | Kind::Cli(_) | Kind::OpenApi(_) => {
                let message = format!("`{name}` is no remote MCP server, so it has no login");
                return Err(AppError::usage(message));
            }
        };
        if server.oauth == OAuth::Off {
            let message = format!("`oauth` is `off` under `[servers.{name}]`");
            return Err(AppError::usage(message).hint("set it to `auto` to log in"));
        }
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let found = match used {
            Some(used) => Ok(used),
            None => self.create_resolved(setup, entry, server, remote).await?,
        };
        let named = found.and_then(|found| match login {
            Some(login) => found.named(login),
            None => Ok(found),
        });
        named.map_err(|error| failure(name, &error))
    }

    fn login_name(setup: &Setup, name: &ServerName, given: Option<&str>) -> Option<String> {
        let entry = setup.loaded.config.servers.get(name);
        let configured = entry.and_then(|entry| entry.status.as_ref().ok()?.login.clone());
        given.map(ToOwned::to_owned).or(configured)
    }
}

impl Logins for ServerLogins {
    fn log_in<'a>(
        &'a self,
        setup: &'a Setup,
        wanted: &'a WantedLogin,
        person: &'a dyn LoginPerson,
    ) -> BoxFuture<'a, Result<LoginState, AppError>> {
        Box::pin(async move {
            let WantedLogin { server, login, scopes, page, port, wait } = wanted;
            let found = self.find(setup, server, login.as_deref()).await?;
            let request = LoginRequest {
                scopes: scopes.clone(),
                browser: *page == LoginPage::Opened,
                port: *port,
                wait: *wait,
                routes: None,
            };
            let done = found.log_in(&request, person).await;
            let done = done.map_err(|error| failure(server, &error))?;
            Ok(state(server, Self::login_name(setup, server, login.as_deref()), done))
        })
    }

    fn log_out<'a>(
        &'a self,
        setup: &'a Setup,
        wanted: &'a WantedLogout,
    ) -> BoxFuture<'a, Result<Logout, AppError>> {
        Box::pin(async move {
            let found = self.find(setup, &wanted.server, wanted.login.as_deref()).await?;
            let revoke = match wanted.revocation {
                Revocation::Requested => Revoke::Yes,
                Revocation::NotRequested => Revoke::No,
            };
            let done = found.log_out(revoke).await;
            let done = done.map_err(|error| failure(&wanted.server, &error))?;
            let not_revoked = done.revoked.and_then(Result::err).map(|error| error.to_string());
            Ok(Logout { was_logged_in: done.was_logged_in, not_revoked })
        })
    }

    fn take_over<'a>(
        &'a self,
        setup: &'a Setup,
        server: &'a ServerName,
        foreign: &'a ForeignLogin,
    ) -> BoxFuture<'a, Result<Option<LoginState>, AppError>> {
        Box::pin(async move {
            let found = self.find(setup, server, None).await?;
            let tokens = ForeignTokens {
                client: foreign.client.as_ref().map(|client| client.id.clone()),
                client_secret: foreign.client.as_ref().and_then(|client| client.secret.clone()),
                access: foreign.access.clone(),
                refresh: foreign.refresh.clone(),
                expires: foreign.expires,
            };
            let taken = found.take_over(tokens).await;
            let taken = taken.map_err(|error| failure(server, &error))?;
            Ok(taken.map(|taken| state(server, Self::login_name(setup, server, None), taken)))
        })
    }

    fn status<'a>(
        &'a self,
        setup: &'a Setup,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Option<LoginState>, AppError>> {
        Box::pin(async move {
            let found = self.find(setup, server, None).await?.status().await;
            let found = found.map_err(|error| failure(server, &error))?;
            Ok(found.map(|found| state(server, Self::login_name(setup, server, None), found)))
        })
    }

    fn all<'a>(
        &'a self,
        setup: &'a Setup,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Vec<LoginState>, AppError>> {
        Box::pin(async move {
            let all = self.find(setup, server, None).await?.all().await;
            let all = all.map_err(|error| failure(server, &error))?;
            Ok(all.into_iter().map(|(login, found)| state(server, login, found)).collect())
        })
    }
}

fn state(server: &ServerName, login: Option<String>, found: LoggedIn) -> LoginState {
    LoginState {
        server: server.clone(),
        login,
        account: found.account,
        issuer: found.issuer,
        scopes: found.scopes,
        expires: found.expires.and_then(|expires| Timestamp::from_second(expires).ok()),
        renews: found.renews,
        stored_in: found.place.to_string(),
    }
}

fn failure(server: &ServerName, error: &LoginError) -> AppError {
    let is_setting = matches!(error, LoginError::Port { .. } | LoginError::Settings(_));
    let kind = if is_setting { ErrorKind::Config } else { ErrorKind::Auth };
    let told = AppError::new(kind, format!("no login to `{server}`: {error}"));
    match error.hint(server.as_str()) {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

fn oauth(config: &OAuthConfig) -> OAuthSettings {
    let config = config.clone();
    OAuthSettings {
        client_id: config.client_id,
        document: None,
        client_secret: config.client_secret,
        private_key: config.private_key,
        client_auth: config.client_auth.map(client_auth),
        grant: grant(config.grant),
        auth_url: config.auth_url,
        token_url: config.token_url,
        registration_url: config.registration_url,
        issuer: config.issuer,
        metadata_url: config.metadata_url,
        scopes: config.scopes,
        audience: config.audience,
        resource: config.resource,
        callback_port: config.callback_port,
        redirect_uri: config.redirect_uri,
        idp_token_url: config.idp_token_url,
        idp_client_id: config.idp_client_id,
        idp_client_secret: config.idp_client_secret,
        id_token: config.id_token,
    }
}

fn grant(grant: Grant) -> capstan_login::Grant {
    match grant {
        Grant::Code => capstan_login::Grant::Code,
        Grant::Device => capstan_login::Grant::Device,
        Grant::ClientCredentials => capstan_login::Grant::ClientCredentials,
        Grant::Enterprise => capstan_login::Grant::Enterprise,
    }
}

fn client_auth(auth: ClientAuth) -> capstan_login::ClientAuth {
    match auth {
        ClientAuth::None => capstan_login::ClientAuth::None,
        ClientAuth::Basic => capstan_login::ClientAuth::Basic,
        ClientAuth::Post => capstan_login::ClientAuth::Post,
        ClientAuth::PrivateKey => capstan_login::ClientAuth::PrivateKey,
    }
}

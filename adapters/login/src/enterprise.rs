//! Grants by the identity provider of a company: it exchanges the ID token of a person for a token
//! that the authorization server of the server accepts (ID-JAG).

use serde_json::Value;

use crate::client::Client;
use crate::discovery::Discovered;
use crate::error::LoginError;
use crate::token::{self, Granted, TokenRequest};
use crate::web::{Form, Web};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Requests tokens through the identity provider.
pub(crate) async fn request(
    request: &TokenRequest<'_>,
    discovered: &Discovered,
    scopes: &[String],
) -> Result<Granted, LoginError> {
    let assertion = exchange(request, discovered, scopes).await?;
    let mut form = token::form(BEARER, discovered, request.settings);
    form.add("assertion", assertion);
    add_scopes(&mut form, scopes);
    request.send(form).await
}

/// Exchanges the ID token for a token for the authorization server.
async fn exchange(
    request: &TokenRequest<'_>,
    discovered: &Discovered,
    scopes: &[String],
) -> Result<String, LoginError> {
    let settings = request.settings;
    let lacking = |key: &str| LoginError::Settings(format!("`oauth_config` has no `{key}`"));
    let url = settings.idp_token_url.as_deref().ok_or_else(|| lacking("idp_token_url"))?;
    let id = settings.idp_client_id.as_deref().ok_or_else(|| lacking("idp_client_id"))?;
    let token = settings.id_token.as_ref().ok_or_else(|| lacking("id_token"))?;
    let to = Web::configured("the identity provider", url)?;
    let mut form = Form::new("grant_type", EXCHANGE);
    form.add("requested_token_type", ID_JAG);
    form.add("audience", discovered.issuer.as_deref().unwrap_or(discovered.token.url().as_str()));
    form.add("resource", &discovered.resource);
    form.add("subject_token", token.reveal());
    form.add("subject_token_type", ID_TOKEN);
    add_scopes(&mut form, scopes);
    let client = Client::at_provider(id, settings.idp_client_secret.as_ref());
    let asking = TokenRequest { to: &to, client: &client, issuer: None, ..*request };
    let body = asking.exchange(&mut form).await?;
    let is_jag =
        body.get("issued_token_type").and_then(Value::as_str).is_none_or(|kind| kind == ID_JAG);
    let assertion = body.get("access_token").and_then(Value::as_str).filter(|_| is_jag);
    assertion.map(ToOwned::to_owned).ok_or_else(|| to.unusable("it has no identity assertion"))
}

/// Adds the scopes to a form, if there are any.
pub(crate) fn add_scopes(form: &mut Form, scopes: &[String]) {
    if !scopes.is_empty() {
        form.add("scope", scopes.join(" "));
    }
}

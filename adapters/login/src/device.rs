//! Logins with another device (RFC 8628): the person enters a code on a page, and we ask until that
//! is done.

use std::time::Duration;

use capstan_hub::ports::{LoginPerson, LoginStep};
use serde::Deserialize;
use url::Url;

use crate::discovery::Discovered;
use crate::enterprise::add_scopes;
use crate::error::LoginError;
use crate::token::{self, Granted, TokenRequest};
use crate::web::{Endpoint, Form};

/// The grant of such a login.
pub(crate) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The time between two requests, if the authorization server names none.
const USUAL: u64 = 5;

/// The time that is added when the authorization server asks to slow down.
const SLOWER: u64 = 5;

/// The longest time between two requests.
const LONGEST: u64 = 60;

/// The longest time that a code is waited for.
const LAST: u64 = 30 * 60;

#[derive(Deserialize)]
struct Device {
    #[serde(rename = "device_code")]
    secret: String,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Option<u64>,
    interval: Option<u64>,
}

/// Logs a person in with another device.
pub(crate) async fn log_in(
    request: &TokenRequest<'_>,
    at: &Endpoint,
    discovered: &Discovered,
    scopes: &[String],
    person: &dyn LoginPerson,
) -> Result<Granted, LoginError> {
    let device = begin(request, at, discovered, scopes).await?;
    person.show(LoginStep::EnterCode {
        url: &device.verification_uri,
        filled_in: device.verification_uri_complete.as_deref(),
        code: &device.user_code,
        issuer: discovered.issuer.as_deref(),
        scopes,
    });
    let lasts = Duration::from_secs(device.expires_in.unwrap_or(LAST).min(LAST));
    let mut interval = device.interval.unwrap_or(USUAL).clamp(1, LONGEST);
    let (clock, begun) = (request.clock, request.clock.monotonic());
    while clock.monotonic().saturating_sub(begun) < lasts {
        clock.sleep(Duration::from_secs(interval)).await;
        let mut form = token::form(GRANT, discovered, request.settings);
        form.add("device_code", &device.secret);
        match request.send(form).await {
            Ok(granted) => return Ok(granted),
            Err(LoginError::Refused { code, .. }) if code == "authorization_pending" => {}
            Err(LoginError::Refused { code, .. }) if code == "slow_down" => {
                interval = interval.saturating_add(SLOWER).min(LONGEST);
            }
            // The network may come back while the person types.
            Err(LoginError::NoAnswer { .. }) => interval = interval.saturating_mul(2).min(LONGEST),
            Err(error) => return Err(error),
        }
    }
    Err(LoginError::TimedOut(lasts))
}

async fn begin(
    request: &TokenRequest<'_>,
    at: &Endpoint,
    discovered: &Discovered,
    scopes: &[String],
) -> Result<Device, LoginError> {
    let mut form = Form::new("resource", &discovered.resource);
    add_scopes(&mut form, scopes);
    let body = TokenRequest { to: at, ..*request }.exchange(&mut form).await?;
    let device = Device::deserialize(&body).map_err(|_| at.unusable("it has no code"))?;
    let pages = [Some(&device.verification_uri), device.verification_uri_complete.as_ref()];
    if pages.into_iter().flatten().any(|page| !is_page(page)) {
        return Err(at.unusable("its page is not an `https://` address"));
    }
    Ok(device)
}

/// True if a person may be sent to the page.
pub(crate) fn is_page(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

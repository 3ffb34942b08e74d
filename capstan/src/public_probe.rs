//! Sends the requests of `capstan doctor --public-url`.

use std::sync::Arc;
use std::time::Duration;

use capstan_app::{ProbeAnswer, ProbeRequest, PublicProbe};
use capstan_http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use capstan_http::{Client, HttpRequest, Method, Payload, WebAddress};
use capstan_hub::ports::BoxFuture;
use capstan_model::Trust;
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;
use tokio::time::timeout;

/// Time limit of a request.
const LIMIT: Duration = Duration::from_secs(15);

/// Longest answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

/// Sends requests over the network of this machine.
pub(crate) struct HttpProbe;

async fn send(request: ProbeRequest) -> Result<ProbeAnswer, String> {
    let ProbeRequest { method, near, url, headers: more, body } = request;
    let is_near = url.strip_prefix(&near).is_some_and(|rest| rest.starts_with('/'));
    // The operator named this origin; addresses that it names itself must be public.
    let (address, trust) = if is_near {
        (WebAddress::parse(&url)?, Trust::Trusted)
    } else {
        (WebAddress::discover(&url)?, Trust::Untrusted)
    };
    let policy = AddressPolicy { trust, ..AddressPolicy::default() };
    let masker = Arc::new(Masker::new(std::iter::empty()));
    let client = Client::new(&address, &[], masker, &policy)?;
    let mut headers = HeaderMap::new();
    for (name, value) in more {
        let value = HeaderValue::from_str(&value).map_err(|error| error.to_string())?;
        headers.insert(HeaderName::from_static(name), value);
    }
    if !body.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let method = if method == "POST" { Method::POST } else { Method::GET };
    let to = client.target().clone();
    let request = HttpRequest { method, to, headers, body: Payload::from(body.into_bytes()) };
    let response = client.send_once(Box::new(request)).await.map_err(|error| error.to_string())?;
    let headers = response.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let (status, headers) = (response.status.as_u16(), headers.collect());
    let (body, _) =
        client.read(response.body, MAX_ANSWER).await.map_err(|error| error.to_string())?;
    Ok(ProbeAnswer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

impl PublicProbe for HttpProbe {
    fn send(&self, request: ProbeRequest) -> BoxFuture<'_, Result<ProbeAnswer, String>> {
        Box::pin(async move {
            let sent = timeout(LIMIT, send(request)).await;
            sent.unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())))
        })
    }
}

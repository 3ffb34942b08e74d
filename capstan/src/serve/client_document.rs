//! Publishes our metadata document, which authorization servers read instead of registering us.

use bytes::Bytes;
use capstan_config::{CLIENT_DOCUMENT, Loaded};
use capstan_gateway::http::{Body, HttpRequest, PublicEndpoint, Routes};
use capstan_hub::ports::BoxFuture;
use capstan_login::{callback_at, client_document};
use futures::FutureExt;
use futures::future::ready;
use hyper::Response;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::http::{Method, StatusCode};

/// The metadata document, as it is sent.
#[derive(Clone)]
pub(super) struct ClientDocument(Bytes);

// === impl ClientDocument ===

impl ClientDocument {
    /// The document of a gateway with a public address.
    pub(super) fn of(loaded: &Loaded) -> Option<Self> {
        let config = &loaded.config;
        let address = config.gateway.client_document()?;
        let settings = config.servers.values().filter_map(|entry| {
            entry.status.as_ref().ok().and_then(|server| server.oauth_config.as_ref())
        });
        let mut ports: Vec<u16> = loaded.environment.oauth_port.into_iter().collect();
        let mut callbacks = Vec::new();
        for login in settings {
            callbacks.extend(login.redirect_uri.clone());
            ports.extend(login.callback_port);
        }
        callbacks.extend(ports.into_iter().filter(|port| *port != 0).map(callback_at));
        Some(Self(client_document(&address, &callbacks).to_string().into()))
    }

    /// Mounts the document. Everyone may read it.
    pub(super) fn mount(self, routes: Routes) -> Routes {
        routes.public(CLIENT_DOCUMENT, self)
    }
}

impl PublicEndpoint for ClientDocument {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        let is_read = matches!(request.head.method, Method::GET | Method::HEAD);
        let body = if is_read { self.0.clone() } else { Bytes::new() };
        let mut response = Response::new(Body::from(body));
        let headers = response.headers_mut();
        if is_read {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        } else {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        }
        ready(response).boxed()
    }
}

//! Pages for the operator: health, readiness and metrics.

use std::sync::Arc;

use capstan_model::Caller;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use hyper::Response;
use hyper::http::{Method, StatusCode};

use crate::Gateway;
use crate::transport::http::response::body::{self, Body};
use crate::transport::http::routes::{Endpoint, HttpRequest, PublicEndpoint, Routes};

/// The path of the metrics, at either address.
const METRICS: &str = "/metrics";

struct Health;

struct Readiness(Arc<Gateway>);

/// The metrics of the servers that the caller may use.
struct Metrics(Arc<Gateway>);

/// The metrics of all servers, at a separate address.
struct AllMetrics(Arc<Gateway>);

/// Explains that the metrics are at a separate address.
struct MovedMetrics;

/// Mounts the pages, with metrics that show each caller its servers.
pub fn mount(routes: Routes, gateway: &Arc<Gateway>) -> Routes {
    mount_status(routes, gateway).authenticated(METRICS, Metrics(Arc::clone(gateway)))
}

/// Mounts the pages without metrics, which are at a separate address.
pub fn mount_without_metrics(routes: Routes, gateway: &Arc<Gateway>) -> Routes {
    mount_status(routes, gateway).public(METRICS, MovedMetrics)
}

/// The routes at the address of the metrics.
pub(crate) fn metrics_only(gateway: &Arc<Gateway>) -> Routes {
    let routes = Routes::new("not found; the metrics are at `/metrics`");
    routes.public(METRICS, AllMetrics(Arc::clone(gateway)))
}

fn mount_status(routes: Routes, gateway: &Arc<Gateway>) -> Routes {
    routes.public("/health", Health).public("/ready", Readiness(Arc::clone(gateway)))
}

/// Answers `GET` with a text and refuses other methods.
fn page<'a>(
    request: &HttpRequest,
    text: impl FnOnce() -> (StatusCode, String),
) -> BoxFuture<'a, Response<Body>> {
    let response = if request.head.method == Method::GET {
        let (status, text) = text();
        body::text(status, text)
    } else {
        body::wrong_method("GET")
    };
    ready(response).boxed()
}

// === impl Health ===

impl PublicEndpoint for Health {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        page(&request, || (StatusCode::OK, "ok\n".to_owned()))
    }
}

// === impl Readiness ===

impl PublicEndpoint for Readiness {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        page(&request, || {
            if self.0.is_ready() {
                (StatusCode::OK, "ready\n".to_owned())
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned())
            }
        })
    }
}

// === impl Metrics ===

impl Endpoint for Metrics {
    fn serve(&self, request: HttpRequest, caller: Arc<Caller>) -> BoxFuture<'_, Response<Body>> {
        page(&request, || (StatusCode::OK, self.0.metrics_for(&caller)))
    }
}

// === impl AllMetrics ===

impl PublicEndpoint for AllMetrics {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        page(&request, || (StatusCode::OK, self.0.metrics()))
    }
}

// === impl MovedMetrics ===

impl PublicEndpoint for MovedMetrics {
    fn serve(&self, _: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        let words = "the metrics have a separate address: `gateway.metrics_listen`";
        ready(body::refusal(StatusCode::NOT_FOUND, words)).boxed()
    }
}

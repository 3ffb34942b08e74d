//! An OpenAPI document as a server: translates its configuration for the adapter.

use std::path::Path;
use std::sync::Arc;

use capstan_app::server_settings;
use capstan_config::{OpenApi, Server, ServerEntry};
use capstan_hub::ports::Backend;
use capstan_model::Secret;
use capstan_openapi::{OpenApiServer, OpenApiSettings, Source};
use capstan_policy::Glob;

/// The server for a document. Nothing is read or fetched yet.
pub(crate) fn server(
    entry: &ServerEntry,
    server: &Server,
    openapi: &OpenApi,
    cache: &Path,
    max_response: usize,
) -> Arc<dyn Backend> {
    // The braces of a path are literal, not part of a pattern.
    let globs = |patterns: &[String]| patterns.iter().map(|text| Glob::stars(text)).collect();
    let headers = openapi.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    Arc::new(OpenApiServer::new(OpenApiSettings {
        name: entry.name.clone(),
        source: source(entry, &openapi.document),
        base_url: openapi.base_url.clone().map(Secret::new),
        headers: headers.collect(),
        auth: openapi.auth.iter().map(|(name, one)| (name.clone(), one.clone())).collect(),
        secrets: server_settings::document_secrets(entry, openapi),
        tags: openapi.tags.clone(),
        only: openapi.only.as_deref().map(globs),
        except: globs(&openapi.except),
        addresses: server_settings::addresses(entry, server),
        startup_timeout: server.startup_timeout,
        timeout: server.timeout,
        answer: max_response,
        cache: Some(cache.to_owned()),
    }))
}

/// The source of the document; a file is relative to the folder of the file that names it.
fn source(entry: &ServerEntry, document: &str) -> Source {
    if document.contains("://") {
        return Source::Web(Secret::new(document.to_owned()));
    }
    let folder = Path::new(&entry.origin.file).parent().map(Path::to_owned);
    Source::File(folder.unwrap_or_default().join(document))
}

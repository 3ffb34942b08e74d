//! An OpenAPI document as a server: translates its configuration for the adapter.

use std::path::Path;
use std::sync::Arc;

use capstan_config::{OpenApi, Server, ServerEntry};
use capstan_hub::ports::Backend;
use capstan_model::Secret;
use capstan_model::secret::is_secret_name;
use capstan_openapi::{OpenApiServer, OpenApiSettings, Source};
use capstan_policy::Glob;
use capstan_safety::address::AddressPolicy;

/// Maximum size of a response that is read, in bytes.
const MAX_ANSWER: u64 = 4 * 1024 * 1024;

/// Upper bound on how much larger an answer is than the response: it contains the response twice,
/// as JSON.
const GROWTH: u64 = 4;

/// Headers with credentials that their names do not reveal.
const CREDENTIALS: &[&str] = &["authorization", "cookie", "proxy-authorization"];

/// Folders and limits for the server.
pub(crate) struct Around<'a> {
    pub(crate) cache: &'a Path,
    pub(crate) max_answer: u64,
    /// Returns the secret parts of a URL.
    pub(crate) url_secrets: fn(&str) -> Vec<String>,
}

/// The server for a document. Nothing is read or fetched yet.
pub(crate) fn server(
    entry: &ServerEntry,
    server: &Server,
    openapi: &OpenApi,
    around: &Around<'_>,
) -> Arc<dyn Backend> {
    // The braces of a path are literal, not part of a pattern.
    let globs = |patterns: &[String]| patterns.iter().map(|text| Glob::stars(text)).collect();
    let answer = MAX_ANSWER.min(around.max_answer / GROWTH);
    let headers = openapi.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    Arc::new(OpenApiServer::new(OpenApiSettings {
        name: entry.name.clone(),
        source: source(entry, &openapi.document),
        base_url: openapi.base_url.clone().map(Secret::new),
        headers: headers.collect(),
        auth: openapi.auth.iter().map(|(name, one)| (name.clone(), one.clone())).collect(),
        secrets: secrets(entry, openapi, around),
        tags: openapi.tags.clone(),
        only: openapi.only.as_deref().map(globs),
        except: globs(&openapi.except),
        addresses: addresses(entry, server),
        startup_timeout: server.startup_timeout,
        timeout: server.timeout,
        answer: usize::try_from(answer).unwrap_or(usize::MAX),
        cache: Some(around.cache.to_owned()),
    }))
}

/// The policy for the addresses at which a server may be reached.
pub(crate) fn addresses(entry: &ServerEntry, server: &Server) -> AddressPolicy {
    let (trust, networks) = (server.trust, server.networks.clone());
    AddressPolicy { server: Some(entry.name.clone()), trust, networks }
}

/// The source of the document; a file is relative to the folder of the file that names it.
fn source(entry: &ServerEntry, document: &str) -> Source {
    if document.contains("://") {
        return Source::Web(Secret::new(document.to_owned()));
    }
    let folder = Path::new(&entry.origin.file).parent().map(Path::to_owned);
    Source::File(folder.unwrap_or_default().join(document))
}

/// Texts that are masked in the interface's output.
///
/// Headers without credentials are not masked: answers may legitimately contain their values.
fn secrets(entry: &ServerEntry, openapi: &OpenApi, around: &Around<'_>) -> Vec<Secret<String>> {
    let opens = |name: &String| {
        is_secret_name(name) || CREDENTIALS.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    let headers = openapi.headers.iter().filter(|(name, _)| opens(name)).map(|(_, value)| value);
    // The interface may repeat the token without its scheme.
    let tokens = headers.flat_map(|value| {
        let token = value.reveal().split_once(' ').map(|(_, token)| Secret::new(token.to_owned()));
        std::iter::once(value.clone()).chain(token)
    });
    let urls = openapi.base_url.iter().chain([&openapi.document]);
    let in_urls = urls.flat_map(|url| (around.url_secrets)(url)).map(Secret::new);
    let in_auth = openapi.auth.values().map(|credentials| credentials.secret().clone());
    tokens.chain(in_urls).chain(in_auth).chain(entry.secrets.iter().cloned()).collect()
}

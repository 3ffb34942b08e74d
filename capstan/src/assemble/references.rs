//! Servers whose settings refer to secrets: they are completed when they connect.

use std::sync::Arc;

use capstan_app::Secrets;
use capstan_config::{Loaded, ServerEntry};
use capstan_http::{FetchedHeaders, HeaderSource, Headers};
use capstan_hub::ports::{Backend, BoxFuture};
use capstan_lazy::{Completed, Completion, DeferredServer};

use super::Assembly;

/// Resolves the references of an entry and makes its server.
struct Resolving {
    assembly: Assembly,
    entry: ServerEntry,
}

/// Resolves the headers of an entry.
struct ResolvingHeaders {
    secrets: Arc<Secrets>,
    loaded: Arc<Loaded>,
    entry: ServerEntry,
}

/// A server that is made when it connects.
pub(super) fn deferred(assembly: &Assembly, entry: &ServerEntry) -> Arc<dyn Backend> {
    let completion = Resolving { assembly: assembly.clone(), entry: entry.clone() };
    Arc::new(DeferredServer::new(entry.name.clone(), Arc::new(completion)))
}

/// Credentials with the headers that must be resolved.
pub(super) fn headers(assembly: &Assembly, entry: &ServerEntry) -> FetchedHeaders {
    let source = ResolvingHeaders {
        secrets: Arc::clone(&assembly.secrets),
        loaded: Arc::clone(&assembly.loaded),
        entry: entry.clone(),
    };
    FetchedHeaders::new(Arc::new(source))
}

impl Completion for Resolving {
    fn complete(&self) -> BoxFuture<'static, Result<Completed, String>> {
        let (assembly, entry) = (self.assembly.clone(), self.entry.clone());
        Box::pin(async move {
            let config = &assembly.loaded.config;
            let resolved = assembly.secrets.resolve(config, &entry).await?;
            let entry = resolved.entry.unwrap_or(entry);
            let build = move || assembly.made(&entry);
            Ok(Completed { values: resolved.secrets, build: Box::new(build) })
        })
    }
}

impl HeaderSource for ResolvingHeaders {
    fn fetch(&self) -> BoxFuture<'static, Result<Headers, String>> {
        let Self { secrets, loaded, entry } = self;
        let (secrets, loaded, entry) = (Arc::clone(secrets), Arc::clone(loaded), entry.clone());
        Box::pin(async move {
            let headers = secrets.headers(&loaded.config, &entry).await?;
            Ok(Headers { headers, ..Headers::default() })
        })
    }
}

//! The embeddings of tool search, as the configuration chooses them.

use std::time::Duration;

use capstan_app::{EmbeddingChoice, Environment, choose_embedding};
use capstan_config::Search;
use capstan_safety::address::{AddressPolicy, Network};
use capstan_search::{EmbeddingInterface, EmbeddingService, Embeddings, QdrantServer};

/// The longest time for an answer of a service of embeddings.
const SERVICE_LIMIT: Duration = Duration::from_secs(30);

/// The longest time for an answer of a Qdrant server.
const QDRANT_LIMIT: Duration = Duration::from_secs(10);

/// The embeddings of a configuration.
pub(crate) fn embeddings(search: &Search, environment: &Environment) -> Embeddings {
    let (service, problem) = match choose_embedding(search, environment) {
        Ok(choice) => (choice.map(service), None),
        Err(error) => (None, Some(error.message)),
    };
    let shared = search.qdrant_endpoint.clone().map(|endpoint| QdrantServer {
        endpoint,
        key: search.qdrant_api_key.clone().filter(|key| !key.reveal().trim().is_empty()),
        addresses: addresses(search.networks.clone()),
        owner: search.qdrant_owner.clone(),
        timeout: QDRANT_LIMIT,
    });
    Embeddings { service, shared, problem }
}

fn service(choice: EmbeddingChoice) -> EmbeddingService {
    let interface =
        if choice.is_ollama { EmbeddingInterface::Ollama } else { EmbeddingInterface::OpenAi };
    EmbeddingService {
        interface,
        endpoint: choice.endpoint,
        model: choice.name,
        key: choice.key,
        addresses: addresses(choice.networks),
        timeout: SERVICE_LIMIT,
    }
}

fn addresses(networks: Vec<Network>) -> AddressPolicy {
    AddressPolicy { networks, table: Some("search"), ..AddressPolicy::default() }
}

//! The keys of `[search]`.

use capstan_model::Secret;
use capstan_safety::address::Network;
use serde::Serialize;

use super::define::keys;
use super::form::{OneOf, SecretText, Share};
use super::server::networks::Networks;
use crate::fields::{Fields, Words};
use crate::source::Scope;
use crate::source::problem::Problem;

keys! {
    /// Tool search: `capstan search`, and the tools that a model is offered.
    pub merged Search
    keys {
        /// How the tools for a model are selected: `"embedding"` offers those that fit the conversation, `"llm"` asks a language model which of them fit, `"none"` offers all.
        strategy: Strategy = Strategy::Embedding, nearest;
        /// The model that selects tools with `strategy = "llm"`: `PROVIDER/NAME`; by default that of the conversation. A project file cannot set it.
        model: String, nearest;
        /// The model that compares meanings: `"builtin"`, or `PROVIDER/NAME` with the provider `openai` (any server with the interface `/v1/embeddings`) or `ollama`. A running gateway uses another one after a restart. A project file cannot set this key and those of the service.
        embedding: String = "builtin".to_owned(), nearest;
        /// The address of the service: `http://localhost:8000/v1` for a server with the interface `/v1/embeddings`, `http://localhost:11434` for Ollama.
        embedding_endpoint: String, nearest;
        /// The API key of the service, as `"${VARIABLE}"`. Without it, the usual variable of the provider is used, unless `embedding_endpoint` is set.
        embedding_api_key: Secret<String> as SecretText, nearest;
        /// The name of the environment variable with the API key.
        embedding_api_key_env_var: String, nearest;
        /// Private networks in which the service and the Qdrant server may be reached, in CIDR notation or as single addresses. `localhost`, `127.0.0.1` and `[::1]` need no entry.
        networks: Vec<Network> as Networks = Vec::new(), nearest;
        /// The address of a Qdrant server in which several gateways share the vectors of their tools, such as `http://localhost:6333`.
        qdrant_endpoint: String, nearest;
        /// The API key of the Qdrant server, as `"${VARIABLE}"`.
        qdrant_api_key: Secret<String> as SecretText, nearest;
        /// The owner of the vectors in the Qdrant server. Gateways with the same servers can have the same owner.
        qdrant_owner: String = "capstan".to_owned(), nearest;
        /// The number of tools that a search returns, and that a model is offered in addition at each turn.
        top_k: u32 = 10, nearest;
        /// Tools that are less similar to a query do not fit it; from 0 to 1.
        min_similarity: f64 as Share = 0.3, nearest;
        /// Tools that a model is always offered: `read_file` of any server, or `server__read_file` of one.
        always_include: Vec<String> = Vec::new(), nearest;
        /// Servers with fewer tools are offered whole.
        min_tools_to_filter: u32 = 5, nearest;
    }
}

// === impl InFile ===

impl InFile {
    /// Reads the table of one file.
    ///
    /// A cloned folder must not decide which model or service reads its user's messages and tools.
    pub(crate) fn checked(mut fields: Fields<'_, '_>) -> Self {
        let mut table = Self::read(&mut fields);
        if let Some(model) = &table.model
            && !model.value.contains('/')
        {
            let problem = Problem::error("`search.model` has no provider")
                .help("write `PROVIDER/NAME`, such as `ollama/qwen3`");
            fields.problem("model", problem);
        }
        if let Some(embedding) = &table.embedding
            && !is_embedding(&embedding.value)
        {
            let problem = Problem::error("`search.embedding` names no known provider")
                .help("write `builtin`, or `PROVIDER/NAME` with the provider `openai` or `ollama`");
            fields.problem("embedding", problem);
        }
        if fields.report().file.scope == Scope::Project {
            for key in table.take_services() {
                let problem =
                    Problem::warning(format!("`search.{key}` in a project file is not used"))
                        .help("move it to your own configuration file");
                fields.problem(key, problem);
            }
        }
        fields.finish();
        table
    }

    /// Takes out the keys that name services, and returns those that were set.
    fn take_services(&mut self) -> Vec<&'static str> {
        let keys = [
            ("model", self.model.take().is_some()),
            ("embedding", self.embedding.take().is_some()),
            ("embedding_endpoint", self.embedding_endpoint.take().is_some()),
            ("embedding_api_key", self.embedding_api_key.take().is_some()),
            ("embedding_api_key_env_var", self.embedding_api_key_env_var.take().is_some()),
            ("networks", self.networks.take().is_some()),
            ("qdrant_endpoint", self.qdrant_endpoint.take().is_some()),
            ("qdrant_api_key", self.qdrant_api_key.take().is_some()),
            ("qdrant_owner", self.qdrant_owner.take().is_some()),
        ];
        keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
    }
}

/// True for the model in the binary, and a model of a provider of embeddings.
fn is_embedding(word: &str) -> bool {
    let named = word.split_once('/').is_some_and(|(provider, name)| {
        matches!(provider, "openai" | "ollama") && !name.is_empty()
    });
    named || word == "builtin"
}

/// How the tools for a model are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// By search.
    #[default]
    Embedding,
    /// By a language model.
    Llm,
    /// Not at all: all tools are offered.
    None,
}

impl OneOf for Strategy {
    const WORDS: Words<Self> =
        &[("embedding", Self::Embedding), ("llm", Self::Llm), ("none", Self::None)];
}

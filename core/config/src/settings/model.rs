//! The keys of `[model]`.

use std::time::Duration;

use capstan_model::Secret;
use capstan_safety::address::Network;

use super::define::keys;
use super::form::{Limit, SecretText};
use super::server::networks::Networks;

use crate::fields::Fields;
use crate::source::Scope;
use crate::source::problem::Problem;

keys! {
    /// The language model of `capstan chat`. A project file cannot set these keys.
    pub merged Model
    keys {
        /// The model: `PROVIDER/NAME`, with the provider `anthropic`, `openai`, `gemini` or `ollama`. `--model` overrides it.
        name: String, nearest;
        /// The address of the provider's interface. With `openai` it may be any server that has the same interface, such as vLLM or llama.cpp: `http://localhost:8000/v1`.
        endpoint: String, nearest;
        /// Private networks in which the endpoint may be reached, in CIDR notation or as single addresses. `localhost`, `127.0.0.1` and `[::1]` need no entry.
        networks: Vec<Network> as Networks = Vec::new(), nearest;
        /// The API key, as `"${VARIABLE}"`. Without it, the usual variable of the provider is used, unless `endpoint` is set.
        api_key: Secret<String> as SecretText, nearest;
        /// The name of the environment variable with the API key.
        api_key_env_var: String, nearest;
        /// The longest answer, in tokens.
        max_output_tokens: u32, nearest;
        /// The number of tokens that the model can read. A conversation is summarized before it is longer.
        context_tokens: u32 = 128_000, nearest;
        /// The longest time without any part of an answer.
        timeout: Duration as Limit = Duration::from_mins(5), nearest;
    }
}

/// The smallest `context_tokens`: less leaves no room for tools and an answer.
const LEAST_CONTEXT: u32 = 2_000;

// === impl InFile ===

impl InFile {
    /// Reads the table of one file.
    ///
    /// A project's table is checked but not used: a cloned folder must not decide which server reads
    /// its user's conversations, or gets the key.
    pub(crate) fn checked(mut fields: Fields<'_, '_>) -> Self {
        let table = Self::read(&mut fields);
        if let Some(name) = &table.name
            && !name.value.contains('/')
        {
            let problem = Problem::error("`model.name` has no provider")
                .help("write `PROVIDER/NAME`, such as `ollama/qwen3`");
            fields.problem("name", problem);
        }
        if table.context_tokens.as_ref().is_some_and(|tokens| tokens.value < LEAST_CONTEXT) {
            let problem =
                Problem::error(format!("`model.context_tokens` is below {LEAST_CONTEXT}"))
                    .help("write the number of tokens that the model can read");
            fields.problem("context_tokens", problem);
        }
        let of_project = fields.report().file.scope == Scope::Project;
        if of_project {
            let problem = Problem::warning("`[model]` in a project file is not used")
                .help("move it to your own configuration file");
            fields.table_problem(problem);
        }
        fields.finish();
        if of_project { Self::default() } else { table }
    }
}

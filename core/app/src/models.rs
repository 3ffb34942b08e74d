//! The choice of the language model: the configuration, the environment and the command line.

use std::sync::Arc;
use std::time::Duration;

use capstan_config::{Model, Search};
use capstan_hub::catalog::Provider;
use capstan_hub::ports::{ChatError, ChatModel};
use capstan_model::Secret;
use capstan_safety::address::Network;

use crate::{AppError, Environment, ErrorKind};

/// Opens models.
pub trait Models: Send + Sync {
    /// Opens a model; nothing is sent yet.
    ///
    /// # Errors
    /// If its endpoint or key cannot be used.
    fn open(&self, choice: &ModelChoice) -> Result<Arc<dyn ChatModel>, AppError>;
}

/// A model that was chosen, with everything that is needed to reach it.
#[derive(Clone, Debug)]
pub struct ModelChoice {
    /// The interface.
    pub provider: Provider,
    /// The model in the form `provider/name`.
    pub label: String,
    /// The name that the provider knows.
    pub name: String,
    /// The address of the interface.
    pub endpoint: String,
    /// The networks in which the address may be, although they are not public.
    pub networks: Vec<Network>,
    /// The key; `None` for servers that need none.
    pub key: Option<Secret<String>>,
    /// The longest answer, in tokens.
    pub max_output: Option<u32>,
    /// The number of tokens that the model can read.
    pub context_tokens: u32,
    /// The longest time without any part of an answer.
    pub timeout: Duration,
}

/// A service that makes embeddings, with everything that is needed to reach it.
#[derive(Clone, Debug)]
pub struct EmbeddingChoice {
    /// True for the interface of Ollama, false for that of `OpenAI`.
    pub is_ollama: bool,
    /// The name of the model that the service knows.
    pub name: String,
    /// The address of the interface.
    pub endpoint: String,
    /// The networks in which the address may be, although they are not public.
    pub networks: Vec<Network>,
    /// The key; `None` for services that need none.
    pub key: Option<Secret<String>>,
}

/// A provider that can be named.
struct Known {
    word: &'static str,
    provider: Provider,
    endpoint: &'static str,
    /// The variable with another address.
    endpoint_variable: Option<&'static str>,
    /// The variables with the key, first to last; empty if no key is needed.
    keys: &'static [&'static str],
}

const KNOWN: [Known; 4] = [
    Known {
        word: "anthropic",
        provider: Provider::Anthropic,
        endpoint: "https://api.anthropic.com",
        endpoint_variable: Some("ANTHROPIC_BASE_URL"),
        keys: &["ANTHROPIC_API_KEY"],
    },
    Known {
        word: "openai",
        provider: Provider::OpenAi,
        endpoint: "https://api.openai.com/v1",
        endpoint_variable: Some("OPENAI_BASE_URL"),
        keys: &["OPENAI_API_KEY"],
    },
    Known {
        word: "gemini",
        provider: Provider::Gemini,
        endpoint: "https://generativelanguage.googleapis.com",
        endpoint_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    Known {
        word: "ollama",
        provider: Provider::OpenAi,
        endpoint: "http://localhost:11434/v1",
        endpoint_variable: None,
        keys: &[],
    },
];

/// Chooses a model; `wanted` is the `provider/name` of the command line.
///
/// The endpoint and the key of the configuration belong to its provider: another one that the
/// command line names gets neither.
///
/// # Errors
/// If no model is chosen, its provider is unknown, or it has no key.
pub fn choose_model(
    config: &Model,
    environment: &Environment,
    wanted: Option<&str>,
) -> Result<ModelChoice, AppError> {
    let Some(label) = wanted.or(config.name.as_deref()) else {
        return Err(AppError::config("no model is chosen").hint(
            "use `--model PROVIDER/NAME`, or set `name = \"PROVIDER/NAME\"` under `[model]` in your \
             configuration; the providers are anthropic, openai, gemini and ollama",
        ));
    };
    let (known, name) = parse(label)?;
    let configured = config.name.as_deref().and_then(|name| name.split_once('/'));
    let is_other = configured.is_some_and(|(word, _)| word != known.word);
    let none = Model::default();
    let settings = if is_other { &none } else { config };
    let by_variable = known.endpoint_variable.and_then(|name| environment.filled_variable(name));
    let (endpoint, networks) = match settings.endpoint.clone().or(by_variable) {
        Some(endpoint) => (endpoint, config.networks.clone()),
        // A provider's own address must be public, or this machine.
        None => (known.endpoint.to_owned(), Vec::new()),
    };
    Ok(ModelChoice {
        provider: known.provider,
        label: label.to_owned(),
        name: name.to_owned(),
        endpoint,
        networks,
        key: key(known, settings, environment)?,
        max_output: config.max_output_tokens,
        context_tokens: config.context_tokens,
        timeout: config.timeout,
    })
}

/// Chooses the service of embeddings; `None` for the model in the binary.
///
/// # Errors
/// If the provider is unknown, or it has no key.
pub fn choose_embedding(
    search: &Search,
    environment: &Environment,
) -> Result<Option<EmbeddingChoice>, AppError> {
    if search.embedding == "builtin" {
        return Ok(None);
    }
    let (known, name) = parse(&search.embedding)?;
    let settings = Model {
        endpoint: search.embedding_endpoint.clone(),
        api_key: search.embedding_api_key.clone(),
        api_key_env_var: search.embedding_api_key_env_var.clone(),
        ..Model::default()
    };
    let is_ollama = known.word == "ollama";
    let by_variable = known.endpoint_variable.and_then(|name| environment.filled_variable(name));
    let own = if is_ollama { known.endpoint.trim_end_matches("/v1") } else { known.endpoint };
    let (endpoint, networks) = match settings.endpoint.clone().or(by_variable) {
        Some(endpoint) => (endpoint, search.networks.clone()),
        // A provider's own address must be public, or this machine.
        None => (own.to_owned(), Vec::new()),
    };
    let key = key(known, &settings, environment)?;
    Ok(Some(EmbeddingChoice { is_ollama, name: name.to_owned(), endpoint, networks, key }))
}

fn parse(label: &str) -> Result<(&'static Known, &str), AppError> {
    let hint = "write `PROVIDER/NAME`; the providers are anthropic, openai, gemini and ollama";
    let Some((word, name)) = label.split_once('/').filter(|(_, name)| !name.is_empty()) else {
        let message = format!("`{label}` names no provider of a model");
        return Err(AppError::usage(message).hint(hint));
    };
    let known = KNOWN.iter().find(|known| known.word == word);
    let unknown = || AppError::usage(format!("`{word}` is no known provider")).hint(hint);
    Ok((known.ok_or_else(unknown)?, name))
}

/// The key: of the configuration, else of the provider's usual variables.
///
/// The usual variables are for the provider. An endpoint of the configuration gets their value only
/// if the configuration says so, because it may belong to somebody else.
fn key(
    known: &Known,
    settings: &Model,
    environment: &Environment,
) -> Result<Option<Secret<String>>, AppError> {
    let mut checked = Vec::new();
    if let Some(key) = &settings.api_key {
        if !key.reveal().trim().is_empty() {
            return Ok(Some(key.clone()));
        }
        checked.push("`model.api_key`".to_owned());
    }
    let usual = if settings.endpoint.is_some() { &[] } else { known.keys };
    let variables = settings.api_key_env_var.as_deref().into_iter().chain(usual.iter().copied());
    for variable in variables {
        if let Some(key) = environment.filled_variable(variable) {
            return Ok(Some(Secret::new(key)));
        }
        checked.push(variable.to_owned());
    }
    if known.keys.is_empty() || (settings.endpoint.is_some() && checked.is_empty()) {
        return Ok(None);
    }
    let message = format!("no API key for `{}`: {} is not set", known.word, checked.join(" and "));
    let first = checked.iter().find(|name| !name.starts_with('`'));
    let variable = first.map_or("API_KEY", String::as_str);
    Err(AppError::new(ErrorKind::Auth, message).hint(format!(
        "set {variable}, or `api_key = \"${{VARIABLE}}\"` under `[model]` in your configuration"
    )))
}

impl From<ChatError> for AppError {
    fn from(error: ChatError) -> Self {
        let (kind, hint) = match &error {
            ChatError::Auth { .. } => (ErrorKind::Auth, Some("check the key of the model")),
            ChatError::RateLimited { .. } => (ErrorKind::Quota, Some("try again later")),
            ChatError::Failed { .. } | ChatError::Cut { .. } => {
                (ErrorKind::Unreachable, Some("try again; `--continue` resumes the conversation"))
            }
            ChatError::Unreachable { .. } => {
                (ErrorKind::Unreachable, Some("check the network, and `endpoint` under `[model]`"))
            }
            ChatError::NotFound { .. } => {
                (ErrorKind::NotFound, Some("check the name of the model, and its `endpoint`"))
            }
            ChatError::TooLong { .. } => (
                ErrorKind::Usage,
                Some("set `context_tokens` under `[model]` to what the model can read"),
            ),
            ChatError::Refused { .. } => (ErrorKind::Failed, None),
            ChatError::Blocked { .. } => (
                ErrorKind::Denied,
                Some("name the address as `endpoint` under `[model]` in your own configuration"),
            ),
            ChatError::TimedOut { .. } => {
                (ErrorKind::TimedOut, Some("set a longer `timeout` under `[model]`"))
            }
            ChatError::Malformed { .. } => (
                ErrorKind::Failed,
                Some("check that the endpoint has the interface of the provider"),
            ),
        };
        let retryable = error.is_transient();
        let hint = hint.map(ToOwned::to_owned);
        Self { hint, retryable, ..Self::new(kind, error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{FakeFiles, configs};

    /// Chooses with a `[model]` table, variables and a command line.
    fn choose(
        table: &str,
        variables: &[(&str, &str)],
        wanted: Option<&str>,
    ) -> Result<ModelChoice, AppError> {
        let text = format!("[model]\n{table}");
        let path = "/home/me/.config/capstan/config.toml";
        let configs = configs(FakeFiles::with(&[(path, &text)]));
        let setup = configs.load(&crate::Selection::default()).unwrap();
        let mut environment = configs.environment;
        let own = Arc::get_mut(&mut environment).unwrap();
        own.variables =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        choose_model(&setup.loaded.config.model, &environment, wanted)
    }

    fn key(choice: &ModelChoice) -> Option<&str> {
        choice.key.as_ref().map(|key| key.reveal().as_str())
    }

    #[test]
    fn a_provider_has_its_usual_endpoint_and_variables() {
        for (label, variable, endpoint) in [
            ("anthropic/claude", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
            ("openai/gpt", "OPENAI_API_KEY", "https://api.openai.com/v1"),
            ("gemini/pro", "GOOGLE_API_KEY", "https://generativelanguage.googleapis.com"),
        ] {
            let choice = choose("", &[(variable, "k")], Some(label)).unwrap();
            assert_eq!((choice.endpoint.as_str(), key(&choice)), (endpoint, Some("k")));
            assert!(choice.networks.is_empty());
        }
        let choice = choose("name = \"ollama/library/qwen3\"", &[], None).unwrap();
        assert_eq!((choice.name.as_str(), key(&choice)), ("library/qwen3", None));
    }

    #[test]
    fn without_a_key_the_checked_variables_are_named() {
        let error = choose("", &[("GEMINI_API_KEY", "")], Some("gemini/pro")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(error.message.contains("GEMINI_API_KEY and GOOGLE_API_KEY"), "{}", error.message);
        let table = "api_key_env_var = \"MINE\"";
        let error = choose(table, &[], Some("openai/gpt")).unwrap_err();
        assert!(error.message.contains("MINE and OPENAI_API_KEY"), "{}", error.message);
    }

    #[test]
    fn the_usual_key_never_goes_to_an_endpoint_of_the_configuration() {
        let table = "name = \"openai/x\"\nendpoint = \"https://elsewhere.example/v1\"";
        let variables = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "a")];
        let choice = choose(table, &variables, None).unwrap();
        assert_eq!(key(&choice), None);
        // Another provider on the command line gets neither the endpoint nor the key.
        let table = format!("{table}\napi_key = \"configured\"");
        let choice = choose(&table, &variables, Some("anthropic/c")).unwrap();
        assert_eq!(
            (key(&choice), choice.endpoint.as_str()),
            (Some("a"), "https://api.anthropic.com")
        );
        assert_eq!(key(&choose(&table, &variables, Some("openai/y")).unwrap()), Some("configured"));
    }

    #[test]
    fn the_key_of_a_provider_goes_to_no_other_service_of_embeddings() {
        let mut environment = configs(FakeFiles::with(&[])).environment;
        let own = Arc::get_mut(&mut environment).unwrap();
        own.variables = [("OPENAI_API_KEY".into(), "k".into())].into();
        let choose = |search: Search| choose_embedding(&search, &environment).unwrap();
        assert!(choose(Search::default()).is_none());
        let embedding = "openai/small".to_owned();
        let usual = choose(Search { embedding: embedding.clone(), ..Search::default() }).unwrap();
        assert_eq!(usual.endpoint, KNOWN[1].endpoint);
        assert_eq!(usual.key.unwrap().reveal(), "k");
        let embedding_endpoint = Some("http://localhost:1/v1".to_owned());
        let networks = vec!["10.0.0.0/8".parse().unwrap()];
        let inside = Search { embedding: embedding.clone(), networks, ..Search::default() };
        assert!(choose(inside.clone()).unwrap().networks.is_empty());
        let other = choose(Search { embedding_endpoint, ..inside }).unwrap();
        assert!(other.key.is_none() && other.networks.len() == 1);
        let ollama = Search { embedding: "ollama/nomic".to_owned(), ..Search::default() };
        assert_eq!(choose(ollama).unwrap().endpoint, "http://localhost:11434");
    }

    #[test]
    fn networks_hold_for_the_operators_endpoint_and_not_for_a_providers_own() {
        let table = "name = \"openai/x\"\nnetworks = [\"10.0.0.0/8\"]";
        let own = choose(table, &[("OPENAI_API_KEY", "k")], None).unwrap();
        assert!(own.networks.is_empty(), "{own:?}");
        let endpoint = format!("{table}\nendpoint = \"http://10.0.0.1/v1\"");
        assert_eq!(choose(&endpoint, &[], None).unwrap().networks.len(), 1);
        let variables = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://10.0.0.1/v1")];
        assert_eq!(choose(table, &variables, None).unwrap().networks.len(), 1);
    }

    #[test]
    fn a_model_that_is_not_named_well_is_refused() {
        assert_eq!(choose("", &[], None).unwrap_err().kind, ErrorKind::Config);
        for odd in ["gpt", "openai/", "mistral/x", "/x", ""] {
            assert_eq!(choose("", &[], Some(odd)).unwrap_err().kind, ErrorKind::Usage, "{odd}");
        }
    }
}

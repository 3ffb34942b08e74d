//! Language models behind the port [`ChatModel`]: Anthropic, `OpenAI` and compatible servers, Gemini.
//!
//! `anthropic`, `openai` and `gemini` translate requests and read answers; `format` is what they
//! have in common. `exchange` sends a request, repeats it after a rate limit or a failure, and reads
//! the events of the answer, which `events` takes apart. `refusal` translates error answers.
//!
//! **Invariant:** every request leaves through [`capstan_http::Client`], which checks the address.

mod format;
mod anthropic;
mod openai;
mod gemini;
mod events;
mod refusal;
mod exchange;

use std::sync::Arc;
use std::time::Duration;

use capstan_http::{Client, WebAddress};
use capstan_hub::catalog::Provider;
use capstan_hub::ports::{ChatError, ChatEvent, ChatModel, ChatRequest};
use capstan_model::Secret;
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;
use futures::stream::BoxStream;

use crate::anthropic::Anthropic;
use crate::exchange::Exchange;
use crate::format::WireFormat;
use crate::gemini::Gemini;
use crate::openai::OpenAi;

/// The settings of a model.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// The interface.
    pub provider: Provider,
    /// The model in the form `provider/name`, for messages.
    pub label: String,
    /// The name that the provider knows.
    pub name: String,
    /// The address under which the interface is found.
    pub endpoint: String,
    /// The key; `None` for servers that need none.
    pub key: Option<Secret<String>>,
    /// The addresses that the endpoint may have.
    pub addresses: AddressPolicy,
    /// The longest answer, in tokens.
    pub max_output: Option<u32>,
    /// The longest time without a byte of the answer.
    pub timeout: Duration,
}

/// A model at an endpoint.
pub struct RemoteModel {
    provider: Provider,
    label: Arc<str>,
    client: Client,
    format: Arc<dyn WireFormat>,
    timeout: Duration,
}

// === impl RemoteModel ===

impl RemoteModel {
    /// Creates a model. Nothing is sent yet.
    ///
    /// # Errors
    /// If the endpoint is no address, or the key cannot be sent; the text describes the problem.
    pub fn new(settings: ModelSettings) -> Result<Self, String> {
        let ModelSettings { provider, label, name, endpoint, key, addresses, max_output, timeout } =
            settings;
        let address = WebAddress::parse(&endpoint)?;
        let format: Arc<dyn WireFormat> = match provider {
            Provider::Anthropic => Arc::new(Anthropic { model: name, max_output }),
            Provider::OpenAi => Arc::new(OpenAi {
                model: name,
                max_output,
                is_original: address.host().ends_with("openai.com"),
            }),
            Provider::Gemini => Arc::new(Gemini { model: name, max_output }),
        };
        let masker = Masker::new(key.iter().map(|key| key.reveal().clone()));
        let mut headers = format.headers(key.as_ref());
        headers.push(("content-type".to_owned(), Secret::new("application/json".to_owned())));
        let client = Client::new(&address, &headers, Arc::new(masker), &addresses)?;
        Ok(Self { provider, label: label.into(), client, format, timeout })
    }
}

impl ChatModel for RemoteModel {
    fn provider(&self) -> Provider {
        self.provider
    }

    fn label(&self) -> String {
        self.label.to_string()
    }

    fn chat(&self, request: ChatRequest) -> BoxStream<'static, Result<ChatEvent, ChatError>> {
        let exchange = Exchange::new(
            self.client.clone(),
            Arc::clone(&self.format),
            Arc::clone(&self.label),
            self.timeout,
            &request,
        );
        exchange.events()
    }
}

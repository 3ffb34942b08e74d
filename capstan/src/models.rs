//! The model port of the application layer, with the adapter for providers.

use std::sync::Arc;

use capstan_app::{AppError, ModelChoice, Models};
use capstan_hub::ports::ChatModel;
use capstan_provider::{ModelSettings, RemoteModel};
use capstan_safety::address::AddressPolicy;

/// Models behind HTTP.
pub(crate) struct WebModels;

// === impl WebModels ===

impl Models for WebModels {
    fn open(&self, choice: &ModelChoice) -> Result<Arc<dyn ChatModel>, AppError> {
        let choice = choice.clone();
        let label = choice.label.clone();
        let model = RemoteModel::new(ModelSettings {
            provider: choice.provider,
            label: choice.label,
            name: choice.name,
            endpoint: choice.endpoint,
            key: choice.key,
            addresses: AddressPolicy {
                networks: choice.networks,
                table: Some("model"),
                ..AddressPolicy::default()
            },
            max_output: choice.max_output,
            timeout: choice.timeout,
        });
        let model = model.map_err(|problem| {
            AppError::config(format!("the model `{label}` cannot be used: {problem}"))
                .hint("check `endpoint` and the key under `[model]`")
        })?;
        Ok(Arc::new(model))
    }
}

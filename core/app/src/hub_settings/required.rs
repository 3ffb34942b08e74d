//! Servers that a gateway cannot do without.

use capstan_config::{Config, ServerEntry};
use capstan_hub::Hub;
use futures::future::join_all;

use crate::{AppError, ErrorKind};

/// Starts the servers that the configuration marks as required.
///
/// # Errors
/// If one of them cannot be used.
pub async fn start_required(hub: &Hub, config: &Config) -> Result<(), AppError> {
    let is_required = |entry: &&ServerEntry| {
        entry.status.as_ref().is_ok_and(|server| server.required && server.enabled)
    };
    let required = config.servers.values().filter(is_required).map(|entry| &entry.name);
    let started = required.filter(|name| hub.has(name)).map(|name| hub.start(name));
    match join_all(started).await.into_iter().find_map(Result::err) {
        None => Ok(()),
        Some(error) => {
            let message = format!("a server that is required cannot be used: {error}");
            Err(AppError::new(ErrorKind::Unreachable, message)
                .code(error.code().as_str())
                .hint("to serve the others without it, remove `required = true`"))
        }
    }
}

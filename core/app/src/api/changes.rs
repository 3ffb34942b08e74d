//! Changes to a running gateway: add and remove servers at run time, reload.

use std::sync::Arc;

use capstan_hub::ports::BoxFuture;
use capstan_model::ServerName;
use serde::{Deserialize, Serialize};

use super::{Interact, Local, Operation};
use crate::reload::{Changed, LiveConfig};
use crate::{AppError, HubPurpose};

/// Adds a server to the running gateway without writing it to a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct AddServer {
    /// The name.
    pub name: String,
    /// The entry, in the format of a file.
    pub text: String,
}

/// Removes a server that was added at run time.
#[derive(Debug, Serialize, Deserialize)]
pub struct RemoveServer {
    /// The name.
    pub name: String,
}

/// Reads the gateway's configuration again.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reload {}

/// The result of [`Reload`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Reloaded {
    /// True if the configuration has changed.
    pub changed: bool,
    /// Keys that have changed since the start and take effect after a restart.
    pub needs_restart: Vec<String>,
    /// The reason why the files are not in force; `None` if they are.
    pub trouble: Option<String>,
}

impl Operation for AddServer {
    const NAME: &'static str = "servers/add";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = ServerName;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        _: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<ServerName, AppError>> {
        Box::pin(async move { gateway(local)?.add(&self.name, self.text.clone()).await })
    }
}

impl Operation for RemoveServer {
    const NAME: &'static str = "servers/remove";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = String;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        _: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<String, AppError>> {
        Box::pin(async move { gateway(local)?.remove(&self.name).await })
    }
}

impl Operation for Reload {
    const NAME: &'static str = "config/reload";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = Reloaded;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        _: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Reloaded, AppError>> {
        Box::pin(async move {
            let gateway = gateway(local)?;
            let changed = gateway.reload().await? == Changed::Something;
            let needs_restart = gateway.needs_restart().into_iter().map(ToOwned::to_owned);
            let needs_restart = needs_restart.collect();
            Ok(Reloaded { changed, needs_restart, trouble: gateway.trouble() })
        })
    }
}

fn gateway(local: &Local) -> Result<&LiveConfig, AppError> {
    local.gateway.as_deref().ok_or_else(|| AppError::internal("no gateway runs in this process"))
}

//! What is asked of a server beside calls and lists: completions, subscriptions, log levels,
//! tasks.

use capstan_model::{CallError, Caller, Effect, ItemId, Kind, ServerName};
use capstan_wire::Json;

use crate::hub::Hub;
use crate::ports::Errand;

impl Hub {
    /// Runs an errand for `caller`; `about` is the item it is about, if any.
    ///
    /// # Errors
    /// When the caller may not know of the item, or the server cannot be used.
    pub async fn errand(
        &self,
        server: &ServerName,
        about: Option<(Kind, &str)>,
        errand: &Errand,
        caller: &Caller,
    ) -> Result<Json, CallError> {
        let (kind, item) = about.unwrap_or((Kind::Tool, errand.method()));
        let id = ItemId { server: server.clone(), item: item.to_owned() };
        // Who may not use it learns nothing about it either.
        let permitted = about.is_none() || self.could_permit(&id, kind, Effect::Read, caller);
        match self.backends.get(server).filter(|_| permitted) {
            Some(backend) => backend.errand(errand).await,
            None => Err(CallError::Unknown { kind, name: id.to_string(), nearest: Vec::new() }),
        }
    }
}

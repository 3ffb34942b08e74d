//! Connects servers once, with the hub of a gateway, which stores their lists.

use std::sync::Arc;
use std::time::Duration;

use capstan_app::hub_settings::ClientTransport;
use capstan_app::{AppError, Setup, WarmUp, Warmed, list_once};
use capstan_hub::ports::BoxFuture;
use capstan_model::ServerName;

use crate::adapters::Adapters;
use crate::serve::Supervised;

impl WarmUp for Adapters {
    fn warm_up<'a>(
        &'a self,
        setup: &'a Setup,
        servers: &'a [ServerName],
        limit: Duration,
    ) -> BoxFuture<'a, Result<Vec<Warmed>, AppError>> {
        Box::pin(async move {
            let adapters = Arc::new(self.clone());
            let mut hub = adapters.gateway_hub(setup, ClientTransport::Http, None)?;
            let supervised = Supervised::start(&adapters, &hub.clock, &hub.changes);
            supervised.supervise(&mut hub, &setup.loaded.config);
            let hub = hub.build();
            let warmed = list_once(&hub, servers, limit).await;
            hub.close().await;
            supervised.end().await;
            Ok(warmed)
        })
    }
}

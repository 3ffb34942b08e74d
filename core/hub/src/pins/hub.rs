//! Lists of servers, looked at before anybody decides about what is in them.

use std::sync::Arc;

use capstan_model::CallError;

use super::Odd;
use crate::hub::Hub;
use crate::ports::{Backend, Item, Listing};

impl Hub {
    /// Says what a server offers, as far as that is remembered; connects if it is not. Tools are
    /// compared with what was approved of them before anybody decides about them.
    pub async fn list(
        &self,
        backend: &Arc<dyn Backend>,
        listing: Listing,
    ) -> Result<Arc<[Item]>, CallError> {
        let items = backend.list(listing).await?;
        self.compare(backend, listing, &items).await;
        Ok(items)
    }

    /// Connects if need be and says what a server offers now.
    pub async fn current(
        &self,
        backend: &Arc<dyn Backend>,
        listing: Listing,
    ) -> Result<Arc<[Item]>, CallError> {
        self.judged(backend, listing).await.map(|(items, _)| items)
    }

    /// The same, with how its tools stand to what was approved.
    pub(crate) async fn judged(
        &self,
        backend: &Arc<dyn Backend>,
        listing: Listing,
    ) -> Result<(Arc<[Item]>, Arc<Odd>), CallError> {
        let items = backend.current(listing).await?;
        let odd = self.compare(backend, listing, &items).await;
        Ok((items, odd))
    }

    async fn compare(
        &self,
        backend: &Arc<dyn Backend>,
        listing: Listing,
        items: &Arc<[Item]>,
    ) -> Arc<Odd> {
        match listing {
            Listing::Tools => self.pins.look_at(backend.name(), items).await,
            Listing::Prompts | Listing::Resources | Listing::Templates => Arc::default(),
        }
    }
}

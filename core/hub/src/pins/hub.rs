//! Compares the lists of servers with their pins before anything is decided about their items.

use std::pin::{Pin, pin};
use std::sync::Arc;

use capstan_model::{CallError, ItemId};
use futures::future::{Either, select};

use super::{Odd, Standing};
use crate::Freshness;
use crate::hub::Hub;
use crate::life::{Lease, Server};
use crate::ports::{Item, Listing};

impl Hub {
    /// Lists a server, and returns the items with the tools that are not approved.
    pub(crate) async fn judged(
        &self,
        server: &Arc<Server>,
        listing: Listing,
        freshness: Freshness,
    ) -> Result<(Arc<[Item]>, Arc<Odd>), CallError> {
        let judged = pin!(async {
            let items = server.list(listing, freshness).await?;
            let odd = self.compare(server, listing, &items).await;
            Ok((items, odd))
        });
        self.beside(server, listing, judged).await
    }

    /// Returns the saved list of a server, if there is one. Starts nothing.
    pub(crate) async fn judged_saved(
        &self,
        server: &Arc<Server>,
        listing: Listing,
    ) -> Option<Arc<[Item]>> {
        let items = server.remembered(listing)?;
        self.compare(server, listing, &items).await;
        Some(items)
    }

    /// Lists a leased connection, and returns the items with the tools that are not approved.
    pub(crate) async fn judged_by(
        &self,
        lease: &Lease,
        listing: Listing,
    ) -> Result<(Arc<[Item]>, Arc<Odd>), CallError> {
        let items = lease.list(listing).await?;
        let odd = self.compare(lease.server(), listing, &items).await;
        Ok((items, odd))
    }

    /// Like [`Self::judged_by`], but returns `None` instead of waiting.
    pub(crate) fn judged_at_once(
        &self,
        lease: &Lease,
        listing: Listing,
    ) -> Option<(Arc<[Item]>, Arc<Odd>)> {
        let items = lease.listed(listing)?;
        let odd = match listing {
            Listing::Tools => self.pins.looked_at(lease.server().name(), &items)?,
            Listing::Prompts | Listing::Resources | Listing::Templates => Arc::default(),
        };
        Some((items, odd))
    }

    /// Runs `work`, which waits for the server, while the store of pins gets ready.
    ///
    /// Each of them may take milliseconds to start.
    pub(crate) async fn beside<T>(
        &self,
        server: &Arc<Server>,
        listing: Listing,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        if listing == Listing::Tools && self.pins.is_unready(server.name()) {
            // Boxed, because it runs once per server and other calls should not carry it.
            let ready = Box::pin(self.pins.get_ready());
            // The work is polled first. A store that is being opened is not left half open.
            if let Either::Left((done, ready)) = select(work.as_mut(), ready).await {
                ready.await;
                return done;
            }
        }
        work.await
    }

    /// Returns the standing of a tool.
    ///
    /// If the tool seems unapproved, its standing is looked up again, so that an approval by any
    /// process counts from the moment that it is given.
    pub(crate) async fn standing(
        &self,
        id: &ItemId,
        (items, odd): (&Arc<[Item]>, &Odd),
    ) -> Standing {
        match Standing::of(odd, &id.item) {
            Standing::New | Standing::Changed | Standing::Lost => {
                Standing::of(&*self.pins.look_closer(&id.server, items).await, &id.item)
            }
            known @ (Standing::Approved | Standing::Unexpected) => known,
        }
    }

    async fn compare(
        &self,
        server: &Arc<Server>,
        listing: Listing,
        items: &Arc<[Item]>,
    ) -> Arc<Odd> {
        match listing {
            Listing::Tools => self.pins.look_at(server.name(), items).await,
            Listing::Prompts | Listing::Resources | Listing::Templates => Arc::default(),
        }
    }
}

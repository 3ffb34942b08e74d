//! Lists of servers, looked at before anybody decides about what is in them.

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
    /// What a server lists, with how its tools stand to what was approved.
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

    /// What a leased connection lists, with how its tools stand to what was approved.
    pub(crate) async fn judged_by(
        &self,
        lease: &Lease,
        listing: Listing,
    ) -> Result<(Arc<[Item]>, Arc<Odd>), CallError> {
        let items = lease.list(listing).await?;
        let odd = self.compare(lease.server(), listing, &items).await;
        Ok((items, odd))
    }

    /// What a leased connection lists, where nothing has to be waited for.
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

    /// Lets the server and what its tools are compared with get ready at the same time: each may
    /// take milliseconds to begin.
    pub(crate) async fn beside<T>(
        &self,
        server: &Arc<Server>,
        listing: Listing,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        if listing == Listing::Tools && self.pins.is_unready(server.name()) {
            // Once for each server, and not to be carried along by every call.
            let ready = Box::pin(self.pins.get_ready());
            // The work goes first, and is not waited with when it is done.
            if let Either::Left((done, _)) = select(work.as_mut(), ready).await {
                return done;
            }
        }
        work.await
    }

    /// How a tool stands. One that does not seem to be what was approved is looked up again, so that
    /// an approval counts from the moment that it is given, by whomever.
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

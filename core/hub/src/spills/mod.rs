//! Long answers: kept in files, and read in pages.
//!
//! An answer above the limit in tokens is saved, and its caller gets the first page with the address
//! of the next one, `capstan://answers/ID?page=2`. `pages` splits an answer and puts the first page in
//! its place.
//!
//! **Invariant:** only the caller of the call can read its answer. For everyone else, an id that
//! exists is the same as one that does not.

mod pages;

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{Binding, Caller, ServerName};
use capstan_policy::Tags;
use capstan_wire::Json;
use tracing::warn;

pub(crate) use pages::{Pages, exceeds};

use crate::approvals::digest_of;
use crate::ports::{AnswerFiles, AnswerOwner, Clock, ListedAnswer, SavedAnswer, StoreError};

/// Bytes that make about one token.
pub const BYTES_PER_TOKEN: usize = 4;

/// Most answers that are kept; the oldest is removed for a new one.
pub const MAX_ANSWERS: usize = 64;

/// Most bytes of all answers together; the oldest are removed for a new one.
pub const MAX_BYTES: u64 = 256 << 20;

/// The age at which an answer is removed.
pub const MAX_AGE: Duration = Duration::from_hours(24);

/// Characters of the digest by which a caller is recognised: 128 bits.
const MAX_OWNER: usize = 32;

/// The beginning of the address of a page.
const ADDRESS: &str = "capstan://answers/";

/// The long answers of this operator's calls.
pub struct Spills {
    files: Arc<dyn AnswerFiles>,
    clock: Arc<dyn Clock>,
}

/// An answer to save.
pub(crate) struct SpilledAnswer<'a> {
    /// The server that gave it.
    pub(crate) server: &'a ServerName,
    /// The tags of its item, which flows are judged by.
    pub(crate) tags: Tags,
    /// The size of its pages, in bytes.
    pub(crate) page: usize,
    pub(crate) answer: &'a Json,
}

/// A page of a saved answer.
pub(crate) struct SpilledPage {
    /// The server that gave the answer.
    pub(crate) server: ServerName,
    /// The tags of its item.
    pub(crate) tags: Tags,
    pub(crate) page: Json,
}

/// The address of a page of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageAddress<'a> {
    id: &'a str,
    page: usize,
}

// === impl PageAddress ===

impl<'a> PageAddress<'a> {
    /// Parses an address; `None` if it is that of no page.
    pub(crate) fn parse(uri: &'a str) -> Option<Self> {
        let rest = uri.strip_prefix(ADDRESS)?;
        let (id, page) = match rest.split_once('?') {
            None => (rest, Some(1)),
            Some((id, query)) => {
                (id, query.strip_prefix("page=").and_then(|page| page.parse().ok()))
            }
        };
        Some(Self { id, page: page? })
    }
}

/// True if a URI is the address of a page of a long answer.
pub fn is_page(uri: &str) -> bool {
    uri.starts_with(ADDRESS)
}

/// Returns the address of a page.
pub(crate) fn address(id: &str, page: usize) -> String {
    format!("{ADDRESS}{id}?page={page}")
}

// === impl Spills ===

impl Spills {
    /// Creates the long answers that these files hold.
    pub fn new(files: Arc<dyn AnswerFiles>, clock: Arc<dyn Clock>) -> Self {
        Self { files, clock }
    }

    /// Saves an answer of a call for its caller.
    pub(crate) async fn keep(
        &self,
        caller: &Caller,
        spilled: SpilledAnswer<'_>,
    ) -> Result<SavedAnswer, StoreError> {
        let SpilledAnswer { server, tags, page, answer } = spilled;
        let bytes = u64::try_from(answer.len()).unwrap_or(u64::MAX);
        if bytes > MAX_BYTES {
            let what =
                format!("it has {bytes} bytes, and all kept answers together may have {MAX_BYTES}");
            return Err(StoreError { what, cause: None });
        }
        self.make_room(bytes, 1).await?;
        let tags = tags.bits();
        let owner = AnswerOwner { caller: owner(caller), server: server.clone(), page, tags };
        self.files.save(&owner, answer).await
    }

    /// Finds a page of an answer of `caller`.
    pub(crate) async fn page(
        &self,
        caller: &Caller,
        address: &PageAddress<'_>,
    ) -> Option<SpilledPage> {
        match self.find(caller, address).await {
            Ok(found) => found,
            Err(error) => {
                warn!(%error, "a kept answer cannot be read");
                None
            }
        }
    }

    async fn find(
        &self,
        caller: &Caller,
        wanted: &PageAddress<'_>,
    ) -> Result<Option<SpilledPage>, StoreError> {
        let listed = self.files.list().await?;
        let owner = owner(caller);
        let is_it = |one: &ListedAnswer| {
            one.id == wanted.id && one.owner.caller == owner && !self.is_old(one)
        };
        let Some(found) = listed.into_iter().find(is_it) else { return Ok(None) };
        let Some(answer) = self.files.load(&found.id).await? else { return Ok(None) };
        let page = Pages::of(&answer, found.owner.page).read(&found.id, wanted.page);
        let (server, tags) = (found.owner.server, Tags::from_bits(found.owner.tags));
        Ok(page.map(|page| SpilledPage { server, tags, page }))
    }

    /// Removes answers that are too old, and the oldest of too many.
    pub async fn sweep(&self) {
        if let Err(error) = self.make_room(0, 0).await {
            warn!(%error, "kept answers cannot be removed");
        }
    }

    /// Removes answers until `answers` more of this many bytes fit.
    async fn make_room(&self, bytes: u64, answers: usize) -> Result<(), StoreError> {
        let mut listed = self.files.list().await?;
        // Newest first, so that the oldest are those that no longer fit.
        listed.sort_by_key(|one| std::cmp::Reverse(one.saved_at));
        let (mut count, mut size) = (answers, bytes);
        for one in listed {
            let fits = count < MAX_ANSWERS && size.saturating_add(one.bytes) <= MAX_BYTES;
            if fits && !self.is_old(&one) {
                count += 1;
                size += one.bytes;
            } else {
                self.files.remove(&one.id).await?;
            }
        }
        Ok(())
    }

    /// True if an answer is too old, or from a time that is still to come.
    fn is_old(&self, one: &ListedAnswer) -> bool {
        let age = self.clock.now().duration_since(one.saved_at);
        age.unsigned_abs() > MAX_AGE
    }
}

/// Returns the digest by which a caller is recognised. Clients without authentication are told apart
/// by their address.
fn owner(caller: &Caller) -> String {
    let from = caller.from.map(|from| from.to_string()).unwrap_or_default();
    let binding = match caller.binding {
        Binding::Free => "local",
        Binding::Access => "remote",
    };
    let mut digest = digest_of([binding, &caller.identity(), &from]);
    digest.truncate(MAX_OWNER);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_a_page_names_one() {
        let parsed = |uri| PageAddress::parse(uri);
        let page = |id, page| Some(PageAddress { id, page });
        assert_eq!(parsed("capstan://answers/a1?page=3"), page("a1", 3));
        assert_eq!(parsed("capstan://answers/a1"), page("a1", 1));
        for other in ["?", "?page=", "?page=-1", "?page=1&x", "?Page=1", "?page=x"] {
            let uri = format!("capstan://answers/a1{other}");
            assert_eq!(PageAddress::parse(&uri), None, "{other}");
        }
        for other in ["capstan://answer/a1", "file:///a", "capstan:a1", ""] {
            assert_eq!(parsed(other), None, "{other}");
        }
        assert_eq!(address("a1", 7), "capstan://answers/a1?page=7");
    }
}

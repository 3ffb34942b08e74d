//! The URIs of all servers as one client sees them: a two-way map between what a server says and
//! what a client of the merged endpoint is shown.
//!
//! The first server that lists or shows a URI owns it, for as long as the server exists. The URI
//! then means that server's resource and is shown as it is. Other servers' URIs of that spelling are
//! shown in their [qualified](mod@qualified) form, which names the server. So a URI that a client was given
//! always leads back to the server that gave it, whatever other servers say later. [`template`]
//! compares URI templates, and [`places`] has the members of messages that hold URIs.

mod places;
mod qualified;
mod template;

pub use places::{DIRECTORY, TOOL};
use places::{RESULT, SKILLS};

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use capstan_model::{ItemId, ServerName};
use capstan_wire::rewrite::{self, Path, Rewriter};
use capstan_wire::{Json, object};

use crate::ports::{Item, Listing};
use qualified::{is_qualified, parse, qualified};
use template::Fixed;

/// The number of URIs that one server can own. Its further ones are shown in the qualified form.
const MAX_OWNED: usize = 16 * 1024;

/// The number of templates that one server can own.
const MAX_TEMPLATES: usize = 1024;

/// Longest URI that is owned, in bytes.
const MAX_URI: usize = 4096;

/// The owners of URIs and templates, shared by all sessions.
#[derive(Debug, Default)]
pub struct Uris(Mutex<Owners>);

/// Replaces the URIs in a streamed answer.
#[derive(Debug)]
pub(crate) struct StreamedUris {
    uris: Arc<Uris>,
    server: ServerName,
    rewriter: Rewriter,
}

#[derive(Clone, Debug, Default)]
struct Owners {
    exact: HashMap<Arc<str>, ServerName>,
    templates: Vec<OwnedTemplate>,
    /// The number of URIs that each server owns.
    counts: HashMap<ServerName, usize>,
    /// Servers that listed a resource or a template.
    listing: HashSet<ServerName>,
    /// The lists that were processed. One that has not changed is not processed again.
    lists: HashMap<(ServerName, Listing), Arc<[Item]>>,
}

#[derive(Clone, Debug)]
struct OwnedTemplate {
    text: Arc<str>,
    fixed: Fixed,
    server: ServerName,
}

/// Whom a URI leads to.
enum Owner<'a> {
    None,
    Server(&'a ServerName),
    /// Templates of several servers fit. Only their qualified forms are clear.
    Several,
}

// === impl Uris ===

impl Uris {
    /// Creates a map for these servers that keeps what they own in this one.
    #[must_use]
    pub fn then(&self, servers: impl IntoIterator<Item = ServerName>) -> Self {
        let servers: HashSet<ServerName> = servers.into_iter().collect();
        let mut owners = self.owners().clone();
        owners.exact.retain(|_, server| servers.contains(server));
        owners.templates.retain(|template| servers.contains(&template.server));
        owners.counts.retain(|server, _| servers.contains(server));
        owners.listing.retain(|server| servers.contains(server));
        // Another server may get now what a removed one owned.
        owners.lists.clear();
        Self(Mutex::new(owners))
    }

    /// Adds a server's current list: its resources, its templates, or the pages of its tools.
    pub fn learn(&self, listing: Listing, server: &ServerName, items: &Arc<[Item]>) {
        let mut owners = self.owners();
        let key = (server.clone(), listing);
        if owners.lists.get(&key).is_some_and(|known| Arc::ptr_eq(known, items)) {
            return;
        }
        match listing {
            Listing::Resources => {
                for item in items.iter() {
                    owners.own(server, &item.name);
                }
            }
            Listing::Templates => {
                for item in items.iter() {
                    owners.own_template(server, &item.name);
                }
            }
            Listing::Tools => {
                for item in items.iter().filter(|item| has_page(&item.definition)) {
                    rewrite::strings(&item.definition, TOOL, &mut |uri| {
                        owners.own(server, uri);
                        None
                    });
                }
            }
            Listing::Prompts => {}
        }
        let is_listing = matches!(listing, Listing::Resources | Listing::Templates);
        if is_listing && !items.is_empty() {
            owners.listing.insert(server.clone());
        }
        owners.lists.insert(key, Arc::clone(items));
        drop(owners);
    }

    /// Gives a server everything below a URI, such as the files of a skill. False if a part of it
    /// belongs to another server.
    fn own_below(&self, server: &ServerName, root: &str) -> bool {
        // A root without a path would be all URIs of its scheme.
        if root.split_once("://").is_none_or(|(_, rest)| rest.is_empty()) {
            return false;
        }
        let text = format!("{root}/{{+path}}");
        let mut owners = self.owners();
        owners.own_template(server, &text);
        owners.owns_template(server, &text) && owners.own(server, root)
    }

    /// The form in which a server's URI is shown; `None` if that is the URI itself, which then leads
    /// back to the server.
    ///
    /// A URI that no server owns yet becomes the server's. Links to web pages are not owned unless
    /// they are listed: clients open them without any server.
    pub fn shown(&self, server: &ServerName, uri: &str) -> Option<String> {
        let mut owners = self.owners();
        let is_own = match owners.owner(uri) {
            // The URI itself would lead to the server that it names.
            _ if is_qualified(uri) => false,
            Owner::Server(owner) => owner == server,
            Owner::Several => false,
            Owner::None => is_web(uri) || owners.own(server, uri),
        };
        drop(owners);
        (!is_own).then(|| qualified(server, uri))
    }

    /// The form in which a server's template is shown; `None` if that is the template itself.
    pub fn shown_template(&self, server: &ServerName, template: &str) -> Option<String> {
        let is_own = self.owners().owns_template(server, template);
        (!is_own).then(|| qualified(server, template))
    }

    /// True if a URI is qualified or belongs to a server, so that [`Self::resolve`] needs no lists.
    pub(crate) fn is_owned(&self, uri: &str) -> bool {
        is_qualified(uri) || matches!(self.owners().owner(uri), Owner::Server(_))
    }

    /// The resource or template that a client means by this URI, if the map has an owner for it.
    pub fn resolve(&self, uri: &str) -> Option<ItemId> {
        if is_qualified(uri) {
            return parse(uri);
        }
        let owners = self.owners();
        let server = match owners.owner(uri) {
            Owner::Server(server) => Some(server),
            Owner::Several => None,
            Owner::None => {
                let template = owners.templates.iter().find(|template| &*template.text == uri);
                // Resources need not be listed. If only one server has any, the URI belongs to it.
                let only = || (owners.listing.len() == 1).then(|| owners.listing.iter().next());
                template.map(|template| &template.server).or_else(|| only().flatten())
            }
        };
        let server = server.cloned();
        drop(owners);
        server.map(|server| ItemId { server, item: uri.to_owned() })
    }

    /// Returns a message of a server with its URIs as they are shown; `None` if nothing changes.
    pub fn shown_in(
        &self,
        server: &ServerName,
        message: &Json,
        paths: &'static [Path],
    ) -> Option<Json> {
        if !rewrite::may_have(message, places::MARKS) {
            return None;
        }
        rewrite::strings(message, paths, &mut |uri| self.shown(server, uri))
    }

    /// Returns the result of a call with its URIs as they are shown; `None` if nothing changes.
    pub fn shown_result(&self, server: &ServerName, result: &Json) -> Option<Json> {
        self.shown_in(server, result, RESULT)
    }

    /// Returns an entry of a skill with its URIs as they are shown; `None` if nothing changes. All
    /// of them are shown in the same form, because the files of a skill must be below its root.
    pub fn shown_skill(&self, server: &ServerName, entry: &Json) -> Option<Json> {
        let root = object::get_string(entry, "uri")?;
        let root = root.rsplit_once('/').map_or(root.as_str(), |(root, _)| root);
        let mut is_own = self.own_below(server, root);
        rewrite::strings(entry, SKILLS, &mut |uri| {
            is_own &= self.shown(server, uri).is_none();
            None
        });
        if is_own {
            return None;
        }
        rewrite::strings(entry, SKILLS, &mut |uri| Some(qualified(server, uri)))
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        // Each entry is complete by itself, so the map is consistent after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Owners ===

impl Owners {
    /// The owner of a URI: of the URI itself, or of the only templates that fit.
    fn owner(&self, uri: &str) -> Owner<'_> {
        if let Some(server) = self.exact.get(uri) {
            return Owner::Server(server);
        }
        let mut fitting = self.templates.iter().filter(|template| template.fixed.fits(uri));
        let Some(first) = fitting.next() else { return Owner::None };
        if fitting.all(|other| other.server == first.server) {
            Owner::Server(&first.server)
        } else {
            Owner::Several
        }
    }

    /// Gives a URI to a server; false if it cannot have it.
    fn own(&mut self, server: &ServerName, uri: &str) -> bool {
        match self.owner(uri) {
            Owner::Server(owner) if owner != server => return false,
            Owner::Several => return false,
            Owner::Server(_) if self.exact.contains_key(uri) => return true,
            Owner::Server(_) | Owner::None => {}
        }
        let count = self.counts.entry(server.clone()).or_default();
        if is_qualified(uri) || uri.len() > MAX_URI || *count >= MAX_OWNED {
            return false;
        }
        *count += 1;
        self.exact.insert(uri.into(), server.clone());
        true
    }

    /// Gives a template to a server, unless a URI that fits it belongs to another one.
    fn own_template(&mut self, server: &ServerName, text: &str) {
        if is_qualified(text) || text.len() > MAX_URI || self.owns_template(server, text) {
            return;
        }
        let Some(fixed) = Fixed::of(text) else {
            self.own(server, text);
            return;
        };
        let own = self.templates.iter().filter(|template| template.server == *server).count();
        let is_taken = self
            .templates
            .iter()
            .any(|other| other.server != *server && other.fixed.overlaps(&fixed))
            || self.exact.iter().any(|(uri, owner)| owner != server && fixed.fits(uri));
        if own < MAX_TEMPLATES && !is_taken {
            let (text, server) = (text.into(), server.clone());
            self.templates.push(OwnedTemplate { text, fixed, server });
        }
    }

    fn owns_template(&self, server: &ServerName, text: &str) -> bool {
        let is_it = |template: &&OwnedTemplate| &*template.text == text;
        self.templates.iter().filter(is_it).any(|template| template.server == *server)
            || self.exact.get(text).is_some_and(|owner| owner == server)
    }
}

// === impl StreamedUris ===

impl StreamedUris {
    pub(crate) fn new(uris: &Arc<Uris>, server: &ServerName) -> Self {
        let rewriter = Rewriter::new(RESULT);
        Self { uris: Arc::clone(uris), server: server.clone(), rewriter }
    }

    /// Returns the next piece of the answer. An incomplete URI at its end is held back.
    pub(crate) fn push(&mut self, piece: Bytes) -> Bytes {
        let Self { uris, server, rewriter } = self;
        rewriter.push(piece, &mut |uri| uris.shown(server, uri))
    }
}

/// True if the definition of a tool may name a page.
fn has_page(definition: &Json) -> bool {
    rewrite::may_have(definition, places::MARKS)
}

/// True for a link that clients open without a server.
fn is_web(uri: &str) -> bool {
    let begins =
        |scheme: &str| uri.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme));
    ["https:", "http:", "data:"].into_iter().any(begins)
}

#[cfg(test)]
mod tests;

//! Searches registries of servers, and downloads bundles.
//!
//! A registry speaks the read-only interface of the official one (`/v0.1/servers`), under any
//! address. What it says is bounded in size and time, and a bundle is kept only if it has the
//! digest that the registry gives.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

use capstan_http::{HttpError, StatusCode, Url, WebAddress, download};
use capstan_import::registry::{BadOffer, Offer};
use capstan_safety::address::AddressPolicy;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

/// The official registry.
pub const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit of a download.
const DOWNLOAD: Duration = Duration::from_mins(5);

/// Longest answer to a question, in bytes.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// Largest bundle, in bytes.
const MAX_BUNDLE: usize = 256 * 1024 * 1024;

/// Most servers that are asked for on one page.
const PAGE: u32 = 100;

/// Most pages that are looked at.
const MAX_PAGES: usize = 5;

/// A registry.
#[derive(Clone, Debug)]
pub struct Registry {
    base: Url,
    home: WebAddress,
    /// The addresses that the registry itself may be reached at.
    addresses: AddressPolicy,
}

/// Why a registry cannot say something.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// That is no address.
    #[error("`{0}` is not the address of a registry")]
    Address(String),
    /// It has no such thing.
    #[error("{0} has no `{1}`")]
    Unknown(Url, String),
    /// It does not answer.
    #[error("the request to {0} failed")]
    Unreachable(Url, #[source] HttpError),
    /// It did not answer in time.
    #[error("{0} did not answer within {1:?}")]
    TimedOut(Url, Duration),
    /// A rule about addresses refuses to connect there.
    #[error("a connection to {0} is not allowed")]
    Blocked(Url, #[source] HttpError),
    /// It answers with an error.
    #[error("{0} answers with {1}")]
    Refused(Url, StatusCode),
    /// It says more than we take.
    #[error("{0} answers with more than {1} MiB")]
    TooLarge(Url, usize),
    /// The answer does not have the format of a registry.
    #[error("{0} does not answer like a registry")]
    Shape(Url, #[source] serde_json::Error),
    /// The offer cannot be used.
    #[error(transparent)]
    Offer(#[from] BadOffer),
    /// The bundle is not the one that was meant.
    #[error("{0} does not match the digest in the registry")]
    Digest(Url),
    /// The registry does not say which bundle is meant.
    #[error("the registry has no digest for {0}, so the download cannot be verified")]
    NoDigest(Url),
}

#[derive(Deserialize)]
struct Page {
    servers: Vec<Listed>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Listed {
    server: Box<RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    next_cursor: Option<String>,
}

// === impl Registry ===

impl Registry {
    /// A registry under this address.
    pub fn at(address: &str) -> Result<Self, RegistryError> {
        let bad = || RegistryError::Address(address.to_owned());
        let base = Url::parse(address.trim_end_matches('/')).map_err(|_| bad())?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(bad());
        }
        let home = WebAddress::parse(address).map_err(|_| bad())?;
        // A person names the registry, and it may well be one of their own network. What it names
        // in turn must be public.
        Ok(Self { base, home, addresses: AddressPolicy::any_network() })
    }

    /// The servers that have all of these words in their names or descriptions, best first, at most
    /// so many.
    pub async fn search(&self, words: &[String], most: usize) -> Result<Vec<Offer>, RegistryError> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        // The registry knows one text only, and looks for it in names; the longest word says most.
        let longest = words.iter().max_by_key(|word| word.len()).cloned().unwrap_or_default();
        let (mut found, mut names, mut cursor) = (Vec::new(), HashSet::new(), None);
        for _ in 0..MAX_PAGES {
            let page = self.page(&longest, cursor.as_deref()).await?;
            for listed in page.servers {
                // One that cannot be read hides no other.
                let Ok(offer) = Offer::read(listed.server.get()) else { continue };
                if let Some(rank) = rank(&offer, &words)
                    && names.insert(offer.name.clone())
                {
                    found.push((rank, offer));
                }
            }
            cursor = page.metadata.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        found.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.name.cmp(&other.name)));
        Ok(found.into_iter().take(most).map(|(_, offer)| offer).collect())
    }

    /// Fetches the offer with this name, in this version or the latest.
    pub async fn offer(&self, name: &str, version: Option<&str>) -> Result<Offer, RegistryError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            let version = version.unwrap_or("latest");
            path.pop_if_empty().extend(["v0.1", "servers", name, "versions", version]);
        }
        let bytes = match self.get(&url, PATIENCE, MAX_ANSWER).await {
            Err(RegistryError::Refused(_, StatusCode::NOT_FOUND)) => {
                return Err(RegistryError::Unknown(self.base.clone(), name.to_owned()));
            }
            other => other?,
        };
        let listed: Listed =
            serde_json::from_slice(&bytes).map_err(|error| RegistryError::Shape(url, error))?;
        Ok(Offer::read(listed.server.get())?)
    }

    /// A bundle, if it has this digest.
    pub async fn bundle(&self, address: &str, sha256: &str) -> Result<Vec<u8>, RegistryError> {
        let bad = || RegistryError::Address(address.to_owned());
        let url = Url::parse(address).map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad());
        }
        if sha256.is_empty() {
            return Err(RegistryError::NoDigest(url));
        }
        let bytes = self.get(&url, DOWNLOAD, MAX_BUNDLE).await?;
        let mut digest = String::new();
        for byte in Sha256::digest(&bytes) {
            // Writing to a string does not fail.
            let _ = write!(digest, "{byte:02x}");
        }
        if digest.eq_ignore_ascii_case(sha256) {
            Ok(bytes)
        } else {
            Err(RegistryError::Digest(url))
        }
    }

    async fn page(&self, search: &str, cursor: Option<&str>) -> Result<Page, RegistryError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["v0.1", "servers"]);
        }
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("limit", &PAGE.to_string()).append_pair("version", "latest");
            if !search.is_empty() {
                query.append_pair("search", search);
            }
            if let Some(cursor) = cursor {
                query.append_pair("cursor", cursor);
            }
        }
        let bytes = self.get(&url, PATIENCE, MAX_ANSWER).await?;
        serde_json::from_slice(&bytes).map_err(|error| RegistryError::Shape(url, error))
    }

    async fn get(
        &self,
        url: &Url,
        patience: Duration,
        most: usize,
    ) -> Result<Vec<u8>, RegistryError> {
        let address = self.home.join(url.as_str());
        let address = address.map_err(|_| RegistryError::Address(url.to_string()))?;
        let public = AddressPolicy::default();
        let addresses = if address.same_origin(&self.home) { &self.addresses } else { &public };
        let fetched = timeout(patience, download(&address, addresses, most)).await;
        let fetched = fetched.map_err(|_| RegistryError::TimedOut(url.clone(), patience))?;
        let response = fetched.map_err(|error| match error {
            HttpError::Blocked(_) | HttpError::Elsewhere(_) => {
                RegistryError::Blocked(url.clone(), error)
            }
            HttpError::Unfit(_)
            | HttpError::NotSent(_)
            | HttpError::Lost(_)
            | HttpError::NeedsLogin(_)
            | HttpError::Redirected { .. } => RegistryError::Unreachable(url.clone(), error),
        })?;
        let status = StatusCode::from_u16(response.status).unwrap_or_default();
        if !status.is_success() {
            return Err(RegistryError::Refused(url.clone(), status));
        }
        if !response.whole {
            return Err(RegistryError::TooLarge(url.clone(), most / (1024 * 1024)));
        }
        Ok(response.body.to_vec())
    }
}

/// The rank of an offer: all words in its short name, in its name, or anywhere; `None` if one is
/// missing.
fn rank(offer: &Offer, words: &[String]) -> Option<u8> {
    let short = offer.short_name().to_lowercase();
    let name = format!("{} {}", offer.name, offer.title.as_deref().unwrap_or("")).to_lowercase();
    let all = format!("{name} {}", offer.description.to_lowercase());
    let has = |text: &str| words.iter().all(|word| text.contains(word.as_str()));
    match () {
        () if has(&short) => Some(0),
        () if has(&name) => Some(1),
        () if has(&all) => Some(2),
        () => None,
    }
}

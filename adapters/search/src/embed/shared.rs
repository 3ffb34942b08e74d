//! An index in a Qdrant server, which several gateways share.
//!
//! Its collection holds the vectors of tools by the BLAKE3 of their definition, so that a tool that
//! one gateway has embedded is embedded by no other. Each owner has points of its own: what one
//! removes, the others keep. A hit is only a digest with a score; the tool is read from the list of
//! the caller, so stale points and foreign ones have no effect.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use capstan_model::Secret;
use capstan_safety::address::AddressPolicy;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use super::Digest;
use super::web::Web;
use super::worker::{Job, Unavailable};
use crate::vectors::Vector;

/// The collection.
const COLLECTION: &str = "capstan_tools";

/// Number of points in one request.
const BATCH: usize = 64;

/// Number of points that are listed at once.
const PAGE: usize = 256;

/// Maximum number of own points that are known.
const MAX_POINTS: usize = 200_000;

/// Points of earlier runs that nobody used for this number of days are removed.
const KEPT_DAYS: u64 = 7;

const DAY: u64 = 24 * 60 * 60;

/// The parts of points that are listed, besides their digest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    Nothing,
    Vectors,
}

/// A digest with its similarity to a query.
pub(crate) type Hit = (Digest, f32);

/// An index that several processes share; lives on the worker's thread.
pub(crate) trait SharedIndex {
    /// The vectors of these tools that any owner has stored.
    fn fetch(&mut self, wanted: &[Digest]) -> Result<Vec<(Digest, Vector)>, Unavailable>;

    /// Stores tools that are not stored yet.
    fn put(&mut self, tools: &[(Job, Vector)]) -> Result<(), Unavailable>;

    /// Removes tools of this owner.
    fn remove(&mut self, digests: &[Digest]) -> Result<(), Unavailable>;

    /// The most similar of these tools.
    fn search(
        &mut self,
        vector: &Vector,
        among: &[Digest],
        limit: usize,
    ) -> Result<Vec<Hit>, Unavailable>;
}

/// A Qdrant server.
#[derive(Clone, Debug)]
pub struct QdrantServer {
    /// Its address, such as `http://localhost:6333`.
    pub endpoint: String,
    /// The key; `None` if it needs none.
    pub key: Option<Secret<String>>,
    /// The addresses that it may have.
    pub addresses: AddressPolicy,
    /// Gateways with one owner share their points.
    pub owner: String,
    /// The longest time for an answer.
    pub timeout: Duration,
}

/// The collection of tools in a Qdrant server.
struct Qdrant {
    web: Web,
    owner: String,
    /// The model of the vectors, which are compared with no others.
    model: String,
    /// The own points; `None` before the first request.
    stored: Option<FxHashSet<Digest>>,
    /// True if the collection is known to exist.
    is_made: bool,
}

// === impl QdrantServer ===

impl QdrantServer {
    /// Prepares the index for vectors of a model. Nothing is sent yet.
    pub(crate) fn open(&self, model: &str) -> Option<Box<dyn SharedIndex>> {
        let key = self.key.iter().map(|key| ("api-key".to_owned(), key.clone()));
        let headers: Vec<_> = key.collect();
        match Web::new(&self.endpoint, &headers, &self.addresses, self.timeout) {
            Ok(web) => Some(Box::new(Qdrant {
                web,
                owner: self.owner.clone(),
                model: model.to_owned(),
                stored: None,
                is_made: false,
            })),
            Err(problem) => {
                let endpoint = &self.endpoint;
                tracing::warn!(%problem, %endpoint, "the shared index of tools is not used");
                None
            }
        }
    }
}

impl SharedIndex for Qdrant {
    fn fetch(&mut self, wanted: &[Digest]) -> Result<Vec<(Digest, Vector)>, Unavailable> {
        if wanted.is_empty() || !self.exists()? {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for some in wanted.chunks(PAGE) {
            let hashes: Vec<String> = some.iter().map(hex).collect();
            let filter = json!({ "must": [
                { "key": "hash", "match": { "any": hashes } },
                { "key": "model", "match": { "value": self.model } },
            ] });
            // Several owners may have the same tool.
            for point in self.scroll(&filter, With::Vectors, PAGE * 4)? {
                let vector = point.get("vector").and_then(floats);
                if let (Some(digest), Some(vector)) =
                    (digest_of(&point), vector.and_then(|exact| Vector::normalized(&exact)))
                {
                    found.push((digest, vector));
                }
            }
        }
        Ok(found)
    }

    fn put(&mut self, tools: &[(Job, Vector)]) -> Result<(), Unavailable> {
        self.load()?;
        let stored = self.stored.take().unwrap_or_default();
        let new = tools.iter().filter(|(job, _)| !stored.contains(&job.digest));
        let new: Vec<&(Job, Vector)> = new.collect();
        let put = self.put_new(&new);
        let mut stored = stored;
        if put.is_ok() {
            stored.extend(new.iter().map(|(job, _)| job.digest));
        }
        self.stored = Some(stored);
        put
    }

    fn remove(&mut self, digests: &[Digest]) -> Result<(), Unavailable> {
        self.load()?;
        let Some(stored) = &mut self.stored else { return Ok(()) };
        let gone: Vec<Digest> =
            digests.iter().filter(|digest| stored.remove(*digest)).copied().collect();
        for some in gone.chunks(PAGE) {
            let points: Vec<String> = some.iter().map(|digest| self.id(digest)).collect();
            self.change("POST", "/points/delete?wait=true", &json!({ "points": points }))?;
        }
        Ok(())
    }

    fn search(
        &mut self,
        vector: &Vector,
        among: &[Digest],
        limit: usize,
    ) -> Result<Vec<Hit>, Unavailable> {
        if among.is_empty() || !self.exists()? {
            return Ok(Vec::new());
        }
        // The filter lets no tool influence the result that the caller may not see.
        let ids: Vec<String> = among.iter().map(|digest| self.id(digest)).collect();
        let body = json!({
            "query": vector.exact(),
            "filter": { "must": [{ "has_id": ids }] },
            "limit": limit,
            "with_payload": ["hash"],
        });
        let answer = self.ask("POST", "/points/query", Some(&body))?;
        let points = answer.pointer("/result/points").and_then(Value::as_array);
        let points = points.ok_or_else(|| self.web.fault("its answer has no points"))?;
        let hit = |point: &Value| {
            #[expect(clippy::cast_possible_truncation, reason = "a cosine")]
            let score = point.get("score")?.as_f64()? as f32;
            Some((digest_of(point)?, score)).filter(|(_, score)| score.is_finite())
        };
        Ok(points.iter().filter_map(hit).collect())
    }
}

// === impl Qdrant ===

impl Qdrant {
    /// Sends a request about the collection.
    fn ask(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Unavailable> {
        let path = format!("/collections/{COLLECTION}{path}");
        let (status, answer) = self.web.send(method, &path, body)?;
        if (200..300).contains(&status) {
            Ok(answer)
        } else {
            Err(self.web.refused(status, &answer))
        }
    }

    fn change(&self, method: &'static str, path: &str, body: &Value) -> Result<(), Unavailable> {
        self.ask(method, path, Some(body)).map(drop)
    }

    /// True if the collection exists.
    fn exists(&mut self) -> Result<bool, Unavailable> {
        if !self.is_made {
            let (status, answer) =
                self.web.send("GET", &format!("/collections/{COLLECTION}"), None)?;
            self.is_made = match status {
                200..300 => true,
                404 => false,
                _ => return Err(self.web.refused(status, &answer)),
            };
        }
        Ok(self.is_made)
    }

    /// Lists the own points once, and removes those that were not used for long.
    fn load(&mut self) -> Result<(), Unavailable> {
        if self.stored.is_some() {
            return Ok(());
        }
        let mut stored = FxHashSet::default();
        if self.exists()? {
            let old = today().saturating_sub(KEPT_DAYS);
            let mine = self.mine();
            let unused = json!({ "must": [
                mine, { "key": "seen", "range": { "lt": old } },
            ] });
            self.change("POST", "/points/delete?wait=true", &json!({ "filter": unused }))?;
            let filter = json!({ "must": [
                mine, { "key": "model", "match": { "value": self.model } },
            ] });
            let points = self.scroll(&filter, With::Nothing, MAX_POINTS)?;
            stored.extend(points.iter().filter_map(digest_of));
            // A point that is seen today is written again tomorrow at the earliest.
            let seen = json!({ "payload": { "seen": today() }, "filter": filter });
            self.change("POST", "/points/payload?wait=true", &seen)?;
        }
        self.stored = Some(stored);
        Ok(())
    }

    fn mine(&self) -> Value {
        json!({ "key": "owner", "match": { "value": self.owner } })
    }

    fn put_new(&mut self, new: &[&(Job, Vector)]) -> Result<(), Unavailable> {
        let Some((_, first)) = new.first() else { return Ok(()) };
        if !self.exists()? {
            let vectors = json!({ "size": first.values.len(), "distance": "Cosine" });
            match self.ask("PUT", "", Some(&json!({ "vectors": vectors }))) {
                Ok(_) => {}
                // Another gateway was faster.
                Err(error) => {
                    if !self.exists()? {
                        return Err(error);
                    }
                }
            }
            for key in ["hash", "owner", "model"] {
                let index = json!({ "field_name": key, "field_schema": "keyword" });
                self.change("PUT", "/index?wait=true", &index)?;
            }
            self.is_made = true;
        }
        for some in new.chunks(BATCH) {
            let points: Vec<Value> =
                some.iter().map(|(job, vector)| self.point(job, vector)).collect();
            self.change("PUT", "/points?wait=true", &json!({ "points": points }))?;
        }
        Ok(())
    }

    fn point(&self, job: &Job, vector: &Vector) -> Value {
        let [server, tool] = &job.names;
        json!({
            "id": self.id(&job.digest),
            "vector": vector.exact(),
            "payload": {
                "hash": hex(&job.digest),
                "model": self.model,
                "owner": self.owner,
                "server": server,
                "tool": tool,
                "seen": today(),
            },
        })
    }

    /// The points of a filter, at most `most`.
    fn scroll(&self, filter: &Value, with: With, most: usize) -> Result<Vec<Value>, Unavailable> {
        let mut points = Vec::new();
        let mut offset = Value::Null;
        loop {
            let mut body = json!({
                "filter": filter,
                "limit": PAGE,
                "with_payload": ["hash"],
                "with_vector": with == With::Vectors,
            });
            if let Some(body) = body.as_object_mut().filter(|_| !offset.is_null()) {
                body.insert("offset".to_owned(), offset);
            }
            let mut answer = self.ask("POST", "/points/scroll", Some(&body))?;
            let page = answer.pointer_mut("/result/points").and_then(Value::as_array_mut);
            let page = page.ok_or_else(|| self.web.fault("its answer has no points"))?;
            let is_empty = page.is_empty();
            points.append(page);
            offset = answer.pointer("/result/next_page_offset").cloned().unwrap_or_default();
            if is_empty || offset.is_null() || points.len() >= most {
                points.truncate(most);
                return Ok(points);
            }
        }
    }

    /// The id of an own point: a UUID of the owner, the model and the tool.
    fn id(&self, digest: &Digest) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [self.owner.as_bytes(), self.model.as_bytes(), digest] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let hex = hasher.finalize().to_hex();
        let part = |range| hex.get(range).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
    }
}

fn digest_of(point: &Value) -> Option<Digest> {
    let hash = point.pointer("/payload/hash")?.as_str()?;
    Some(*blake3::Hash::from_hex(hash).ok()?.as_bytes())
}

fn hex(digest: &Digest) -> String {
    blake3::Hash::from_bytes(*digest).to_hex().to_string()
}

fn floats(value: &Value) -> Option<Vec<f32>> {
    #[expect(clippy::cast_possible_truncation, reason = "vectors are rounded to 8 bits")]
    let float = |value: &Value| Some(value.as_f64()? as f32);
    value.as_array()?.iter().map(float).collect()
}

/// The number of days since 1970.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / DAY)
}

//! A stand-in for a Qdrant server: collections, points, filters and exact search by cosine.
//!
//! It has the paths, envelopes and errors of the REST interface that Capstan uses, and refuses
//! conditions that it does not know. The official Python client accepts it (`./dev/test servers`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::json_server::{JsonRequest, JsonServer};

/// The key that the stand-in requires.
pub const QDRANT_KEY: &str = "test-key-of-qdrant";

/// A stand-in, listening while a test runs.
#[derive(Debug)]
pub struct Qdrant {
    server: JsonServer,
    collections: Arc<Mutex<BTreeMap<String, Collection>>>,
}

#[derive(Debug)]
struct Collection {
    size: usize,
    points: BTreeMap<String, Point>,
    indexes: Map<String, Value>,
}

#[derive(Clone, Debug)]
struct Point {
    id: Value,
    vector: Vec<f64>,
    payload: Map<String, Value>,
}

/// A status with the message of an error.
type Fault = (u16, String);

// === impl Qdrant ===

impl Qdrant {
    /// Starts to answer.
    #[track_caller]
    pub fn start() -> Self {
        let collections: Arc<Mutex<BTreeMap<String, Collection>>> = Arc::default();
        let kept = Arc::clone(&collections);
        let server = JsonServer::start(move |request| {
            let mut collections = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let result = answer(&mut collections, request);
            drop(collections);
            match result {
                Ok(Value::Object(whole)) if whole.contains_key("title") => {
                    (200, Value::Object(whole))
                }
                Ok(result) => (200, json!({ "result": result, "status": "ok", "time": 0.001 })),
                Err((status, error)) => {
                    (status, json!({ "status": { "error": error }, "time": 0.001 }))
                }
            }
        });
        Self { server, collections }
    }

    /// The address, without a path.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The payloads of the points of a collection.
    pub fn payloads(&self, collection: &str) -> Vec<Value> {
        let points: Vec<Point> = self
            .collections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(collection)
            .map(|found| found.points.values().cloned().collect())
            .unwrap_or_default();
        points.into_iter().map(|point| Value::Object(point.payload)).collect()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<JsonRequest> {
        self.server.requests()
    }
}

fn answer(
    collections: &mut BTreeMap<String, Collection>,
    request: &JsonRequest,
) -> Result<Value, Fault> {
    let path: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
    if path.is_empty() {
        let title = "qdrant - vector search engine";
        return Ok(json!({ "title": title, "version": "1.16.0", "commit": "stand-in" }));
    }
    if request.header("api-key") != Some(QDRANT_KEY) {
        let message = "Must provide an API key or an Authorization bearer token";
        return Err((401, message.to_owned()));
    }
    let body = &request.body;
    match (request.method.as_str(), path.as_slice()) {
        ("GET", ["collections"]) => {
            let names: Vec<Value> =
                collections.keys().map(|name| json!({ "name": name })).collect();
            Ok(json!({ "collections": names }))
        }
        ("GET", ["collections", name, "exists"]) => {
            Ok(json!({ "exists": collections.contains_key(*name) }))
        }
        ("PUT", ["collections", name]) => create(collections, name, body),
        ("DELETE", ["collections", name]) => Ok(json!(collections.remove(*name).is_some())),
        (method, ["collections", name, rest @ ..]) => {
            let missing = || (404, format!("Not found: Collection `{name}` doesn't exist!"));
            let collection = collections.get_mut(*name).ok_or_else(missing)?;
            collection.answer(method, rest, body)
        }
        _ => Err((404, "Not found".to_owned())),
    }
}

fn create(
    collections: &mut BTreeMap<String, Collection>,
    name: &str,
    body: &Value,
) -> Result<Value, Fault> {
    if collections.contains_key(name) {
        let message = format!("Wrong input: Collection `{name}` already exists!");
        return Err((409, message));
    }
    let vectors = &body["vectors"];
    let size = vectors["size"].as_u64().and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|_| vectors["distance"] == "Cosine");
    let size = size.ok_or_else(|| bad("only vectors with the distance Cosine are supported"))?;
    let collection = Collection { size, points: BTreeMap::new(), indexes: Map::new() };
    collections.insert(name.to_owned(), collection);
    Ok(json!(true))
}

// === impl Collection ===

impl Collection {
    fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Result<Value, Fault> {
        match (method, path) {
            ("GET", []) => Ok(self.info()),
            ("PUT", ["index"]) => {
                let name = body["field_name"].as_str().ok_or_else(|| bad("no field_name"))?;
                let kind = json!({ "data_type": body["field_schema"], "points": 0 });
                self.indexes.insert(name.to_owned(), kind);
                Ok(done())
            }
            ("PUT", ["points"]) => self.upsert(body),
            ("POST", ["points"]) => {
                let ids = body["ids"].as_array().ok_or_else(|| bad("no ids"))?;
                let found = ids.iter().filter_map(|id| self.points.get(&id.to_string()));
                Ok(found.map(|point| record(point, body)).collect())
            }
            ("POST", ["points", "scroll"]) => self.scroll(body),
            ("POST", ["points", "query"]) => self.query(body),
            ("POST", ["points", "count"]) => Ok(json!({ "count": self.selected(body)?.len() })),
            ("POST", ["points", "delete"]) => {
                for id in self.selected(body)? {
                    self.points.remove(&id);
                }
                Ok(done())
            }
            ("POST", ["points", "payload"]) => {
                let payload = body["payload"].as_object().ok_or_else(|| bad("no payload"))?;
                for id in self.selected(body)? {
                    if let Some(point) = self.points.get_mut(&id) {
                        point.payload.extend(payload.clone());
                    }
                }
                Ok(done())
            }
            _ => Err((404, "Not found".to_owned())),
        }
    }

    fn info(&self) -> Value {
        json!({
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": self.points.len(),
            "indexed_vectors_count": 0,
            "payload_schema": self.indexes,
            "config": {
                "params": {
                    "vectors": { "size": self.size, "distance": "Cosine" },
                    "shard_number": 1, "replication_factor": 1, "write_consistency_factor": 1,
                    "on_disk_payload": true
                },
                "hnsw_config": { "m": 16, "ef_construct": 100, "full_scan_threshold": 10000 },
                "optimizer_config": {
                    "deleted_threshold": 0.2, "vacuum_min_vector_number": 1000,
                    "default_segment_number": 0, "flush_interval_sec": 5
                },
                "wal_config": { "wal_capacity_mb": 32, "wal_segments_ahead": 0 }
            }
        })
    }

    fn upsert(&mut self, body: &Value) -> Result<Value, Fault> {
        let points = body["points"].as_array().ok_or_else(|| bad("no points"))?;
        for point in points {
            let id = &point["id"];
            let is_id = id.is_u64() || id.as_str().is_some_and(is_uuid);
            if !is_id {
                return Err(bad(&format!(
                    "{id} is not a valid point ID, valid values are either an unsigned integer or a UUID"
                )));
            }
            let vector = floats(&point["vector"])?;
            if vector.len() != self.size {
                let (size, got) = (self.size, vector.len());
                return Err(bad(&format!(
                    "Vector dimension error: expected dim: {size}, got {got}"
                )));
            }
            let payload = point["payload"].as_object().cloned().unwrap_or_default();
            let point = Point { id: id.clone(), vector: unit(&vector), payload };
            self.points.insert(id.to_string(), point);
        }
        Ok(done())
    }

    /// The keys of the points that `points` names or `filter` selects.
    fn selected(&self, body: &Value) -> Result<Vec<String>, Fault> {
        if let Some(ids) = body["points"].as_array() {
            return Ok(ids.iter().map(Value::to_string).collect());
        }
        let mut keys = Vec::new();
        for (key, point) in &self.points {
            if fits(point, &body["filter"])? {
                keys.push(key.clone());
            }
        }
        Ok(keys)
    }

    fn scroll(&self, body: &Value) -> Result<Value, Fault> {
        let limit = body["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(10).max(1);
        let keys = self.selected(&json!({ "filter": body["filter"] }))?;
        let from = body["offset"].to_string();
        let rest = keys.iter().skip_while(|key| !body["offset"].is_null() && **key < from);
        let rest: Vec<&Point> = rest.filter_map(|key| self.points.get(key)).collect();
        let next = rest.get(limit).map(|point| point.id.clone());
        let page: Vec<Value> =
            rest.into_iter().take(limit).map(|point| record(point, body)).collect();
        Ok(json!({ "points": page, "next_page_offset": next }))
    }

    fn query(&self, body: &Value) -> Result<Value, Fault> {
        let query = body["query"].get("nearest").unwrap_or(&body["query"]);
        let query = unit(&floats(query)?);
        if query.len() != self.size {
            let (size, got) = (self.size, query.len());
            return Err(bad(&format!("Vector dimension error: expected dim: {size}, got {got}")));
        }
        let mut found = Vec::new();
        for key in self.selected(&json!({ "filter": body["filter"] }))? {
            if let Some(point) = self.points.get(&key) {
                let score: f64 = point.vector.iter().zip(&query).map(|(a, b)| a * b).sum();
                found.push((score, point));
            }
        }
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        let limit = body["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let points = found.into_iter().take(limit.unwrap_or(10)).map(|(score, point)| {
            let mut record = record(point, body);
            if let Some(record) = record.as_object_mut() {
                record.insert("score".to_owned(), json!(score));
                record.insert("version".to_owned(), json!(0));
            }
            record
        });
        Ok(json!({ "points": points.collect::<Vec<_>>() }))
    }
}

/// A point, with what the request wants of it.
fn record(point: &Point, body: &Value) -> Value {
    let payload = match &body["with_payload"] {
        Value::Array(names) => {
            let wanted = |name: &&String| names.iter().any(|other| other == name.as_str());
            let kept = point.payload.iter().filter(|(name, _)| wanted(name));
            json!(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
        }
        Value::Bool(true) => json!(point.payload),
        Value::Null
        | Value::Bool(false)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => Value::Null,
    };
    let has_vector = body["with_vector"] == true;
    let vector = if has_vector { json!(point.vector) } else { Value::Null };
    json!({ "id": point.id, "payload": payload, "vector": vector })
}

/// True if a point fits a filter.
fn fits(point: &Point, filter: &Value) -> Result<bool, Fault> {
    let Some(filter) = filter.as_object() else { return Ok(true) };
    for (clause, conditions) in filter {
        if clause != "must" {
            if conditions.is_null() {
                continue;
            }
            return Err(bad(&format!("the clause `{clause}` is not supported")));
        }
        let one = std::slice::from_ref(conditions);
        for condition in conditions.as_array().map_or(one, Vec::as_slice) {
            if !holds(point, condition)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn holds(point: &Point, condition: &Value) -> Result<bool, Fault> {
    if let Some(ids) = condition["has_id"].as_array() {
        return Ok(ids.contains(&point.id));
    }
    let unknown = || bad(&format!("the condition {condition} is not supported"));
    let key = condition["key"].as_str().ok_or_else(unknown)?;
    let value = point.payload.get(key).unwrap_or(&Value::Null);
    let (wanted, range) = (&condition["match"], &condition["range"]);
    if let Some(any) = wanted["any"].as_array() {
        return Ok(any.contains(value));
    }
    if !wanted["value"].is_null() {
        return Ok(*value == wanted["value"]);
    }
    let Some(range) = range.as_object() else { return Err(unknown()) };
    let Some(number) = value.as_f64() else { return Ok(false) };
    let mut holds = true;
    for (name, limit) in range.iter().filter(|(_, limit)| !limit.is_null()) {
        let limit = limit.as_f64().ok_or_else(unknown)?;
        holds &= match name.as_str() {
            "lt" => number < limit,
            "lte" => number <= limit,
            "gt" => number > limit,
            "gte" => number >= limit,
            _ => return Err(unknown()),
        };
    }
    Ok(holds)
}

fn bad(problem: &str) -> Fault {
    (400, format!("Wrong input: {problem}"))
}

fn done() -> Value {
    json!({ "operation_id": 1, "status": "completed" })
}

fn floats(value: &Value) -> Result<Vec<f64>, Fault> {
    let list = value.as_array().ok_or_else(|| bad("no vector"))?;
    list.iter().map(|value| value.as_f64().ok_or_else(|| bad("no vector"))).collect()
}

/// Qdrant stores vectors of this distance with the length 1.
fn unit(vector: &[f64]) -> Vec<f64> {
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if length == 0.0 {
        vector.to_vec()
    } else {
        vector.iter().map(|value| value / length).collect()
    }
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

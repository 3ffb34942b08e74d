//! A stand-in for services of embeddings: `POST /v1/embeddings` and `POST /api/embed`.
//!
//! The vectors are made of the letters of a text: texts with the same letters have the same vector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::json_server::{JsonRequest, JsonServer};

/// The key that the stand-in requires at `/v1/embeddings`.
pub const EMBEDDING_KEY: &str = "test-key-of-embeddings";

/// A stand-in, listening while a test runs.
#[derive(Debug)]
pub struct EmbeddingApi {
    server: JsonServer,
    is_broken: Arc<AtomicBool>,
}

// === impl EmbeddingApi ===

impl EmbeddingApi {
    /// Starts to answer.
    #[track_caller]
    pub fn start() -> Self {
        let is_broken = Arc::new(AtomicBool::new(false));
        let broken = Arc::clone(&is_broken);
        let server = JsonServer::start(move |request| {
            if broken.load(Ordering::SeqCst) {
                return (503, json!({ "error": { "message": "out of order" } }));
            }
            answer(request)
        });
        Self { server, is_broken }
    }

    /// Fails all further requests.
    pub fn fail(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
    }

    /// The address, without a path.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// All texts that were embedded, in their order.
    pub fn texts(&self) -> Vec<String> {
        let requests = self.server.requests();
        let inputs = requests.iter().filter_map(|request| request.body.get("input")?.as_array());
        inputs.flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<JsonRequest> {
        self.server.requests()
    }
}

fn answer(request: &JsonRequest) -> (u16, Value) {
    let fault = |status, message: &str| (status, json!({ "error": { "message": message } }));
    let model = request.body.get("model").cloned().unwrap_or_default();
    let Some(input) = request.body.get("input").and_then(Value::as_array) else {
        return fault(400, "`input` must be a list");
    };
    if !model.is_string() {
        return fault(400, "`model` is missing");
    }
    let vectors: Vec<Vec<f64>> =
        input.iter().map(|text| vector(text.as_str().unwrap_or_default())).collect();
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/embeddings") => {
            if request.header("authorization") != Some(&format!("Bearer {EMBEDDING_KEY}")) {
                return fault(401, "Incorrect API key provided");
            }
            // The order of the entries is not that of the texts.
            let data = vectors.iter().enumerate().rev().map(
                |(index, vector)| json!({ "object": "embedding", "index": index, "embedding": vector }),
            );
            let data: Vec<Value> = data.collect();
            (200, json!({ "object": "list", "data": data, "model": model }))
        }
        ("POST", "/api/embed") => (200, json!({ "model": model, "embeddings": vectors })),
        _ => fault(404, "no such path"),
    }
}

/// The numbers of the letters from a to z.
fn vector(text: &str) -> Vec<f64> {
    let count = |letter: u8| {
        let letters = text.bytes().filter(|byte| byte.eq_ignore_ascii_case(&letter));
        f64::from(u32::try_from(letters.count()).unwrap_or(u32::MAX))
    };
    let mut vector: Vec<f64> = (b'a'..=b'z').map(count).collect();
    vector.push(0.01);
    vector
}

//! Embeddings of a service: any server with the interface of `OpenAI`, or Ollama.

use std::time::Duration;

use capstan_model::Secret;
use capstan_safety::address::AddressPolicy;
use serde_json::{Value, json};

use super::file::MAX_DIMENSIONS;
use super::web::Web;
use super::worker::{Embedder, Unavailable};
use crate::vectors::Vector;

/// Number of texts in one request.
const BATCH: usize = 32;

/// Maximum length of a text, in bytes; services refuse longer ones.
const MAX_TEXT: usize = 8_000;

/// The interface of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingInterface {
    /// `POST /embeddings`, as of `OpenAI` and compatible servers.
    OpenAi,
    /// `POST /api/embed`.
    Ollama,
}

/// A service that makes embeddings.
#[derive(Clone, Debug)]
pub struct EmbeddingService {
    /// The interface.
    pub interface: EmbeddingInterface,
    /// Its address.
    pub endpoint: String,
    /// The model.
    pub model: String,
    /// The key; `None` if it needs none.
    pub key: Option<Secret<String>>,
    /// The addresses that it may have.
    pub addresses: AddressPolicy,
    /// The longest time for an answer.
    pub timeout: Duration,
}

/// The connection to a service.
struct Remote {
    web: Web,
    interface: EmbeddingInterface,
    model: String,
    /// The dimensions of the first vector; others must have the same.
    dimensions: Option<usize>,
}

// === impl EmbeddingService ===

impl EmbeddingService {
    /// Names the model, so that its vectors are compared with no others.
    pub(crate) fn recipe(&self) -> String {
        format!("{} {}", self.endpoint, self.model)
    }

    pub(crate) fn open(&self) -> Option<Box<dyn Embedder>> {
        let key = self.key.as_ref().map(|key| {
            ("authorization".to_owned(), Secret::new(format!("Bearer {}", key.reveal())))
        });
        let headers: Vec<_> = key.into_iter().collect();
        match Web::new(&self.endpoint, &headers, &self.addresses, self.timeout) {
            Ok(web) => {
                let (interface, model) = (self.interface, self.model.clone());
                Some(Box::new(Remote { web, interface, model, dimensions: None }))
            }
            Err(problem) => {
                let endpoint = &self.endpoint;
                tracing::warn!(%problem, %endpoint, "tools are searched by their words only");
                None
            }
        }
    }
}

impl Embedder for Remote {
    fn batch(&self) -> usize {
        BATCH
    }

    fn embed(&mut self, texts: &[&str]) -> Result<Vec<Option<Vector>>, Unavailable> {
        let cut = |text: &&str| {
            let text = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default();
            // Some services refuse an empty text.
            if text.trim().is_empty() { "-".to_owned() } else { text.to_owned() }
        };
        let input: Vec<String> = texts.iter().map(cut).collect();
        let (path, body) = match self.interface {
            EmbeddingInterface::OpenAi => (
                "/embeddings",
                json!({ "model": self.model, "input": input, "encoding_format": "float" }),
            ),
            EmbeddingInterface::Ollama => {
                ("/api/embed", json!({ "model": self.model, "input": input }))
            }
        };
        let (status, answer) = self.web.send("POST", path, Some(&body))?;
        if !(200..300).contains(&status) {
            return Err(self.web.refused(status, &answer));
        }
        let vectors = match self.interface {
            EmbeddingInterface::OpenAi => of_openai(&answer, texts.len()),
            EmbeddingInterface::Ollama => of_ollama(&answer, texts.len()),
        };
        let vectors = vectors.and_then(|vectors| self.checked(&vectors));
        vectors.ok_or_else(|| self.web.fault("its answer has not one vector for each text"))
    }
}

// === impl Remote ===

impl Remote {
    /// The vectors, if all have the dimensions of the first.
    fn checked(&mut self, vectors: &[Vec<f32>]) -> Option<Vec<Option<Vector>>> {
        for vector in vectors {
            let dimensions = *self.dimensions.get_or_insert(vector.len());
            if vector.len() != dimensions || !(1..=MAX_DIMENSIONS).contains(&dimensions) {
                return None;
            }
        }
        Some(vectors.iter().map(|vector| Vector::normalized(vector)).collect())
    }
}

/// The vectors of `{"data": [{"index": 0, "embedding": […]}]}`, in the order of the texts.
fn of_openai(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
    let data = answer.get("data")?.as_array()?;
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (at, entry) in data.iter().enumerate() {
        let index = entry.get("index").and_then(Value::as_u64).map(usize::try_from);
        let index = index.map_or(Some(at), Result::ok)?;
        *vectors.get_mut(index)? = Some(floats(entry.get("embedding")?)?);
    }
    vectors.into_iter().collect()
}

/// The vectors of `{"embeddings": [[…]]}`.
fn of_ollama(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
    let vectors = answer.get("embeddings")?.as_array()?;
    let vectors: Vec<Vec<f32>> = vectors.iter().map(floats).collect::<Option<_>>()?;
    (vectors.len() == count).then_some(vectors)
}

fn floats(value: &Value) -> Option<Vec<f32>> {
    #[expect(clippy::cast_possible_truncation, reason = "vectors are rounded to 8 bits")]
    let float = |value: &Value| Some(value.as_f64()? as f32);
    value.as_array()?.iter().map(float).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_in_the_order_of_the_texts() {
        let answer = json!({"data": [
            {"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1.5, -2]}]});
        assert_eq!(of_openai(&answer, 2).unwrap(), [[1.5, -2.0], [0.0, 1.0]]);
        let answer = json!({"embeddings": [[1], [2]]});
        assert_eq!(of_ollama(&answer, 2).unwrap(), [[1.0], [2.0]]);
    }

    #[test]
    fn answers_that_do_not_fit_are_refused() {
        for answer in [
            json!({}),
            json!({"data": []}),
            json!({"data": [{"index": 0, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": 7, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": ["1"]}, {"index": 1, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": [1]}]}),
        ] {
            assert_eq!(of_openai(&answer, 2), None, "{answer}");
        }
        for answer in [json!([]), json!({"embeddings": [[1]]}), json!({"embeddings": [[1], null]})]
        {
            assert_eq!(of_ollama(&answer, 2), None, "{answer}");
        }
    }
}

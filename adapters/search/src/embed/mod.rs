//! Embeddings, computed in this process: `wordpiece` splits texts, `model` runs the model, `worker`
//! does so on a thread of its own, `file` keeps vectors on disk.

pub(crate) mod file;
#[cfg(feature = "model")]
mod model;
#[cfg(feature = "model")]
mod wordpiece;
pub(crate) mod worker;

/// Number of dimensions of a vector.
pub(crate) const DIMENSIONS: usize = 384;

/// Identifies the model and the text that is embedded. Vectors of another recipe are not used.
pub(crate) const RECIPE: &str = "all-MiniLM-L6-v2 int8, text 1";

/// The word pieces of the model.
#[cfg(feature = "model")]
pub(crate) const VOCABULARY: &str = include_str!("../../model/vocab.txt");

/// BLAKE3 of the texts of a tool.
pub(crate) type Digest = [u8; 32];

/// Loads the model; `None` if it cannot be used, which is logged.
#[cfg(feature = "model")]
pub(crate) fn load() -> Option<worker::Embed> {
    let model = match model::Embedder::load() {
        Ok(model) => model,
        Err(error) => {
            tracing::warn!(%error, "tools are searched by their words only");
            return None;
        }
    };
    Some(Box::new(move |text| {
        let embedded = model.embed(text);
        embedded.inspect_err(|error| tracing::warn!(%error, "a text is not embedded")).ok()
    }))
}

//! Embeddings: `worker` makes them on a thread of its own, with the model in the binary (`wordpiece`
//! splits texts, `model` runs it) or with a service (`service`); `file` keeps vectors on disk,
//! `shared` in a Qdrant server that several gateways use; `web` sends their requests.

pub(crate) mod file;
#[cfg(feature = "model")]
mod model;
pub(crate) mod service;
pub(crate) mod shared;
mod web;
#[cfg(feature = "model")]
mod wordpiece;
pub(crate) mod worker;

/// Number of dimensions of a vector of the model in the binary.
#[cfg(any(feature = "model", test))]
pub(crate) const DIMENSIONS: usize = 384;

/// The text of a tool that is embedded. Vectors of another one are not used.
pub(crate) const TEXT: &str = "text 1";

/// The model in the binary.
pub(crate) const BUILT_IN: &str = "all-MiniLM-L6-v2 int8";

/// The word pieces of the model.
#[cfg(feature = "model")]
pub(crate) const VOCABULARY: &str = include_str!("../../model/vocab.txt");

/// BLAKE3 of the texts of a tool.
pub(crate) type Digest = [u8; 32];

/// Loads the model; `None` if it cannot be used, which is logged.
#[cfg(feature = "model")]
pub(crate) fn load() -> Option<Box<dyn worker::Embedder>> {
    match model::Embedder::load() {
        Ok(model) => Some(Box::new(model)),
        Err(error) => {
            tracing::warn!(%error, "tools are searched by their words only");
            None
        }
    }
}

#[cfg(feature = "model")]
impl worker::Embedder for model::Embedder {
    fn batch(&self) -> usize {
        1
    }

    fn embed(
        &mut self,
        texts: &[&str],
    ) -> Result<Vec<Option<crate::vectors::Vector>>, worker::Unavailable> {
        let embed = |text: &&str| {
            let embedded = Self::embed(self, text);
            embedded.inspect_err(|error| tracing::warn!(%error, "a text is not embedded")).ok()
        };
        Ok(texts.iter().map(embed).collect())
    }
}

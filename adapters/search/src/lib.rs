//! Tool search: finds the tools that fit a request, offline and in this process.
//!
//! Read in this order: [`SearchIndex`] (`index`) implements the port `ToolIndex`; `document` has the
//! fields of a tool; `lexical` scores words; `embed` makes vectors with the model in the binary or
//! with a service, and keeps them in a file and in a Qdrant server; `vectors` compares them.

mod document;
mod embed;
mod index;
mod lexical;
mod vectors;

pub use embed::service::{EmbeddingInterface, EmbeddingService};
pub use embed::shared::QdrantServer;
pub use index::{Embeddings, SearchIndex};

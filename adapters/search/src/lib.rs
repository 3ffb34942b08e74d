//! Tool search: finds the tools that fit a request, offline and in this process.
//!
//! Read in this order: [`SearchIndex`] (`index`) implements the port `ToolIndex`; `document` has the
//! fields of a tool; `lexical` scores words; `embed` makes vectors with the model in the binary;
//! `vectors` compares them.

mod document;
mod embed;
mod index;
mod lexical;
mod vectors;

pub use index::SearchIndex;

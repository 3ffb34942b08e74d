//! The embedding model, all-MiniLM-L6-v2 in 8-bit integers, on the runtime rten.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rten::{Model, ModelOptions, NodeId};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::wordpiece::WordPieces;
use super::{DIMENSIONS, VOCABULARY};
use crate::vectors::Vector;

/// Part of the binary's file: no page of it is in memory before the model is loaded.
static WEIGHTS: &[u8] = include_bytes!("../../model/minilm-int8.onnx");

/// The loaded model.
pub(crate) struct Embedder {
    model: Model,
    inputs: [NodeId; 2],
    output: NodeId,
    pieces: WordPieces,
}

/// The model that is in the binary cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("the embedding model cannot be loaded: {0}")]
    Load(String),
    #[error("the embedding model failed: {0}")]
    Run(String),
}

// === impl Embedder ===

impl Embedder {
    /// Loads the model, which takes some milliseconds and 25 MB.
    pub(crate) fn load() -> Result<Self, ModelError> {
        let model = ModelOptions::with_all_ops()
            .load_static_slice(WEIGHTS)
            .map_err(|error| ModelError::Load(error.to_string()))?;
        let (&[ids, mask, ..], &[output, ..]) = (model.input_ids(), model.output_ids()) else {
            return Err(ModelError::Load("it has other inputs and outputs".to_owned()));
        };
        Ok(Self { inputs: [ids, mask], output, model, pieces: WordPieces::new(VOCABULARY) })
    }

    /// Embeds a text, of which the model reads the beginning.
    pub(crate) fn embed(&self, text: &str) -> Result<Vector, ModelError> {
        // The runtime is not ours: a panic in it must not end the thread that others wait for.
        catch_unwind(AssertUnwindSafe(|| self.run(text)))
            .unwrap_or_else(|_| Err(ModelError::Run("it panicked".to_owned())))
    }

    fn run(&self, text: &str) -> Result<Vector, ModelError> {
        let failed = |error: String| ModelError::Run(error);
        let ids = self.pieces.ids(text);
        let count = ids.len();
        let mask = NdTensor::from_data([1, count], vec![1_i32; count]);
        let ids = NdTensor::from_data([1, count], ids);
        let [ids_at, mask_at] = self.inputs;
        let inputs = vec![(ids_at, ids.view().into()), (mask_at, mask.view().into())];
        let outputs = self.model.run(inputs, &[self.output], None);
        let mut outputs = outputs.map_err(|error| failed(error.to_string()))?;
        let output = outputs.pop().ok_or_else(|| failed("it has no output".to_owned()))?;
        let vector: NdTensor<f32, 2> =
            output.try_into().map_err(|_| failed("its output is no matrix".to_owned()))?;
        let vector = vector.into_data();
        if vector.len() != DIMENSIONS {
            return Err(failed(format!("its vectors have {} dimensions", vector.len())));
        }
        Ok(Vector::quantize(&vector))
    }
}

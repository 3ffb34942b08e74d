//! How a file is written: each dialect is one module that reads text into the canonical tree.
//!
//! A dialect gives every value its native key and keeps its place in the file. What the values
//! mean is decided afterwards, once for all dialects.

pub(crate) mod native;

use crate::problem::Problem;
use crate::source::SourceFile;
use crate::tree::Table;

/// Reads a file into the canonical tree; the problem is what keeps the whole file out.
pub(crate) fn read(file: &SourceFile) -> Result<Table, Box<Problem>> {
    native::read(file)
}

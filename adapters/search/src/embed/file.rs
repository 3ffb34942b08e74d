//! The file that keeps vectors, by the digest of the tool.
//!
//! It is written as a whole and renamed into place. A damaged file, or one of another model, counts
//! as empty: its vectors are computed again.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use super::Digest;
use crate::vectors::Vector;

/// Maximum number of vectors; with more, those of tools that are not in use go first.
const MAX_VECTORS: usize = 200_000;

/// Maximum size of the file in bytes; models with many dimensions keep fewer vectors.
const MAX_BYTES: usize = 512 << 20;

/// Maximum number of dimensions.
pub(crate) const MAX_DIMENSIONS: usize = 8_192;

const DIGEST_BYTES: usize = 32;

/// A file of vectors.
#[derive(Clone, Debug)]
pub(crate) struct VectorFile {
    path: PathBuf,
    /// Names the model and the text that is embedded. Vectors of another recipe are not used.
    recipe: String,
}

/// The records of a file, and the dimensions of their vectors.
struct Records {
    dimensions: usize,
    bytes: Vec<u8>,
}

// === impl VectorFile ===

impl VectorFile {
    pub(crate) fn new(path: PathBuf, recipe: &str) -> Self {
        Self { path, recipe: recipe.to_owned() }
    }

    /// Reads the vectors of these tools; empty if the file is missing or damaged.
    pub(crate) fn read(&self, wanted: &FxHashSet<Digest>) -> FxHashMap<Digest, Vector> {
        let all = self.records();
        let records = all.iter().flat_map(Records::iter);
        records.filter(|(digest, _)| wanted.contains(digest)).collect()
    }

    /// Adds vectors to those of the file. All have the dimensions of the first.
    pub(crate) fn add(&self, new: &[(Digest, Vector)]) -> io::Result<()> {
        let Some((_, first)) = new.first() else { return Ok(()) };
        let dimensions = first.values.len();
        let before = self.records().filter(|records| records.dimensions == dimensions);
        let added: FxHashSet<&Digest> = new.iter().map(|(digest, _)| digest).collect();
        let record = DIGEST_BYTES + 4 + dimensions;
        let most = MAX_VECTORS.min(MAX_BYTES / record);
        let kept = most.saturating_sub(new.len());
        let old = before.iter().flat_map(Records::iter);
        let old: Vec<_> = old.filter(|(digest, _)| !added.contains(digest)).collect();
        let old = old.get(old.len().saturating_sub(kept)..).unwrap_or_default();
        let mut bytes = Vec::with_capacity((old.len() + new.len() + 1) * record);
        bytes.extend_from_slice(&u32::try_from(dimensions).unwrap_or_default().to_le_bytes());
        let new = new.iter().filter(|(_, vector)| vector.values.len() == dimensions);
        for (digest, vector) in old.iter().chain(new).take(most) {
            bytes.extend_from_slice(digest);
            bytes.extend_from_slice(&vector.scale.to_le_bytes());
            bytes.extend(vector.values.iter().map(|value| value.cast_unsigned()));
        }
        self.write(&bytes)
    }

    fn write(&self, records: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&self.seal(records))?;
        file.write_all(records)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    /// The records, if the file is whole.
    fn records(&self) -> Option<Records> {
        let limit = (MAX_BYTES + 2 * DIGEST_BYTES) as u64;
        let mut bytes = Vec::new();
        File::open(&self.path).ok()?.take(limit + 1).read_to_end(&mut bytes).ok()?;
        let mut sealed = bytes.split_off_checked(DIGEST_BYTES)?;
        if bytes != self.seal(&sealed) {
            return None;
        }
        let records = sealed.split_off_checked(4)?;
        let dimensions = u32::from_le_bytes(sealed.try_into().ok()?) as usize;
        let fits = dimensions <= MAX_DIMENSIONS
            && records.len().is_multiple_of(DIGEST_BYTES + 4 + dimensions);
        fits.then_some(Records { dimensions, bytes: records })
    }

    /// The digest of a file's records and of the recipe that they were made by.
    fn seal(&self, records: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.recipe.as_bytes());
        hasher.update(&[0]);
        hasher.update(records);
        *hasher.finalize().as_bytes()
    }
}

trait SplitOffChecked: Sized {
    fn split_off_checked(&mut self, at: usize) -> Option<Self>;
}

impl SplitOffChecked for Vec<u8> {
    fn split_off_checked(&mut self, at: usize) -> Option<Self> {
        (self.len() >= at).then(|| self.split_off(at))
    }
}

// === impl Records ===

impl Records {
    fn iter(&self) -> impl Iterator<Item = (Digest, Vector)> {
        let record = DIGEST_BYTES + 4 + self.dimensions;
        self.bytes.chunks_exact(record).filter_map(|record| {
            let (digest, rest) = record.split_first_chunk::<DIGEST_BYTES>()?;
            let (scale, values) = rest.split_first_chunk::<4>()?;
            let values = values.iter().map(|value| value.cast_signed()).collect();
            let scale = f32::from_le_bytes(*scale);
            (scale > 0.0 && scale <= 1.0).then_some((*digest, Vector { values, scale }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(seed: f32) -> Vector {
        let mut exact = [0.01; 384];
        exact[0] = seed;
        Vector::quantize(&exact)
    }

    fn wanted(digests: &[u8]) -> FxHashSet<Digest> {
        digests.iter().map(|byte| [*byte; 32]).collect()
    }

    #[test]
    fn vectors_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = VectorFile::new(folder.path().join("new/vectors"), "model");
        assert!(file.read(&wanted(&[1])).is_empty(), "there is no file");
        file.add(&[([1; 32], vector(0.5)), ([2; 32], vector(0.6))]).unwrap();
        file.add(&[([2; 32], vector(0.7)), ([3; 32], vector(0.8))]).unwrap();
        let read = file.read(&wanted(&[1, 2, 9]));
        assert_eq!(read.len(), 2);
        assert_eq!((&read[&[1; 32]], &read[&[2; 32]]), (&vector(0.5), &vector(0.7)));
    }

    #[test]
    fn vectors_of_another_model_or_with_other_dimensions_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        let file = VectorFile::new(path.clone(), "model");
        file.add(&[([1; 32], vector(0.5))]).unwrap();
        assert!(VectorFile::new(path, "other").read(&wanted(&[1])).is_empty());
        let short = Vector::quantize(&[1.0, 0.0]);
        file.add(&[([2; 32], short.clone())]).unwrap();
        assert_eq!(file.read(&wanted(&[1, 2])), [([2; 32], short)].into_iter().collect());
    }

    #[test]
    fn a_damaged_file_counts_as_empty_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        let file = VectorFile::new(path.clone(), "model");
        let entry = [([1; 32], vector(0.5))];
        file.add(&entry).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[100] ^= 1;
        let longer = [whole.clone(), vec![0]].concat();
        for damaged in [&whole[..whole.len() - 1], &flipped, &longer, b"", b"x", &[0; 900]] {
            std::fs::write(&path, damaged).unwrap();
            assert!(file.read(&wanted(&[1])).is_empty());
            file.add(&entry).unwrap();
            assert_eq!(file.read(&wanted(&[1])).len(), 1);
        }
    }
}

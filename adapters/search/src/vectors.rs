//! Vectors of 8-bit integers, compared exactly.
//!
//! The scan over all vectors is a plain loop that the compiler turns into SIMD instructions. It needs
//! no approximate index: 10,000 tools take less than a millisecond, a tenth of the model's own time.

use crate::embed::DIMENSIONS;

/// A unit vector, as 8-bit integers with a common scale.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vector {
    pub(crate) values: Box<[i8; DIMENSIONS]>,
    pub(crate) scale: f32,
}

/// The vectors of slots, one after another in memory.
#[derive(Default)]
pub(crate) struct Vectors {
    values: Vec<[i8; DIMENSIONS]>,
    /// Zero for a slot without a vector.
    scales: Vec<f32>,
}

// === impl Vector ===

impl Vector {
    /// Rounds a vector of unit length.
    pub(crate) fn quantize(exact: &[f32]) -> Self {
        let largest = exact.iter().fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
        let scale = largest / 127.0;
        let mut values = Box::new([0; DIMENSIONS]);
        for (value, exact) in values.iter_mut().zip(exact) {
            #[expect(clippy::cast_possible_truncation, reason = "within ±127 by the scale")]
            let rounded = (exact / scale).round() as i8;
            *value = rounded;
        }
        Self { values, scale }
    }
}

// === impl Vectors ===

impl Vectors {
    /// Sets or clears the vector of a slot.
    pub(crate) fn set(&mut self, slot: u32, vector: Option<&Vector>) {
        let slot = slot as usize;
        if slot >= self.scales.len() {
            self.values.resize(slot + 1, [0; DIMENSIONS]);
            self.scales.resize(slot + 1, 0.0);
        }
        let (Some(values), Some(scale)) = (self.values.get_mut(slot), self.scales.get_mut(slot))
        else {
            return;
        };
        match vector {
            Some(vector) => (*values, *scale) = (*vector.values, vector.scale),
            None => *scale = 0.0,
        }
    }

    /// The cosine of a slot's vector and a query; `None` if the slot has none.
    pub(crate) fn cosine(&self, slot: u32, query: &Vector) -> Option<f32> {
        let scale = self.scales.get(slot as usize).filter(|scale| **scale > 0.0)?;
        let values = self.values.get(slot as usize)?;
        Some(product(values, &query.values) * scale * query.scale)
    }

    /// The vector of a slot, if it has one.
    pub(crate) fn get(&self, slot: u32) -> Option<Vector> {
        let scale = self.scales.get(slot as usize).copied().filter(|scale| *scale > 0.0)?;
        let values = Box::new(*self.values.get(slot as usize)?);
        Some(Vector { values, scale })
    }
}

/// The scalar product. Products of two fit into 16 bits, their sum into 32.
fn product(one: &[i8; DIMENSIONS], other: &[i8; DIMENSIONS]) -> f32 {
    let mut sum = 0_i32;
    for (a, b) in one.iter().zip(other) {
        sum += i32::from(i16::from(*a) * i16::from(*b));
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 384 × 127², exact in 24 bits")]
    let sum = sum as f32;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(one: &Vector, other: &Vector) -> f32 {
        let mut vectors = Vectors::default();
        vectors.set(0, Some(one));
        vectors.cosine(0, other).unwrap()
    }

    fn unit(seed: u8) -> Vec<f32> {
        let value = |i: u8| f32::from(i.wrapping_mul(seed).wrapping_add(seed)) - 127.0;
        let raw: Vec<f32> = (0..=u8::MAX).cycle().take(DIMENSIONS).map(value).collect();
        let length = raw.iter().map(|value| value * value).sum::<f32>().sqrt();
        raw.iter().map(|value| value / length).collect()
    }

    #[test]
    fn rounded_vectors_have_nearly_the_same_cosine() {
        for (one, other) in [(3, 3), (3, 5), (7, 101), (11, 13)] {
            let (one, other) = (unit(one), unit(other));
            let exact: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
            let rounded = cosine(&Vector::quantize(&one), &Vector::quantize(&other));
            assert!((exact - rounded).abs() < 0.01, "{exact} {rounded}");
        }
    }

    #[test]
    fn a_slot_without_a_vector_has_no_cosine() {
        let mut vectors = Vectors::default();
        let vector = Vector::quantize(&unit(3));
        vectors.set(2, Some(&vector));
        assert_eq!(vectors.cosine(0, &vector), None);
        assert_eq!(vectors.cosine(9, &vector), None);
        assert!(vectors.cosine(2, &vector).unwrap() > 0.99);
        vectors.set(2, None);
        assert_eq!(vectors.get(2), None);
    }

    #[test]
    fn a_vector_of_zeros_is_similar_to_nothing() {
        let zero = Vector::quantize(&[0.0; DIMENSIONS]);
        assert!(cosine(&zero, &Vector::quantize(&unit(3))).abs() < 0.01);
    }
}

//! Vectors of 8-bit integers, compared exactly.
//!
//! The scan over all vectors is a plain loop that the compiler turns into SIMD instructions. It needs
//! no approximate index: 10,000 tools take less than a millisecond, a tenth of the model's own time.

/// A unit vector, as 8-bit integers with a common scale.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vector {
    pub(crate) values: Box<[i8]>,
    pub(crate) scale: f32,
}

/// The vectors of slots, one after another in memory. All are of one model.
#[derive(Default)]
pub(crate) struct Vectors {
    /// Number of dimensions; zero before the first vector.
    dimensions: usize,
    values: Vec<i8>,
    /// Zero for a slot without a vector.
    scales: Vec<f32>,
}

// === impl Vector ===

impl Vector {
    /// Rounds a vector of unit length.
    pub(crate) fn quantize(exact: &[f32]) -> Self {
        let largest = exact.iter().fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
        let scale = largest / 127.0;
        #[expect(clippy::cast_possible_truncation, reason = "within ±127 by the scale")]
        let values = exact.iter().map(|exact| (exact / scale).round() as i8).collect();
        Self { values, scale }
    }

    /// Rounds a vector of any length; `None` if it has no direction.
    pub(crate) fn normalized(exact: &[f32]) -> Option<Self> {
        let length = exact.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_finite() || length <= f32::MIN_POSITIVE {
            return None;
        }
        let unit: Vec<f32> = exact.iter().map(|value| value / length).collect();
        Some(Self::quantize(&unit))
    }

    /// The vector with exact values.
    pub(crate) fn exact(&self) -> Vec<f32> {
        self.values.iter().map(|value| f32::from(*value) * self.scale).collect()
    }
}

// === impl Vectors ===

impl Vectors {
    /// Sets or clears the vector of a slot. A vector of other dimensions than the first is ignored.
    pub(crate) fn set(&mut self, slot: u32, vector: Option<&Vector>) {
        if let Some(vector) = vector.filter(|_| self.dimensions == 0) {
            self.dimensions = vector.values.len();
            self.values.resize(self.scales.len() * self.dimensions, 0);
        }
        let (slot, dimensions) = (slot as usize, self.dimensions);
        if slot >= self.scales.len() {
            self.values.resize((slot + 1) * dimensions, 0);
            self.scales.resize(slot + 1, 0.0);
        }
        let values = self.values.get_mut(slot * dimensions..(slot + 1) * dimensions);
        let (Some(values), Some(scale)) = (values, self.scales.get_mut(slot)) else { return };
        match vector.filter(|vector| vector.values.len() == dimensions) {
            Some(vector) => {
                values.copy_from_slice(&vector.values);
                *scale = vector.scale;
            }
            None => *scale = 0.0,
        }
    }

    /// The cosine of a slot's vector and a query; `None` if the slot has none.
    pub(crate) fn cosine(&self, slot: u32, query: &Vector) -> Option<f32> {
        let (values, scale) = self.of(slot)?;
        let same = values.len() == query.values.len();
        same.then(|| product(values, &query.values) * scale * query.scale)
    }

    /// The vector of a slot, if it has one.
    pub(crate) fn get(&self, slot: u32) -> Option<Vector> {
        let (values, scale) = self.of(slot)?;
        Some(Vector { values: values.into(), scale })
    }

    fn of(&self, slot: u32) -> Option<(&[i8], f32)> {
        let slot = slot as usize;
        let scale = self.scales.get(slot).copied().filter(|scale| *scale > 0.0)?;
        let values = self.values.get(slot * self.dimensions..(slot + 1) * self.dimensions)?;
        Some((values, scale))
    }
}

/// The scalar product. Products of two fit into 16 bits, their sum into 32.
fn product(one: &[i8], other: &[i8]) -> f32 {
    let mut sum = 0_i32;
    for (a, b) in one.iter().zip(other) {
        sum += i32::from(i16::from(*a) * i16::from(*b));
    }
    #[expect(clippy::cast_precision_loss, reason = "vectors are rounded more than this sum")]
    let sum = sum as f32;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::DIMENSIONS;

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
    fn vectors_of_another_model_are_not_compared() {
        let mut vectors = Vectors::default();
        vectors.set(0, None);
        vectors.set(1, Some(&Vector::normalized(&[3.0, 4.0]).unwrap()));
        vectors.set(2, Some(&Vector::quantize(&unit(3))));
        assert_eq!((vectors.get(0), vectors.get(2)), (None, None));
        assert_eq!(vectors.cosine(1, &Vector::quantize(&unit(3))), None);
        let exact = vectors.get(1).unwrap().exact();
        assert!((exact[0] - 0.6).abs() < 0.01 && (exact[1] - 0.8).abs() < 0.01, "{exact:?}");
    }

    #[test]
    fn a_vector_without_a_direction_is_none() {
        for odd in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY], &[1e38, 1e38]] {
            assert_eq!(Vector::normalized(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn a_vector_of_zeros_is_similar_to_nothing() {
        let zero = Vector::quantize(&[0.0; DIMENSIONS]);
        assert!(cosine(&zero, &Vector::quantize(&unit(3))).abs() < 0.01);
    }
}

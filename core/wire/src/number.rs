//! Scans numbers, which may continue in the next piece.

/// The part of a number that was scanned last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Minus,
    Zero,
    Whole,
    Dot,
    Fraction,
    E,
    Sign,
    Exponent,
}

/// The result of scanning a piece for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// The number may continue in the next piece.
    Open(Number),
    /// The number ends before the byte at this index.
    Ended(usize),
}

// === impl Number ===

impl Number {
    /// Returns the state after the first byte of a number; `None` if no number begins with it.
    pub(crate) fn of(first: u8) -> Option<Self> {
        match first {
            b'-' => Some(Self::Minus),
            b'0' => Some(Self::Zero),
            b'1'..=b'9' => Some(Self::Whole),
            _ => None,
        }
    }

    /// Continues over these bytes; `None` if they do not make a number.
    pub(crate) fn walk(mut self, bytes: &[u8]) -> Option<Walked> {
        for (at, byte) in bytes.iter().enumerate() {
            self = match (self, byte) {
                (Self::Minus, b'0') => Self::Zero,
                (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Self::Whole,
                (Self::Zero | Self::Whole, b'.') => Self::Dot,
                (Self::Dot | Self::Fraction, b'0'..=b'9') => Self::Fraction,
                (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Self::E,
                (Self::E, b'+' | b'-') => Self::Sign,
                (Self::E | Self::Sign | Self::Exponent, b'0'..=b'9') => Self::Exponent,
                (Self::Zero | Self::Whole | Self::Fraction | Self::Exponent, _) => {
                    return Some(Walked::Ended(at));
                }
                (Self::Minus | Self::Dot | Self::E | Self::Sign, _) => return None,
            };
        }
        Some(Walked::Open(self))
    }
}

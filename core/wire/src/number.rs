//! Numbers that may go on in the next piece.

/// How far a number has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Minus,
    Zero,
    Whole,
    Dot,
    Fraction,
    E,
    Sign,
    Exponent,
}

/// Where a walk over a number has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walked {
    /// To the end of the piece.
    Open(Number),
    /// To the first byte that does not belong to it.
    Ended(usize),
}

// === impl Number ===

impl Number {
    /// Goes on over these bytes; `None` when they make no number.
    pub(super) fn walk(mut self, bytes: &[u8]) -> Option<Walked> {
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

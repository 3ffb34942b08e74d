//! Numbers, which may go on in the next piece.

/// How far a number has come.
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

/// Where a walk over a number has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// To the end of the piece.
    Open(Number),
    /// To the first byte that does not belong to it.
    Ended(usize),
}

// === impl Number ===

impl Number {
    /// What a number that begins with this byte is so far; `None` when none does.
    pub(crate) fn of(first: u8) -> Option<Self> {
        match first {
            b'-' => Some(Self::Minus),
            b'0' => Some(Self::Zero),
            b'1'..=b'9' => Some(Self::Whole),
            _ => None,
        }
    }

    /// Goes on over these bytes; `None` when they make no number.
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

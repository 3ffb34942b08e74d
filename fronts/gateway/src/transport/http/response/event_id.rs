//! Event ids, with which a client resumes a stream after the last event it received.

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The answer to a posted message.
    Call,
    /// Messages that belong to no request.
    Standing,
}

/// The id of an event: its stream, and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) kind: Kind,
    pub(crate) track: u64,
    pub(crate) number: u64,
}

// === impl EventId ===

impl EventId {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (kind, rest) = match text.split_at_checked(1)? {
            ("c", rest) => (Kind::Call, rest),
            ("s", rest) => (Kind::Standing, rest),
            _ => return None,
        };
        let (track, number) = rest.split_once('-')?;
        Some(Self { kind, track: track.parse().ok()?, number: number.parse().ok()? })
    }

    pub(crate) fn to_text(self) -> String {
        let kind = match self.kind {
            Kind::Call => 'c',
            Kind::Standing => 's',
        };
        format!("{kind}{}-{}", self.track, self.number)
    }
}

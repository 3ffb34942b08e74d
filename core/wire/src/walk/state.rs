//! Where a walk is.

use crate::number::Number;

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Value,
    /// A value, or the end of a list.
    FirstItem,
    /// A name, or the end of an object.
    FirstName,
    Name,
    Colon,
    /// What follows a value.
    After,
    Text(Role),
    Escape(Role),
    Hex(Role, u8),
    Rune(Role),
    Number(Number),
    Word(&'static [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Name,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Object,
    List,
}

/// Whose value comes or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Version,
    Id,
    Result,
    /// What a reply with a result may only have as nothing.
    Nothing,
    Key(&'static str),
    Other,
}

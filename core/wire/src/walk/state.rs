//! The state of a walk.

use crate::number::Number;

/// The syntax that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Value,
    /// A value, or the end of a list.
    FirstItem,
    /// A name, or the end of an object.
    FirstName,
    Name,
    Colon,
    /// The syntax after a value.
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

/// The member whose value comes next or is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Version,
    Id,
    Result,
    /// A member that must be null in a reply with a result.
    Nothing,
    Key(&'static str),
    Other,
}

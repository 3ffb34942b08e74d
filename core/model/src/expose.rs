//! What a client of the gateway is offered: all tools, or tools that find the others.

/// The tools that a client is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Expose {
    /// All tools that it may use.
    #[default]
    All,
    /// Tools that find, describe and call the others, and the pinned tools.
    Search(CallTools),
    /// All tools, or as with `Search` if they cost a model more tokens than the budget.
    Auto(CallTools),
}

/// The tools that call a tool that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallTools {
    /// One for all tools.
    #[default]
    One,
    /// One for tools that only read and one for the others, for clients that approve by tool name.
    ByEffect,
}

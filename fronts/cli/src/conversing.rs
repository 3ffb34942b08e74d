//! Port with which `capstan chat` opens a conversation on the whole screen.

use capstan_app::AppError;
use capstan_hub::ports::BoxFuture;
use capstan_text::conversation::Conversing;

/// Draws conversations on the whole screen.
pub trait Converse: Send + Sync {
    /// Holds a conversation until the person ends it.
    fn converse<'a>(&'a self, conversing: Conversing<'a>)
    -> BoxFuture<'a, Result<Ended, AppError>>;
}

/// The way in which a conversation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The person has ended it.
    ByPerson,
    /// A signal has ended it.
    BySignal,
}

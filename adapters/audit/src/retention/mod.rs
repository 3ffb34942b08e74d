//! Bounds the log: [`limits`] on size and age, [`age`] as evidence that time has passed, [`rotate`]
//! for full logs, [`removal`] of old ones.

pub(crate) mod limits;
pub(crate) mod age;
pub(crate) mod rotate;
pub(crate) mod removal;

//! Reads, imports and changes the files of other programs.
//!
//! [`AllDialects`] reads them into trees of native keys: [`detect()`] finds the dialect, and a
//! module in `dialects` translates it with the help of `translate` and [`packages`]. [`servers`]
//! imports servers into a native file, [`clients`] adds Capstan to a client's file, [`registry`]
//! reads the offers of registries, and [`logins`] the logins of another program.
//!
//! **Invariant:** this crate reads no file, no environment variable and no clock; everything is
//! passed in.

mod translate;
pub mod packages;
mod dialects;
pub mod clients;
pub mod servers;
pub mod registry;
pub mod logins;

pub use clients::Client;
pub use dialects::{AllDialects, detect, detect_at};

//! Hides secrets in what is shown, logged or stored.
//!
//! `known` hides values that are known to be secret, `text` hides what looks like a secret, and `json`
//! hides the values of members with names such as `password`.

mod json;
mod known;
mod text;

pub use json::mask_json;
pub use known::{Masker, visible};
pub use text::{mask_argument, mask_prose, mask_tokens, mask_url, secrets_in_url};

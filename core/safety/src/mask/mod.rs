//! Masks secrets in shown, logged or stored data.
//!
//! `known` masks values that are known to be secret. `text` masks what looks like a secret,
//! `arguments` does so in command lines, and `json` masks the values of members with names such as
//! `password`. `ordinary` recognises values that are shown because they are evidently no secrets.

mod arguments;
mod json;
mod known;
mod ordinary;
mod text;

pub use arguments::{mask_arguments, mask_text};
pub use json::mask_json;
pub use known::Masker;
pub use ordinary::{is_ordinary, names_variable};
pub use text::{mask_argument, mask_prose, mask_tokens, mask_url, secrets_in_url};

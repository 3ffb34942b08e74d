//! Authenticates callers of the gateway.
//!
//! [`Chain`] asks its providers in order; the first that accepts a request decides who the caller
//! is. `bearer` has static tokens, `issued` those that the operator created, `forwarded` trusts
//! headers of a proxy, `jwt` verifies tokens of an OpenID Connect issuer, and `own_server` those of
//! the gateway's authorization server. `verified` remembers verified tokens, `attempts` limits
//! guesses, and [`resource`] tells clients where to get a token.

mod attempts;
mod bearer;
mod chain;
mod forwarded;
mod issued;
mod jwt;
mod keyed_hash;
mod own_server;
mod provider;
pub mod resource;
mod verified;

pub use attempts::Attempts;
pub use bearer::{Bearer, StaticToken};
pub use chain::{Authenticating, Chain, Observer, Refused};
pub use forwarded::{Forwarded, ForwardedSettings};
pub use issued::{Issued, NewToken, new_token};
pub use jwt::{AccessTokenType, Algorithm, Jwt, JwtSettings};
pub use own_server::{OwnServer, TokenVerifier, Verification};
pub use provider::{Identity, Outcome, Provider, Refusal, Request};

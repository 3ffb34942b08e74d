//! The one HTTP client: every HTTP request to a server is sent through [`Client`].
//!
//! [`WebAddress`] is the destination of a request; `address_guard` checks the IP addresses before a
//! connection is made. [`Credentials`] authenticate requests;
//! [`FetchedHeaders`] are credentials that come from elsewhere.
//! `transport` sends: over `connection_pool` to this machine, through `reqwest` to all others, and
//! `plain` reads whole answers. `download` fetches public documents. [`SandboxProxy`] connects servers in
//! a sandbox to the hosts that they may reach.

mod address;
mod address_guard;
mod client;
mod credentials;
mod transport;
mod connection_pool;
mod payload;
mod unpack;
mod plain;
mod download;
mod fetched_headers;
mod sandbox_proxy;

pub use address::WebAddress;
pub use client::{Client, HttpError};
pub use credentials::{Applied, Challenge, Challenged, Credentials};
pub use download::download;
pub use fetched_headers::{FetchedHeaders, HeaderSource, Headers};
pub use payload::Payload;
pub use plain::{PlainRequest, PlainResponse};
pub use reqwest::{Method, StatusCode, Url, header};
pub use sandbox_proxy::{AllowedHost, Refused, SandboxProxy};
pub use transport::{HttpBody, HttpRequest, HttpResponse, Target};

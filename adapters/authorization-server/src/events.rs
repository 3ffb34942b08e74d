//! Events that an operator may want to know about.

use std::net::IpAddr;

/// Something that happened at the authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A client registered itself.
    Registered {
        /// Its id.
        client: &'a str,
        /// The address that it came from.
        peer: IpAddr,
    },
    /// A user agreed.
    Granted {
        /// The user.
        subject: &'a str,
        /// The client.
        client: &'a str,
    },
    /// A user said no.
    Denied {
        /// The client.
        client: &'a str,
        /// The address that the user came from.
        peer: IpAddr,
    },
    /// A sign-in failed, or there were too many.
    SignInRefused {
        /// The address that it came from.
        peer: IpAddr,
    },
    /// A code or refresh token was used again; its grant is revoked.
    Reused {
        /// The user.
        subject: &'a str,
        /// The client.
        client: &'a str,
    },
    /// A client gave up its grant.
    Revoked {
        /// The user.
        subject: &'a str,
        /// The client.
        client: &'a str,
    },
}

/// The port that events are reported to.
pub trait EventLog: Send + Sync {
    /// Records one event.
    fn record(&self, event: Event<'_>);
}

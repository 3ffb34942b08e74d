//! The lanes of a server: the connections that callers of different eras use.

use std::fmt::Write as _;
use std::sync::Arc;

use capstan_model::{Binding, Caller};
use sha2::{Digest, Sha256};

use super::Connection;

/// The key of a connection to a server. It is a wish: a server that speaks one era only, or that
/// may run only once, serves all lanes over one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lane {
    /// The era that the caller speaks; `None` for a caller that speaks none, such as a person.
    pub era: Option<Era>,
    /// The account at servers that are used with the accounts of callers.
    pub principal: Principal,
}

/// Tells whose account is used at servers that callers use with accounts of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Principal {
    /// That of the operator.
    #[default]
    Operator,
    /// That of a caller.
    Caller(PrincipalId),
    /// None: the caller came over the network and has not said who it is.
    Nobody,
}

/// Identifies a caller by a digest of its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrincipalId([u8; 16]);

/// One of the two eras of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25, with a handshake.
    Legacy,
    /// From 2026-07-28 on, without one.
    Modern,
}

/// The open connections that the requests of one lane use.
#[derive(Clone)]
pub struct Connected {
    /// The connection whose lists are the server's: every decision is based on them. Lanes without
    /// a connection of their own use it for everything else, too.
    pub home: Arc<dyn Connection>,
    /// The connection that requests of the lane use, if it is another. It speaks another era.
    pub own: Option<Arc<dyn Connection>>,
}

// === impl Lane ===

impl Lane {
    /// The lane of a caller that speaks no era.
    pub const ANY: Self = Self { era: None, principal: Principal::Operator };

    /// The operator's lane of this era.
    pub const fn of(era: Era) -> Self {
        Self { era: Some(era), ..Self::ANY }
    }

    /// The lane of a caller, in the same era.
    #[must_use]
    pub fn on_behalf_of(self, caller: &Caller) -> Self {
        Self { principal: Principal::of(caller), ..self }
    }
}

// === impl Principal ===

impl Principal {
    /// The principal of a caller. Roles do not count: the account stays the same person's.
    pub fn of(caller: &Caller) -> Self {
        match caller.binding {
            Binding::Free => Self::Operator,
            Binding::Access if caller.is_authenticated() => {
                Self::Caller(PrincipalId::of(&caller.subject))
            }
            Binding::Access => Self::Nobody,
        }
    }
}

// === impl PrincipalId ===

impl PrincipalId {
    fn of(subject: &str) -> Self {
        let mut id = [0; 16];
        for (to, from) in id.iter_mut().zip(Sha256::digest(subject)) {
            *to = from;
        }
        Self(id)
    }

    /// The id in hexadecimal, for names of stored logins.
    pub fn to_hex(self) -> String {
        self.0.iter().fold(String::with_capacity(32), |mut hex, byte| {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

// === impl Connected ===

impl Connected {
    /// The connection of a server that has only one.
    pub fn one(home: Arc<dyn Connection>) -> Self {
        Self { home, own: None }
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::Front;

    use super::*;

    #[test]
    fn only_a_caller_who_said_who_it_is_has_an_account_of_its_own() {
        let remote = |subject: &str, role: &str| {
            Principal::of(&Caller::remote(subject, vec![role.to_owned()]))
        };
        let ann = remote("ann", "dev");
        assert!(matches!(ann, Principal::Caller(_)));
        assert_eq!(ann, remote("ann", "ops"));
        assert_ne!(ann, remote("Ann", "dev"));
        assert_eq!(Principal::of(&Caller::stranger(None)), Principal::Nobody);
        assert_eq!(remote("anonymous", "dev"), Principal::Nobody);
        for own in [Caller::anonymous(), Caller::operator(Front::Cli)] {
            assert_eq!(Principal::of(&own), Principal::Operator);
        }
    }
}

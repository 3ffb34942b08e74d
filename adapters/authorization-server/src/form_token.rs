//! The token of a consent form, which only the browser that got the page can send.
//!
//! The form keeps no state at the server: the token is a signature over the whole request, the
//! user, the cookie of the browser, and the time until which it is valid.

use std::time::Duration;

use capstan_model::Secret;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::random;

/// Time in which a user must decide.
pub(crate) const VALID_FOR: Duration = Duration::from_mins(10);

/// The values that a form is bound to.
pub(crate) struct FormBinding<'a> {
    /// The value of the browser's cookie.
    pub(crate) cookie: &'a str,
    /// The query of the request.
    pub(crate) query: &'a str,
    /// The user, if a proxy names one.
    pub(crate) subject: &'a str,
}

// === impl FormBinding ===

impl FormBinding<'_> {
    /// Makes the token of a form.
    pub(crate) fn token(&self, key: &Secret<Vec<u8>>, now: Timestamp) -> String {
        let until = now.checked_add(VALID_FOR).unwrap_or(now).as_second();
        format!("{until}.{}", random::encode(&self.signature(key, until).finalize().into_bytes()))
    }

    /// True if the token belongs to this form and is still valid.
    pub(crate) fn accepts(&self, token: &str, key: &Secret<Vec<u8>>, now: Timestamp) -> bool {
        let Some((until, signature)) = token.split_once('.') else { return false };
        let (Ok(until), Some(signature)) = (until.parse::<i64>(), random::decode(signature)) else {
            return false;
        };
        // Compares in constant time.
        until > now.as_second() && self.signature(key, until).verify_slice(&signature).is_ok()
    }

    fn signature(&self, key: &Secret<Vec<u8>>, until: i64) -> Hmac<Sha256> {
        // HMAC takes keys of any length, so this never fails.
        let mut mac =
            <Hmac<Sha256> as KeyInit>::new_from_slice(key.reveal()).unwrap_or_else(|_| {
                <Hmac<Sha256> as KeyInit>::new(&hmac::digest::array::Array::default())
            });
        let until = until.to_string();
        for part in ["consent", self.cookie, self.query, self.subject, &until] {
            // The length keeps the parts apart.
            mac.update(part.len().to_string().as_bytes());
            mac.update(b":");
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// The name of the cookie for a client. The prefix makes browsers refuse it from other hosts.
pub(crate) fn cookie_name(client: &str) -> String {
    let digest = Sha256::digest(client.as_bytes());
    format!("__Host-capstan-{}", digest.get(..9).map(random::encode).unwrap_or_default())
}

/// The value of a cookie in a `Cookie` header; `None` if it is missing or repeated.
pub(crate) fn cookie<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut values = header.split(';').filter_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    });
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_token_is_good_for_its_own_form_and_time_only() {
        let key = Secret::new(vec![7; 32]);
        let now = Timestamp::from_second(1_000_000).unwrap();
        let form = FormBinding { cookie: "c", query: "q=1", subject: "ann" };
        let token = form.token(&key, now);
        assert!(form.accepts(&token, &key, now + Duration::from_secs(599)));
        assert!(!form.accepts(&token, &key, now + VALID_FOR));
        assert!(!form.accepts(&token, &Secret::new(vec![8; 32]), now));
        for other in [
            FormBinding { cookie: "d", query: "q=1", subject: "ann" },
            FormBinding { cookie: "c", query: "q=2", subject: "ann" },
            FormBinding { cookie: "c", query: "q=1", subject: "bob" },
            FormBinding { cookie: "cq", query: "=1", subject: "ann" },
        ] {
            assert!(!other.accepts(&token, &key, now));
        }
        for broken in ["", ".", "1000600", "x.y", &token.replace('.', ""), &format!("9{token}")] {
            assert!(!form.accepts(broken, &key, now), "{broken}");
        }
    }

    #[test]
    fn a_cookie_belongs_to_one_client_and_occurs_once() {
        let (a, b) = (cookie_name("a"), cookie_name("b"));
        assert_ne!(a, b);
        assert!(a.starts_with("__Host-"));
        assert_eq!(cookie(&format!("x=1; {a}=v"), &a), Some("v"));
        assert_eq!(cookie(&format!("{a}=v"), &b), None);
        assert_eq!(cookie(&format!("{a}=v; {a}=w"), &a), None);
    }
}

//! Signed state that a client carries between two parts of a call.
//!
//! The state is readable and signed. It is bound to the caller and to the call, and it expires.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_wire::{Json, compose, object};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Maximum length of a state, in bytes.
const MAX_STATE: usize = 256 * 1024;

/// The largest params that are kept for a digest, in bytes; larger ones are digested at once.
const MAX_KEPT: usize = 16 * 1024;

/// Length of a tag, in bytes.
const TAG: usize = 12;

/// Length of a signature, in bytes.
const SIGNATURE: usize = 32;

/// Signs and verifies states. The key lives as long as the process.
pub(crate) struct Sealer {
    key: [u8; 32],
}

/// The content of a state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SealedState {
    /// The subject of the caller.
    pub(crate) caller: String,
    /// A digest of the call.
    pub(crate) call: String,
    /// The time when it expires.
    pub(crate) expires: Duration,
    pub(crate) state: State,
}

/// How the call continues.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// The call is parked in this gateway.
    Parked(u64),
    /// The server expects another part, with its own state.
    Elsewhere {
        /// The state of the server, unchanged.
        state: Option<Json>,
        /// The number of the call among those that can be continued.
        number: u64,
    },
}

/// A digest of a call, computed when it is first needed: few calls ask their client anything.
#[derive(Clone)]
pub(crate) struct CallDigest(Arc<DigestedCall>);

struct DigestedCall {
    /// The server of the endpoint; empty for all servers.
    place: String,
    method: &'static str,
    params: Json,
    text: OnceLock<String>,
}

/// The system provides no randomness for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no random numbers, which protect the state that clients carry")]
pub struct NoRandomness;

/// An invalid or expired state. The client does not learn which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requestState is not valid for this call, or has expired")]
pub(crate) struct BadState;

// === impl Sealer ===

impl Sealer {
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        Self::filled(|key| getrandom::fill(key).map_err(|_| NoRandomness))
    }

    /// Creates a sealer with a key from `fill`. A key that can be guessed would be worse than none.
    fn filled(
        fill: impl FnOnce(&mut [u8]) -> Result<(), NoRandomness>,
    ) -> Result<Self, NoRandomness> {
        let mut key = [0; 32];
        fill(&mut key)?;
        Ok(Self { key })
    }

    pub(crate) fn seal(&self, sealed: &SealedState) -> Json {
        let millis = u64::try_from(sealed.expires.as_millis()).unwrap_or(u64::MAX);
        let (caller, call) = (compose::string(&sealed.caller), compose::string(&sealed.call));
        let expires = compose::number(millis);
        let mut members = vec![("s", &caller), ("c", &call), ("x", &expires)];
        let (parked, open);
        match &sealed.state {
            State::Parked(id) => {
                parked = compose::number(*id);
                members.push(("p", &parked));
            }
            State::Elsewhere { state, number } => {
                open = compose::number(*number);
                members.push(("n", &open));
                members.extend(state.as_ref().map(|state| ("i", state)));
            }
        }
        let text = compose::object(&members);
        let mut whole = self.sign(text.as_bytes()).to_vec();
        whole.extend_from_slice(text.as_bytes());
        compose::string(&URL_SAFE_NO_PAD.encode(whole))
    }

    /// Verifies a state that a client returned with a call.
    pub(crate) fn open(
        &self,
        state: &Json,
        caller: &str,
        call: &str,
        now: Duration,
    ) -> Result<State, BadState> {
        if state.len() > MAX_STATE {
            return Err(BadState);
        }
        let text: String = state.read().map_err(|_| BadState)?;
        let whole = URL_SAFE_NO_PAD.decode(text).map_err(|_| BadState)?;
        let (signature, text) = whole.split_at_checked(SIGNATURE).ok_or(BadState)?;
        self.mac(text).verify_slice(signature).map_err(|_| BadState)?;
        let json = Json::parse(text.to_vec()).map_err(|_| BadState)?;
        let number = |key| object::get(&json, key).and_then(|json| json.read::<u64>().ok());
        let is = |key, expected: &str| object::get_string(&json, key).as_deref() == Some(expected);
        let expires = Duration::from_millis(number("x").ok_or(BadState)?);
        if !is("s", caller) || !is("c", call) || now >= expires {
            return Err(BadState);
        }
        match (number("p"), number("n")) {
            (Some(id), None) => Ok(State::Parked(id)),
            (None, Some(number)) => Ok(State::Elsewhere { state: object::get(&json, "i"), number }),
            _ => Err(BadState),
        }
    }

    /// A short tag of a text, which only this gateway can make.
    pub(crate) fn tag(&self, text: &str) -> String {
        let signature = self.sign(text.as_bytes());
        URL_SAFE_NO_PAD.encode(signature.get(..TAG).unwrap_or_default())
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        // HMAC takes keys of any length, so this never fails.
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key).unwrap_or_else(|_| {
            <Hmac<Sha256> as KeyInit>::new(&hmac::digest::array::Array::default())
        });
        mac.update(text);
        mac
    }

    fn sign(&self, text: &[u8]) -> [u8; SIGNATURE] {
        self.mac(text).finalize().into_bytes().into()
    }
}

// === impl CallDigest ===

impl CallDigest {
    /// The digest of a call of this endpoint and method.
    pub(crate) fn of(place: &str, method: &'static str, params: &Json) -> Self {
        let (text, params) = if params.len() <= MAX_KEPT {
            // Copied, so that it does not keep the buffer of the connection.
            (OnceLock::new(), params.detached())
        } else {
            (OnceLock::from(digest(place, method, params)), Json::empty_object())
        };
        Self(Arc::new(DigestedCall { place: place.to_owned(), method, params, text }))
    }

    pub(crate) fn as_str(&self) -> &str {
        let DigestedCall { place, method, params, text } = &*self.0;
        text.get_or_init(|| digest(place, method, params))
    }
}

/// A digest of a call: endpoint, method, and the params that stay the same in all parts.
fn digest(place: &str, method: &str, params: &Json) -> String {
    let mut hash = Sha256::new();
    // Each part is preceded by its length, so that different calls never hash the same bytes.
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    add(place.as_bytes());
    add(method.as_bytes());
    for (key, value) in object::members(params).unwrap_or_default() {
        if !matches!(key.as_str(), "_meta" | "inputResponses" | "requestState") {
            add(key.as_bytes());
            add(value.as_bytes());
        }
    }
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn sealed(state: State) -> SealedState {
        let (caller, call) = ("ann".to_owned(), "digest".to_owned());
        SealedState { caller, call, expires: Duration::from_secs(20), state }
    }

    #[test]
    fn without_randomness_there_is_no_key() {
        assert_eq!(Sealer::filled(|_| Err(NoRandomness)).err(), Some(NoRandomness));
    }

    #[test]
    fn a_state_comes_back_as_it_went() {
        let sealer = Sealer::new().unwrap();
        let inner = Json::parse(r#""opaque \u00e9""#.to_owned()).unwrap();
        for state in [
            State::Parked(7),
            State::Elsewhere { state: None, number: 1 },
            State::Elsewhere { state: Some(inner), number: 2 },
        ] {
            let carried = sealer.seal(&sealed(state.clone()));
            assert_eq!(sealer.open(&carried, "ann", "digest", NOW), Ok(state));
        }
    }

    #[test]
    fn what_is_made_up_changed_late_or_somebody_elses_is_refused() {
        let sealer = Sealer::new().unwrap();
        let good = sealer.seal(&sealed(State::Parked(7)));
        let text: String = good.read().unwrap();
        let mut whole = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in 0..whole.len() {
            whole[bit] ^= 1;
            let changed = compose::string(&URL_SAFE_NO_PAD.encode(&whole));
            assert_eq!(sealer.open(&changed, "ann", "digest", NOW), Err(BadState));
            whole[bit] ^= 1;
        }
        assert_eq!(sealer.open(&good, "bob", "digest", NOW), Err(BadState));
        assert_eq!(sealer.open(&good, "ann", "other", NOW), Err(BadState));
        assert_eq!(sealer.open(&good, "ann", "digest", Duration::from_secs(20)), Err(BadState));
        assert_eq!(Sealer::new().unwrap().open(&good, "ann", "digest", NOW), Err(BadState));
        for odd in [r#""""#, r#""x""#, "1", "null", "{}"] {
            let odd = Json::parse(odd.to_owned()).unwrap();
            assert_eq!(sealer.open(&odd, "ann", "digest", NOW), Err(BadState), "{odd}");
        }
    }

    fn digest(place: &str, method: &'static str, params: &Json) -> String {
        CallDigest::of(place, method, params).as_str().to_owned()
    }

    #[test]
    fn a_digest_is_the_same_whether_it_is_computed_at_once_or_later() {
        let long = |length| Json::parse(format!(r#"{{"name":"{}"}}"#, "x".repeat(length))).unwrap();
        for params in [long(1), long(MAX_KEPT - 11), long(MAX_KEPT), long(2 * MAX_KEPT)] {
            let later = CallDigest::of("a", "tools/call", &params);
            assert_eq!(later.0.text.get().is_none(), params.len() <= MAX_KEPT);
            assert_eq!(later.as_str(), super::digest("a", "tools/call", &params));
        }
    }

    #[test]
    fn a_digest_sees_the_call_and_not_its_part() {
        let of = |text: &str| digest("", "tools/call", &Json::parse(text.to_owned()).unwrap());
        let first = of(r#"{"name":"t","arguments":{"a":1},"_meta":{"x":1}}"#);
        let later = of(r#"{"name":"t","arguments":{"a":1},"inputResponses":{},"requestState":""}"#);
        assert_eq!(first, later);
        assert_ne!(first, of(r#"{"name":"t","arguments":{"a":2}}"#));
        assert_ne!(first, of(r#"{"name":"u","arguments":{"a":1}}"#));
        let params = Json::parse(r#"{"name":"t"}"#).unwrap();
        assert_ne!(digest("a", "tools/call", &params), digest("b", "tools/call", &params));
        let forged = [
            r#"{"q\u00001\u0000name":"delete","name":"harmless","z":2}"#,
            r#"{"q":1,"name":"delete","name\u0000\"harmless\"\u0000z":2}"#,
        ];
        assert_ne!(of(forged[0]), of(forged[1]));
    }
}

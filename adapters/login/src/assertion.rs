//! Tokens that a client signs to authenticate itself: `private_key_jwt` (RFC 7523).

use capstan_hub::ports::Clock;
use capstan_model::Secret;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;

use crate::error::LoginError;
use crate::random;

/// The lifetime of a signed token, in seconds.
const LIFETIME: i64 = 300;

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    jti: &'a str,
    iat: i64,
    exp: i64,
}

/// Signs a token that authenticates the client at this audience.
pub(crate) fn sign(
    client_id: &str,
    key: &Secret<String>,
    audience: &str,
    clock: &dyn Clock,
) -> Result<Secret<String>, LoginError> {
    let (algorithm, key) = read(key.reveal())?;
    let (id, now) = (random::text()?, clock.now().as_second());
    let claims = Claims {
        iss: client_id,
        sub: client_id,
        aud: audience,
        jti: id.reveal(),
        iat: now,
        exp: now.saturating_add(LIFETIME),
    };
    let signed = encode(&Header::new(algorithm), &claims, &key);
    // The error of the library may quote the key.
    let failed = |_| LoginError::Settings("`private_key` cannot sign".to_owned());
    signed.map(Secret::new).map_err(failed)
}

/// Reads a key in PEM: elliptic curve, RSA or Ed25519.
fn read(pem: &str) -> Result<(Algorithm, EncodingKey), LoginError> {
    let pem = pem.replace("\\n", "\n");
    let bytes = pem.as_bytes();
    let kinds = [
        (Algorithm::ES256, EncodingKey::from_ec_pem as fn(&[u8]) -> _),
        (Algorithm::RS256, EncodingKey::from_rsa_pem),
        (Algorithm::EdDSA, EncodingKey::from_ed_pem),
    ];
    let mut found =
        kinds.into_iter().filter_map(|(algorithm, from)| Some((algorithm, from(bytes).ok()?)));
    found.next().ok_or_else(|| {
        LoginError::Settings(
            "`private_key` is not a private key in PEM (elliptic curve P-256, RSA or Ed25519)"
                .to_owned(),
        )
    })
}

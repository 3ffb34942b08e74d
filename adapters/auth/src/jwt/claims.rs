//! Decides about the content of a token whose signature is right.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{AccessTokenType, JwtSettings};
use crate::provider::Identity;

/// Claims that only ID tokens have: such a token tells a client who signed in, and is not meant for
/// a resource.
const ID_TOKEN_CLAIMS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

/// The caller of a token, and the time for which it is valid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) identity: Identity,
    pub(super) valid_for: Duration,
}

/// True if the type in the header of a token may be that of an access token.
pub(super) fn is_access_token(typ: Option<&str>, wanted: AccessTokenType) -> bool {
    let typ = typ.map(str::to_ascii_lowercase);
    let typ = typ.as_deref().map(|typ| typ.strip_prefix("application/").unwrap_or(typ));
    match wanted {
        AccessTokenType::Strict => typ == Some("at+jwt"),
        AccessTokenType::Any => matches!(typ, None | Some("jwt" | "at+jwt")),
    }
}

/// Checks the claims of a token; `None` if it is not accepted.
pub(super) fn check(
    claims: &Map<String, Value>,
    settings: &JwtSettings,
    now: Timestamp,
) -> Option<Accepted> {
    if claims.get("iss")?.as_str()? != settings.issuer {
        return None;
    }
    let audiences = words(claims.get("aud")?, Split::No)?;
    let is_for_us = |one: &String| settings.audience.iter().any(|ours| covers(ours, one));
    if !audiences.iter().any(is_for_us) {
        return None;
    }
    let is_id_token = ID_TOKEN_CLAIMS.iter().any(|claim| claims.contains_key(*claim))
        || claims.get("typ").and_then(Value::as_str).is_some_and(|typ| typ == "ID");
    if is_id_token {
        return None;
    }
    for (claim, expected) in &settings.required_claims {
        let given = at(claims, claim)?;
        if !words(given, Split::Spaces)?.iter().any(|word| word == expected)
            && given.as_str() != Some(expected)
        {
            return None;
        }
    }
    let valid_for = time_left(claims, settings.leeway, now)?;
    let subject = at(claims, &settings.subject_claim)?.as_str()?.to_owned();
    let roles = match at(claims, &settings.roles_claim) {
        Some(roles) => words(roles, Split::Spaces)?,
        None => Vec::new(),
    };
    Some(Accepted { identity: Identity { subject, roles }, valid_for })
}

/// The time for which a token is still valid; `None` if it has expired or is not valid yet.
fn time_left(claims: &Map<String, Value>, leeway: Duration, now: Timestamp) -> Option<Duration> {
    let now = Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH)).ok()?;
    let end = seconds(claims.get("exp")?)?.checked_add(leeway)?;
    if let Some(begin) = claims.get("nbf")
        && seconds(begin)? > now.checked_add(leeway)?
    {
        return None;
    }
    end.checked_sub(now).filter(|left| !left.is_zero())
}

fn seconds(value: &Value) -> Option<Duration> {
    let whole = value.as_u64().map(Duration::from_secs);
    whole.or_else(|| Duration::try_from_secs_f64(value.as_f64()?).ok())
}

/// True if an audience is this one, or below one that ends with `/*`.
fn covers(ours: &str, audience: &str) -> bool {
    match ours.strip_suffix("/*") {
        Some(base) => {
            let rest = audience.strip_prefix(base);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        None => ours == audience,
    }
}

/// Determines if a text counts as one word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    No,
    Spaces,
}

/// The words of a claim: a list of texts, or one text. `None` for other values.
fn words(value: &Value, split: Split) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(match split {
            Split::No => vec![text.clone()],
            Split::Spaces => text.split_ascii_whitespace().map(ToOwned::to_owned).collect(),
        }),
        Value::Array(list) => list.iter().map(|one| one.as_str().map(ToOwned::to_owned)).collect(),
        Value::Bool(flag) if split == Split::Spaces => Some(vec![flag.to_string()]),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The claim with this name, or at this path.
fn at<'c>(claims: &'c Map<String, Value>, path: &str) -> Option<&'c Value> {
    // The name of a claim may itself contain dots, as in `https://example.com/roles`.
    if let Some(claim) = claims.get(path) {
        return Some(claim);
    }
    let mut parts = path.split('.');
    let first = claims.get(parts.next()?)?;
    parts.try_fold(first, |claim, part| claim.get(part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn settings() -> JwtSettings {
        JwtSettings {
            issuer: "https://i".to_owned(),
            jwks_url: None,
            audience: vec!["capstan".to_owned(), "https://h/*".to_owned()],
            algorithms: Vec::new(),
            subject_claim: "sub".to_owned(),
            roles_claim: "realm_access.roles".to_owned(),
            required_claims: BTreeMap::from([("azp".to_owned(), "app".to_owned())]),
            access_tokens: AccessTokenType::Any,
            leeway: Duration::from_secs(30),
            networks: Vec::new(),
        }
    }

    fn claims(change: &Value) -> Map<String, Value> {
        let mut claims = json!({
            "iss": "https://i", "aud": "capstan", "sub": "ann", "azp": "app", "exp": NOW + 60,
            "realm_access": { "roles": ["dev", "Ops"] },
        });
        for (name, value) in change.as_object().unwrap() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims.as_object().unwrap().clone()
    }

    fn accepted(change: &Value) -> Option<Accepted> {
        check(&claims(change), &settings(), Timestamp::from_second(NOW).unwrap())
    }

    #[test]
    fn a_token_that_says_all_that_is_required_is_accepted() {
        let ann = accepted(&json!({})).unwrap();
        assert_eq!(ann.identity.subject, "ann");
        assert_eq!(ann.identity.roles, ["dev", "Ops"]);
        assert_eq!(ann.valid_for, Duration::from_secs(90));
        for good in [
            json!({ "aud": ["other", "capstan"] }),
            json!({ "aud": "https://h" }),
            json!({ "aud": "https://h/servers/files/mcp" }),
            json!({ "exp": NOW - 29 }),
            json!({ "exp": 1_000_060.5 }),
            json!({ "nbf": NOW + 30 }),
            json!({ "azp": ["x", "app"] }),
            json!({ "azp": "x app" }),
            json!({ "realm_access": null }),
            json!({ "realm_access": { "roles": "dev Ops" } }),
            json!({ "realm_access.roles": ["dev"] }),
        ] {
            assert!(accepted(&good).is_some(), "{good}");
        }
    }

    #[test]
    fn a_token_that_is_for_others_or_out_of_time_is_refused() {
        for bad in [
            json!({ "iss": "https://i/" }),
            json!({ "iss": ["https://i"] }),
            json!({ "iss": null }),
            json!({ "aud": "other" }),
            json!({ "aud": "Capstan" }),
            json!({ "aud": "https://h.evil" }),
            json!({ "aud": "https://hx/mcp" }),
            json!({ "aud": [] }),
            json!({ "aud": [7, "capstan"] }),
            json!({ "aud": null }),
            json!({ "exp": NOW - 31 }),
            json!({ "exp": NOW - 30 }),
            json!({ "exp": null }),
            json!({ "exp": "1000060" }),
            json!({ "exp": -1 }),
            json!({ "nbf": NOW + 31 }),
            json!({ "nbf": "soon" }),
            json!({ "sub": null }),
            json!({ "sub": 7 }),
            json!({ "azp": "other" }),
            json!({ "azp": null }),
            json!({ "azp": { "app": true } }),
            json!({ "realm_access": { "roles": 7 } }),
            json!({ "realm_access": { "roles": [7] } }),
            json!({ "nonce": "n" }),
            json!({ "at_hash": "h" }),
            json!({ "typ": "ID" }),
        ] {
            assert_eq!(accepted(&bad), None, "{bad}");
        }
    }

    #[test]
    fn only_access_tokens_count_where_the_issuer_marks_them() {
        for (typ, any, strict) in [
            (None, true, false),
            (Some("JWT"), true, false),
            (Some("at+jwt"), true, true),
            (Some("application/at+jwt"), true, true),
            (Some("AT+JWT"), true, true),
            (Some("logout+jwt"), false, false),
            (Some("dpop+jwt"), false, false),
        ] {
            assert_eq!(is_access_token(typ, AccessTokenType::Any), any, "{typ:?}");
            assert_eq!(is_access_token(typ, AccessTokenType::Strict), strict, "{typ:?}");
        }
    }
}

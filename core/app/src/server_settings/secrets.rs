//! Texts that are masked in a server's output: secrets that it was given or may have found.

use capstan_config::{OpenApi, Program, Remote, ServerEntry};
use capstan_model::Secret;
use capstan_model::secret::{MASK, is_secret_name};
use capstan_safety::mask::{is_ordinary, mask_arguments, mask_url};

use crate::Environment;

/// Headers with credentials that their names do not reveal.
const CREDENTIALS: &[&str] = &["authorization", "cookie", "proxy-authorization"];

/// The secrets of a program: in its variables, ours and declared, and in its arguments.
pub fn program_secrets(
    environment: &Environment,
    entry: &ServerEntry,
    program: &Program,
) -> Vec<Secret<String>> {
    let asked = |name: &String| program.env_passthrough.contains(name) || is_secret_name(name);
    let is_secret = |(name, value): &(&String, &String)| asked(name) && !is_ordinary(name, value);
    let ours = environment.variables.iter().filter(is_secret);
    let ours = ours.map(|(_, value)| Secret::new(value.clone()));
    let words = || program.args.iter().map(String::as_str);
    let hidden = words().zip(mask_arguments(words()));
    let hidden = hidden.filter_map(|(word, shown)| hidden_part(word, &shown)).map(Secret::new);
    let given = program.env.values().chain(&entry.secrets).cloned();
    given.chain(ours).chain(hidden).collect()
}

/// The secrets of a server behind a URL.
pub fn remote_secrets(entry: &ServerEntry, remote: &Remote) -> Vec<Secret<String>> {
    let in_url = url_secrets(&remote.url).into_iter().map(Secret::new);
    entry.secrets.iter().cloned().chain(in_url).collect()
}

/// The secrets of an OpenAPI service.
///
/// Headers without credentials are not masked: answers may legitimately contain their values.
pub fn document_secrets(entry: &ServerEntry, openapi: &OpenApi) -> Vec<Secret<String>> {
    let opens = |name: &String| {
        is_secret_name(name) || CREDENTIALS.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    let headers = openapi.headers.iter().filter(|(name, _)| opens(name)).map(|(_, value)| value);
    // The service may repeat the token without its scheme.
    let tokens = headers.flat_map(|value| {
        let token = value.reveal().split_once(' ').map(|(_, token)| Secret::new(token.to_owned()));
        std::iter::once(value.clone()).chain(token)
    });
    let urls = openapi.base_url.iter().chain([&openapi.document]);
    let in_urls = urls.flat_map(|url| url_secrets(url)).map(Secret::new);
    let in_auth = openapi.auth.values().map(|credentials| credentials.secret().clone());
    tokens.chain(in_urls).chain(in_auth).chain(entry.secrets.iter().cloned()).collect()
}

/// The secret parts of a URL as written: the user information before the host, and everything else
/// that [`mask_url`] hides.
fn url_secrets(url: &str) -> Vec<String> {
    let Some((_, rest)) = url.split_once("://") else { return Vec::new() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let mut secrets = Vec::new();
    if let Some((login, _)) = authority.rsplit_once('@') {
        secrets.push(login.to_owned());
        // A user name alone is no secret, but a token may be in its place.
        secrets.push(login.split_once(':').map_or(login, |(_, password)| password).to_owned());
    }
    for part in path.split(['/', '?', '&', '#']).filter(|part| !part.is_empty()) {
        let shown = mask_url(&format!("x://h/{part}"));
        let shown = shown.strip_prefix("x://h/").unwrap_or_default();
        secrets.extend(hidden_part(part, shown));
        if let (Some((_, value)), MASK) = (part.split_once('='), shown) {
            secrets.push(value.to_owned());
        }
    }
    secrets
}

/// The part of an argument that is masked.
fn hidden_part(argument: &str, shown: &str) -> Option<String> {
    let (before, after) = shown.split_once(MASK)?;
    let part = argument.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    Some(part.unwrap_or(argument).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hidden_part_of_an_argument_is_found() {
        let hidden = |argument, shown| hidden_part(argument, shown).unwrap_or_default();
        assert_eq!(hidden("--key=abc", "--key=***"), "abc");
        assert_eq!(hidden("abc", "***"), "abc");
        assert_eq!(hidden("https://me:pw@h", "https://***@h"), "me:pw");
        assert_eq!(hidden("u://a@h?key=b", "u://***@h?key=***"), "u://a@h?key=b");
        assert_eq!(hidden_part("--verbose", "--verbose"), None);
    }

    #[test]
    fn the_secrets_of_an_address_are_found() {
        let long = "a1".repeat(20);
        for (url, expected) in [
            ("https://h/mcp?page=2#top", &[][..]),
            ("https://me:pw@h:8080/mcp", &["me:pw", "pw"]),
            ("https://ghp_token@h", &["ghp_token", "ghp_token"]),
            ("https://h/mcp?a=b&api_key=s3cr3t&x", &["s3cr3t"]),
            (&format!("https://h/{long}/mcp"), &[&long]),
            (&format!("https://h/mcp?k={long}"), &[&format!("k={long}"), &long]),
            ("unix:///run/mcp.sock:/mcp", &[]),
        ] {
            assert_eq!(url_secrets(url), expected, "{url}");
        }
    }
}

//! The form of a URI that names its server, for URIs that several servers have.

use capstan_model::{ItemId, ServerName};

/// The scheme of qualified URIs, except for the schemes in [`KEPT`].
const SCHEME: &str = "capstan://";

/// Schemes that mean something to clients, so the qualified form keeps them.
const KEPT: [&str; 2] = ["ui://", "skill://"];

/// The end of the authority in a qualified URI with a scheme in [`KEPT`].
const DOMAIN: &str = ".capstan";

/// The authority of the pages of long answers. The URIs of a server of this name have [`DOMAIN`].
const PAGES: &str = "answers";

/// Returns the form of a server's URI that names the server.
///
/// The server is the authority of the URI: relative references stay below it, and dots in a path do
/// not lead out of it. `ui://` and `skill://` are kept, since clients know them by these.
pub(super) fn qualified(server: &ServerName, uri: &str) -> String {
    for scheme in KEPT {
        if let Some(rest) = uri.strip_prefix(scheme) {
            return format!("{scheme}{server}{DOMAIN}/{rest}");
        }
    }
    let domain = if server.as_str() == PAGES { DOMAIN } else { "" };
    format!("{SCHEME}{server}{domain}/{uri}")
}

/// Reads the server and its own URI from a qualified URI.
pub(super) fn parse(uri: &str) -> Option<ItemId> {
    for scheme in KEPT {
        if let Some(rest) = uri.strip_prefix(scheme) {
            let (server, rest) = rest.split_once('/')?;
            let server = server.strip_suffix(DOMAIN)?.parse().ok()?;
            return Some(ItemId { server, item: format!("{scheme}{rest}") });
        }
    }
    let (server, own) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let server = server.strip_suffix(DOMAIN).unwrap_or(server);
    Some(ItemId { server: server.parse().ok()?, item: own.to_owned() })
}

/// True if a URI or template is, or can be mistaken for, a qualified one. No server owns such a URI.
pub(super) fn is_qualified(uri: &str) -> bool {
    let authority = |scheme: &str| {
        let (own, rest) = uri.split_at_checked(scheme.len())?;
        // A client may write a scheme and an authority in other letters.
        own.eq_ignore_ascii_case(scheme).then(|| rest.split(['/', '?', '#']).next())?
    };
    let ends = |authority: &str| {
        let at = authority.len().checked_sub(DOMAIN.len());
        let end = at.and_then(|at| authority.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(DOMAIN)) || authority.contains('{')
    };
    authority(SCHEME).is_some() || KEPT.into_iter().filter_map(authority).any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerName {
        name.parse().unwrap()
    }

    #[test]
    fn a_qualified_uri_names_its_server_and_nothing_else() {
        for (own, shown) in [
            ("f://x", "capstan://b/f://x"),
            ("ui://clock/app.html", "ui://b.capstan/clock/app.html"),
            ("skill://pdf/SKILL.md", "skill://b.capstan/pdf/SKILL.md"),
            ("UI://x", "capstan://b/UI://x"),
            ("", "capstan://b/"),
            ("../c/f://x", "capstan://b/../c/f://x"),
            ("capstan://c/f://x", "capstan://b/capstan://c/f://x"),
            ("ui://c.capstan/x", "ui://b.capstan/c.capstan/x"),
        ] {
            assert_eq!(qualified(&server("b"), own), shown);
            let id = ItemId { server: server("b"), item: own.to_owned() };
            assert_eq!(parse(shown), Some(id), "{shown}");
            assert!(is_qualified(shown), "{shown}");
        }
        for other in ["f://x", "ui://clock/app.html", "ui://x.capstan.org/y", "ui://b.capstan", ""]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_server_called_answers_is_not_taken_for_the_pages_of_answers() {
        let shown = qualified(&server(PAGES), "f://x");
        assert!(!crate::spills::is_page(&shown), "{shown}");
        let id = ItemId { server: server(PAGES), item: "f://x".to_owned() };
        assert_eq!(parse(&shown), Some(id));
    }

    #[test]
    fn what_resembles_a_qualified_uri_belongs_to_no_server() {
        for forged in [
            "capstan://b/f://x",
            "CAPSTAN://b/x",
            "capstan://",
            "ui://b.capstan/x",
            "UI://B.Capstan/x",
            "skill://b.capstan",
            "ui://{server}/x",
            "ui://b{x}/y",
        ] {
            assert!(is_qualified(forged), "{forged}");
        }
        for other in ["f://x", "ui://clock/{page}", "ui://clock", "skill://pdf/SKILL.md", "ui:"] {
            assert!(!is_qualified(other), "{other}");
        }
    }
}

//! Whether a server's address is one we can connect to.

/// What is wrong with an address, as the end of a sentence.
pub(crate) type Fault = &'static str;

/// Checks an address: `http://` or `https://` with a host, or `unix://` with a path.
pub(crate) fn check(url: &str) -> Result<(), Fault> {
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("contains a space or a control character");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("does not begin with `https://`, `http://` or `unix://`");
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => host(rest),
        "unix" if rest.starts_with('/') && rest.len() > 1 => Ok(()),
        "unix" => Err("names no socket; write `unix:///path/to.sock`"),
        _ => Err("does not begin with `https://`, `http://` or `unix://`"),
    }
}

fn host(rest: &str) -> Result<(), Fault> {
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let (host, port) = match address.strip_prefix('[') {
        Some(v6) => match v6.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or("has no valid port")?)),
            None => return Err("has a `[` without a `]`"),
        },
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    if host.is_empty() {
        return Err("has no host");
    }
    match port {
        Some(port) if port.parse::<u16>().is_err() => Err("has no valid port"),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_a_host_or_a_socket_are_accepted() {
        for url in [
            "https://example.com/mcp",
            "http://localhost:8080/mcp/",
            "HTTP://[::1]:80",
            "https://user:pw@host?x=1",
            "unix:///run/x.sock",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn addresses_that_lead_nowhere_are_refused() {
        for url in [
            "",
            "example.com",
            "https://",
            "https:///mcp",
            "https://:80/",
            "ftp://host",
            "https://h:x",
            "https://h:99999",
            "unix://",
            "unix://sock",
            "http://a b",
            "file:///etc/passwd",
            "http://[::1",
            "javascript:alert(1)",
            "https://user@",
            "http://[::1]80",
            "http://h\n",
        ] {
            assert!(check(url).is_err(), "{url:?} was accepted");
        }
    }
}

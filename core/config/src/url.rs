//! Whether a server's address is one we can connect to.

/// Ports of services that do not speak HTTP. A request there may be taken for their own protocol.
const ODD_PORTS: &[u16] = &[
    21, 22, 23, 25, 53, 110, 111, 119, 135, 139, 143, 389, 445, 465, 514, 587, 636, 993, 995, 1433,
    2049, 2375, 2376, 2379, 3306, 3389, 5432, 5900, 6379, 10250, 11211, 27017,
];

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

/// The port of an address, where it is one that HTTP is not spoken on.
pub(crate) fn odd_port(url: &str) -> Option<u16> {
    let (_, rest) = url.split_once("://")?;
    let (_, port) = authority(rest).ok()?;
    port?.parse().ok().filter(|port| ODD_PORTS.contains(port))
}

fn host(rest: &str) -> Result<(), Fault> {
    let (host, port) = authority(rest)?;
    if host.is_empty() {
        return Err("has no host");
    }
    match port {
        Some(port) if port.parse::<u16>().is_err() => Err("has no valid port"),
        Some(_) | None => Ok(()),
    }
}

/// The host of an address without its brackets, and the port.
fn authority(rest: &str) -> Result<(&str, Option<&str>), Fault> {
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    Ok(match address.strip_prefix('[') {
        Some(v6) => match v6.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or("has no valid port")?)),
            None => return Err("has a `[` without a `]`"),
        },
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    })
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
    fn ports_of_other_protocols_are_known() {
        for (url, expected) in [
            ("https://example.com:25/", Some(25)),
            ("https://me:110@[::1]:6379", Some(6379)),
            ("http://h:2375?x", Some(2375)),
            ("https://example.com/", None),
            ("https://example.com:443/", None),
            ("https://me:25@example.com/", None),
            ("http://h:8080/a:25/", None),
            ("unix:///run/x.sock:25", None),
        ] {
            assert_eq!(odd_port(url), expected, "{url}");
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

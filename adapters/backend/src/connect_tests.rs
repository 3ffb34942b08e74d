//! What leads where, and what is looked at before anything goes there.

use super::*;

#[test]
fn a_socket_and_the_path_behind_it_are_told_apart() {
    let cases = [
        ("unix:///run/a.sock:/mcp", Some("/run/a.sock"), "http://localhost/mcp"),
        ("unix:///run/a.sock", Some("/run/a.sock"), "http://localhost/"),
        ("unix:///run/a.sock:/m/x?y=1", Some("/run/a.sock"), "http://localhost/m/x?y=1"),
        ("https://example.com/mcp", None, "https://example.com/mcp"),
    ];
    for (text, socket, url) in cases {
        let address = Address::parse(text).unwrap();
        assert_eq!(address.socket, socket.map(PathBuf::from), "{text}");
        assert_eq!(address.url.as_str(), url, "{text}");
    }
    for text in ["", "mcp", "ftp://host/", "file:///etc/passwd", "https://"] {
        assert!(Address::parse(text).is_err(), "{text}");
    }
}

#[test]
fn only_plain_addresses_of_this_machine_are_reached_the_short_way() {
    let port = |host: &str, port| Some(Place::Port(host.to_owned(), port));
    for (url, place, host) in [
        ("http://127.0.0.1:81/mcp", port("127.0.0.1", 81), "127.0.0.1:81"),
        ("http://[::1]:81/mcp", port("::1", 81), "[::1]:81"),
        ("http://localhost/mcp", port("localhost", 80), "localhost"),
        ("unix:///run/a.sock:/mcp", Some(Place::Socket("/run/a.sock".into())), "localhost"),
        ("https://127.0.0.1:81/mcp", None, ""),
        ("http://me:secret@127.0.0.1:81/mcp", None, ""),
        ("http://me@localhost/mcp", None, ""),
        ("http://10.0.0.1/mcp", None, ""),
        ("http://localhost.example.com/mcp", None, ""),
    ] {
        match (Address::parse(url).unwrap().local(), place) {
            (Some(Reach::Local(local, name)), Some(place)) => {
                assert_eq!((local.place(), name.to_str().unwrap()), (&place, host), "{url}");
            }
            (None, None) => {}
            (other, _) => panic!("{url}: {}", other.is_some()),
        }
    }
}

#[test]
fn only_addresses_of_this_machine_bypass_the_proxy() {
    for (url, expected) in [
        ("http://127.0.0.1:1/", true),
        ("http://[::1]:1/", true),
        ("http://localhost/", true),
        ("http://localhost.example.com/", false),
        ("http://10.0.0.1/", false),
        ("http://127.0.0.1.example.com/", false),
    ] {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
    }
}

#[test]
fn names_are_looked_at_unless_trusted_and_what_is_written_as_this_machine_is_let_through() {
    for (url, expected) in [
        ("http://intranet.example:81/mcp", Some("intranet.example")),
        ("https://intranet.example/mcp", Some("intranet.example")),
        ("http://localhost.example.com/mcp", Some("localhost.example.com")),
        ("http://127.0.0.1.example.com/mcp", Some("127.0.0.1.example.com")),
        ("https://localhost/mcp", None),
        ("http://localhost:81/mcp", None),
        ("http://127.0.0.1:81/mcp", None),
        ("http://[::1]:81/mcp", None),
        ("unix:///run/a.sock:/mcp", None),
    ] {
        let address = Address::parse(url).unwrap();
        let guarded = |names| guard(&address, names).map(|outside| outside.host);
        assert_eq!(guarded(Names::Outside).as_deref(), expected, "{url}");
        assert_eq!(guarded(Names::Anywhere), None, "{url}");
    }
}

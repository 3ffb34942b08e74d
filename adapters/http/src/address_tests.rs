//! Tests of destinations and of the address checks before anything is sent.

use std::sync::Arc;

use capstan_model::Trust;
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;

use super::*;
use crate::address_guard::{AddressGuard, LookupError};
use crate::client::Client;
use crate::transport::Transport;

#[test]
fn a_socket_and_the_path_behind_it_are_told_apart() {
    let cases = [
        ("unix:///run/a.sock:/mcp", Some("/run/a.sock"), "http://localhost/mcp"),
        ("unix:///run/a.sock", Some("/run/a.sock"), "http://localhost/"),
        ("unix:///run/a.sock:/m/x?y=1", Some("/run/a.sock"), "http://localhost/m/x?y=1"),
        ("https://example.com/mcp", None, "https://example.com/mcp"),
    ];
    for (text, socket, url) in cases {
        let address = WebAddress::parse(text).unwrap();
        assert_eq!(address.socket, socket.map(PathBuf::from), "{text}");
        assert_eq!(address.url.as_str(), url, "{text}");
    }
    for text in ["", "mcp", "ftp://host/", "file:///etc/passwd", "https://"] {
        assert!(WebAddress::parse(text).is_err(), "{text}");
    }
}

/// The transport that an address gets: local, far, or refused.
fn reached(address: &WebAddress, policy: &AddressPolicy) -> &'static str {
    let masker = Arc::new(Masker::new(std::iter::empty()));
    match Client::new(address, &[], masker, policy).unwrap().transport() {
        Transport::Local(..) => "local",
        Transport::Far(_) => "far",
        Transport::Refused(_) => "refused",
    }
}

#[test]
fn only_plain_addresses_of_this_machine_are_reached_the_short_way() {
    for (url, expected) in [
        ("http://127.0.0.1:81/mcp", "local"),
        ("http://[::1]:81/mcp", "local"),
        ("http://localhost/mcp", "local"),
        ("unix:///run/a.sock:/mcp", "local"),
        ("https://127.0.0.1:81/mcp", "far"),
        ("http://me:secret@127.0.0.1:81/mcp", "far"),
        ("http://me@localhost/mcp", "far"),
        ("http://1.1.1.1/mcp", "far"),
        ("http://localhost.example.com/mcp", "far"),
    ] {
        let address = WebAddress::parse(url).unwrap();
        assert_eq!(reached(&address, &AddressPolicy::default()), expected, "{url}");
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

/// Holes 1: the rule applies to the address that is dialled, however it is written.
#[test]
fn nothing_is_sent_to_a_literal_that_is_not_public_unless_the_configuration_allows_it() {
    let list = |network: &str| {
        let networks = vec![network.parse().unwrap()];
        AddressPolicy { networks, ..AddressPolicy::default() }
    };
    for (url, network) in [
        ("http://10.0.0.1/mcp", "10.0.0.0/8"),
        ("https://example.com@10.0.0.1/", "10.0.0.0/8"),
        ("http://0xc0a80001/", "192.168.0.1"),
        ("http://3232235521/", "192.168.0.0/16"),
        ("http://169.254.169.254/", "169.254.169.254"),
        ("http://[::ffff:169.254.169.254]/", "169.254.169.254"),
        ("http://0.0.0.0:3000/", "0.0.0.0"),
        ("http://2130706433:6379/", "127.0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://%31%32%37.0.0.1/", "127.0.0.1"),
        ("http://127。0。0。1/", "127.0.0.1"),
        ("https://①②⑦.⓪.⓪.①/", "127.0.0.1"),
        ("http://[0000::1]/", "::1"),
        ("http://[::127.0.0.1]/", "::127.0.0.1"),
        ("http://[fd00::1]/", "fd00::/8"),
        ("http://127.1.1.1:80\\@127.2.2.2:80/", "127.1.1.1"),
    ] {
        let address = WebAddress::parse(url).unwrap();
        let sandboxed = AddressPolicy { trust: Trust::Sandboxed, ..AddressPolicy::default() };
        let trusted = AddressPolicy { trust: Trust::Trusted, ..AddressPolicy::default() };
        assert_eq!(reached(&address, &AddressPolicy::default()), "refused", "{url}");
        assert_eq!(reached(&address, &sandboxed), "refused", "{url}");
        assert_eq!(reached(&address, &list("10.99.0.0/16")), "refused", "{url}");
        assert_ne!(reached(&address, &list(network)), "refused", "{url}");
        assert_ne!(reached(&address, &trusted), "refused", "{url}");
    }
}

#[tokio::test]
async fn other_names_of_this_machine_are_refused_when_they_are_looked_up() {
    let guard = |url| {
        let address = WebAddress::parse(url).unwrap();
        AddressGuard::new(address.target_host(), AddressPolicy::default(), address.loopback)
    };
    assert!(guard("http://localhost:1/").lookup(1).await.is_ok());
    for url in
        ["http://LOCALHOST/", "hTTps://LocalHost/", "http://ⓛocalhost/", "http://%6Cocalhost/"]
    {
        let refused = guard(url).lookup(1).await;
        assert!(matches!(refused, Err(LookupError::Refused(_))), "{url}");
    }
}

#[test]
fn what_a_server_or_a_document_names_has_no_right_to_this_machine() {
    let policy = AddressPolicy::default();
    let home = WebAddress::parse("http://127.0.0.1:81/docs").unwrap();
    for (found, expected) in [
        (home.join("/v1"), "local"),
        (home.join("http://127.0.0.1:81/v1"), "local"),
        (home.join("http://127.0.0.1:82/"), "refused"),
        (home.join("//[::1]:81/"), "refused"),
        (WebAddress::discover("http://127.0.0.1:81/"), "refused"),
        (WebAddress::discover("http://[::1]/"), "refused"),
        (WebAddress::discover("https://10.0.0.1/"), "refused"),
        (WebAddress::discover("https://1.1.1.1/"), "far"),
    ] {
        assert_eq!(reached(&found.unwrap(), &policy), expected);
    }
    for refused in [
        "unix:///var/run/docker.sock",
        "file:///etc/passwd",
        "ftp://example.com/",
        "ws://example.com/",
        "jar:http://127.0.0.1!/",
        "https://example.com:80+&@example.com/",
        "https://me:pw@example.com/",
        "http://[::1%25lo]/",
    ] {
        assert!(WebAddress::discover(refused).is_err(), "{refused}");
        assert!(home.join(refused).is_err(), "{refused}");
    }
    let socket = WebAddress::parse("unix:///run/a.sock:/mcp").unwrap();
    assert_eq!(socket.join("https://example.com/").unwrap().socket, None);
}

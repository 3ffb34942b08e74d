//! Tests which addresses are refused, and which settings allow them (Holes 1).

use super::*;

/// Addresses that are not globally routable.
const REFUSED: &str = "0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.1.2.3 10.255.255.255 100.64.0.1 \
    100.100.100.200 100.127.255.254 127.0.0.1 127.255.0.9 168.63.129.16 169.254.169.254 \
    169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1 \
    192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 \
    239.255.255.250 240.0.0.1 254.255.255.255 255.255.255.255 :: ::1 ::2 ::ffff:10.0.0.1 \
    ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:168.63.129.16 ::7f00:1 ::101:101 \
    ::ffff:0:7f00:1 ::ffff:0:101:101 64:ff9b::a00:1 64:ff9b::a9fe:a9fe \
    64:ff9b::a83f:8110 64:ff9b:1::1 64:ff9b:1::808:808 100::1 2001::1 2001:2::1 \
    2001:10::1 2001:20::1 2001:db8::1 2002:a00:1:: 2002:7f00:1:: 2002:a9fe:a9fe::1 \
    2a00::5efe:a00:1 2a00::200:5efe:a9fe:a9fe 3fff::1 4000::1 5f00::1 fc00::1 fd00::1 \
    fd00:ec2::254 fd20:ce::254 fe80::1 fe80::a9fe:a9fe fec0::1 ff02::1";

/// Globally routable addresses.
const OPEN: &str = "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 128.0.0.1 168.63.129.15 \
    168.63.129.17 169.253.255.255 169.255.0.1 172.15.255.255 172.32.0.1 192.0.1.1 \
    192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255 2000::1 2606:4700::1111 \
    ::ffff:1.1.1.1 64:ff9b::101:101 2002:101:101:: 2a00::1 2001:200::1 \
    2001:4860:4860::8888 3ffe::1";

fn policy(networks: &[&str]) -> AddressPolicy {
    let networks = networks.iter().map(|text| text.parse().unwrap()).collect();
    let server = Some("s".parse().unwrap());
    AddressPolicy { server, networks, ..AddressPolicy::default() }
}

fn passes(policy: &AddressPolicy, address: &str) -> bool {
    policy.check(address.parse().unwrap(), Loopback::Refused).is_ok()
}

#[test]
fn an_address_that_is_not_globally_routable_is_refused_in_every_form() {
    for refused in REFUSED.split(' ') {
        assert!(!passes(&policy(&[]), refused), "{refused}");
    }
    for open in OPEN.split(' ') {
        assert!(passes(&policy(&[]), open), "{open}");
    }
}

#[test]
fn a_listed_network_allows_what_lies_in_it_and_nothing_else() {
    for (networks, address, expected) in [
        (&["10.0.0.0/8"][..], "10.9.9.9", true),
        (&["10.0.0.0/8"], "::ffff:10.9.9.9", true),
        (&["::ffff:10.0.0.0/104"], "10.9.9.9", true),
        (&["10.0.0.1"], "10.0.0.1", true),
        (&["10.0.0.1", "fd00::/8"], "fd12::1", true),
        (&["192.168.0.0/16"], "192.168.7.7", true),
        (&["0.0.0.0/0"], "192.168.7.7", true),
        (&["127.0.0.0/8"], "127.0.0.5", true),
        (&["127.0.0.5"], "127.0.0.5", true),
        (&["169.254.169.254"], "169.254.169.254", true),
        (&["169.254.0.0/16"], "169.254.170.2", true),
        (&["fe80::/10"], "fe80::1", true),
        (&["fe80::/64"], "fe80::1", true),
        (&["127.0.0.0/9"], "127.0.0.1", true),
        (&["::1"], "::1", true),
        (&["::1/128"], "::1", true),
        (&["0.0.0.0"], "0.0.0.0", true),
        (&["64:ff9b::7f00:1"], "64:ff9b::7f00:1", true),
        (&["10.0.0.1"], "10.0.0.2", false),
        (&["10.0.0.0/8"], "100.64.0.1", false),
        (&["10.0.0.0/8"], "192.168.7.7", false),
        (&["10.0.0.0/31"], "10.0.0.2", false),
        (&["fd00::/8"], "10.0.0.1", false),
        (&["fd00::/16"], "fd01::1", false),
        // Wide networks do not include this machine or the link.
        (&["0.0.0.0/0"], "169.254.169.254", false),
        (&["0.0.0.0/0"], "127.0.0.1", false),
        (&["0.0.0.0/0"], "0.0.0.0", false),
        (&["128.0.0.0/1"], "169.254.169.254", false),
        (&["169.254.0.0/15"], "169.254.169.254", false),
        (&["::/0"], "fe80::1", false),
        (&["::/0"], "::1", false),
        (&["2002::/16"], "2002:a9fe:a9fe::", false),
        (&["0.0.0.0/1"], "127.0.0.1", false),
        (&["0.0.0.0/1"], "0.0.0.0", false),
        (&["126.0.0.0/7"], "127.0.0.1", false),
        (&["0.0.0.0/8"], "0.0.0.0", false),
        (&["::/97"], "::1", false),
        (&["::/97"], "::7f00:1", false),
        (&["::/127"], "::1", false),
        (&["64:ff9b::/97"], "64:ff9b::7f00:1", false),
        (&["64:ff9b::/96"], "64:ff9b::a9fe:a9fe", false),
        (&["2002::/17"], "2002:7f00:1::", false),
        (&["fe80::/9"], "fe80::1", false),
        (&["10.0.0.0/8"], "2002:a00:1::", false),
        (&["169.254.0.0/16"], "64:ff9b::a9fe:a9fe", false),
    ] {
        assert_eq!(passes(&policy(networks), address), expected, "{networks:?} {address}");
    }
    let trusted = AddressPolicy { trust: Trust::Trusted, ..policy(&[]) };
    let sandboxed = AddressPolicy { trust: Trust::Sandboxed, ..policy(&[]) };
    for address in ["10.0.0.1", "169.254.169.254", "127.0.0.1", "::"] {
        assert!(passes(&trusted, address), "{address}");
        assert!(!passes(&sandboxed, address), "{address}");
    }
}

#[test]
fn only_three_spellings_of_this_machine_count_as_configured() {
    for url in [
        "http://127.0.0.1",
        "http://127.0.0.1:81/mcp",
        "https://[::1]:81/mcp",
        "HTTP://localhost/",
        "http://me:pw@localhost:1?x#y",
        "http://a@b@[::1]",
    ] {
        assert_eq!(Loopback::of_configured(url), Loopback::Configured, "{url}");
    }
    for url in [
        "http://LOCALHOST/",
        "http://localhost./",
        "http://sub.localhost/",
        "http://localhost.localdomain/",
        "http://127.0.0.1./",
        "http://127.1/",
        "http://127.0.0.2/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.000.000.001/",
        "http://%31%32%37.0.0.1/",
        "http://127。0。0。1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://ⓛocalhost/",
        "http://[0::1]/",
        "http://[0000::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::]/",
        "http://0.0.0.0/",
        "http://0/",
        "http://local\thost/",
        "http://127.0.0.1@evil.test/",
        "http://evil.test\\@127.0.0.1/",
        "http://evil.test#@127.0.0.1/",
        "http:/127.0.0.1/",
        "http:127.0.0.1",
        "127.0.0.1",
        "",
    ] {
        assert_eq!(Loopback::of_configured(url), Loopback::Refused, "{url}");
    }
}

#[test]
fn a_url_that_names_this_machine_leads_to_loopback_and_nowhere_else() {
    let check = |address: &str| policy(&[]).check(address.parse().unwrap(), Loopback::Configured);
    for here in ["127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(check(here), Ok(()), "{here}");
    }
    for elsewhere in ["0.0.0.0", "::", "10.0.0.1", "169.254.169.254", "1.1.1.1", "2a00::1"] {
        assert!(check(elsewhere).is_err(), "{elsewhere}");
    }
}

#[test]
fn a_refusal_names_the_line_that_would_allow_the_address() {
    let refusal =
        |address: &str| policy(&[]).check(address.parse().unwrap(), Loopback::Refused).unwrap_err();
    assert_eq!(
        refusal("::ffff:10.0.0.1").to_string(),
        "10.0.0.1 is not a public address; to allow it, write `networks = [\"10.0.0.1\"]` under \
         `[servers.s]`"
    );
    let named = AddressRefusal { name: Some("h.test".to_owned()), ..refusal("169.254.1.1") };
    assert_eq!(
        named.to_string(),
        "`h.test` resolves to 169.254.1.1, which is a link-local address; to allow it, write \
         `networks = [\"169.254.1.1\"]` under `[servers.s]`"
    );
    for address in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "2002:a9fe:a9fe::", "::", "fd00::1"]
    {
        let refusal = refusal(address);
        let (_, line) =
            refusal.to_string().split_once("[\"").map(|(a, b)| (a.len(), b.to_owned())).unwrap();
        let listed = line.split('"').next().unwrap();
        assert!(passes(&policy(&[listed]), address), "{refusal}");
    }
    let more = vec!["fd00::1".parse().unwrap()];
    let two = AddressRefusal { more, ..refusal("10.0.0.1") }.to_string();
    assert!(two.contains("`networks = [\"10.0.0.1\", \"fd00::1\"]`"), "{two}");
    let table = AddressRefusal { server: None, table: Some("model"), ..refusal("10.0.0.1") };
    assert!(table.to_string().ends_with("`networks = [\"10.0.0.1\"]` under `[model]`"), "{table}");
    let nobody = AddressRefusal { server: None, ..refusal("10.0.0.1") };
    assert!(nobody.to_string().ends_with("only public addresses are allowed here"));
    for (address, words) in [
        (
            "127.0.0.1",
            "127.0.0.1 is an address of this machine; write 127.0.0.1, [::1] or localhost",
        ),
        ("169.254.1.1", "169.254.1.1 is a link-local address; such addresses are not allowed here"),
    ] {
        let open = AddressPolicy { server: None, ..policy(&["0.0.0.0/0"]) };
        let told = open.check(address.parse().unwrap(), Loopback::Refused).unwrap_err();
        assert_eq!(told.to_string(), words);
        let told = AddressPolicy::default().check(told.address, Loopback::Refused).unwrap_err();
        assert!(told.to_string().ends_with("only public addresses are allowed here"), "{told}");
    }
}

#[test]
fn networks_are_read_and_shown_as_they_are_written() {
    for (text, shown) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.1", "10.0.0.1"),
        ("10.0.0.1/32", "10.0.0.1"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("fd00::/8", "fd00::/8"),
        ("::/0", "::/0"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ] {
        assert_eq!(text.parse::<Network>().unwrap().to_string(), shown);
    }
    for text in [
        "",
        "10",
        "10.0.0",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/+8",
        "10.0.0.0/-1",
        "10.0.0.0/8/8",
        " 10.0.0.1",
        "fd00::/129",
        "fe80::1%eth0",
        "[::1]",
        "localhost",
        "intranet.example",
        "010.0.0.1",
        "0x0a000001",
    ] {
        assert_eq!(text.parse::<Network>(), Err(BadNetwork::Shape), "{text}");
    }
    for (text, meant) in [("10.0.0.1/8", "10.0.0.0/8"), ("fd00::1/8", "fd00::/8")] {
        let error = text.parse::<Network>().unwrap_err().to_string();
        assert!(error.ends_with(meant), "{error}");
    }
}

#[test]
fn a_network_covers_what_lies_in_it() {
    let covers = |outer: &str, inner: &str| {
        outer.parse::<Network>().unwrap().covers(&inner.parse().unwrap())
    };
    assert!(covers("10.0.0.0/8", "10.0.0.0/8") && covers("10.0.0.0/8", "10.1.0.0/16"));
    assert!(!covers("10.1.0.0/16", "10.0.0.0/8") && !covers("10.0.0.0/8", "11.0.0.1"));
    assert!(!covers("::/0", "10.0.0.1") && !covers("0.0.0.0/0", "::1"));
}

#[test]
fn an_address_on_any_network_is_neither_the_link_nor_this_machine() {
    let policy = AddressPolicy::any_network();
    for address in ["10.0.0.1", "192.168.1.1", "fd00::1", "8.8.8.8", "2001:4860::1", "100.64.0.1"] {
        assert!(passes(&policy, address), "{address}");
    }
    for address in [
        "169.254.169.254",
        "169.254.170.2",
        "fe80::1",
        "2002:a9fe:a9fe::",
        "::ffff:169.254.169.254",
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "::1",
        "::",
    ] {
        assert!(!passes(&policy, address), "{address}");
    }
}

//! Holes 1: which addresses the real binary connects to, observed by listeners at these addresses.
//!
//! Each test runs itself again in a network of its own, where the loopback interface has private,
//! link-local and public addresses and names resolve as a hosts file says. So nothing leaves the
//! machine, and an attempt to connect is seen. Where no such network can be made, the tests fail.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "clippy exempts test functions, not their helpers"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use capstan_testkit::{Ended, World};
use serde_json::Value;

/// Set in the network of its own.
const INSIDE: &str = "CAPSTAN_TEST_NETWORK";

/// The addresses of the loopback interface there.
const ADDRESSES: [&str; 8] = [
    "10.0.0.1",
    "11.0.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.0.1",
    "192.168.7.7",
];

/// What names resolve to there.
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost ip6-loopback\n127.0.0.1 here.test\n\
    10.0.0.1 private.test mixed.test\n11.0.0.1 public.test mixed.test\n\
    169.254.169.254 metadata.test\n";

/// URLs that lead to an address that is not public, with the network that would allow it.
const REFUSED: [(&str, &str); 24] = [
    ("http://10.0.0.1:PORT/", "10.0.0.0/8"),
    ("http://0x0a000001:PORT/", "10.0.0.1"),
    ("http://user@10.0.0.1:PORT/", "10.0.0.1"),
    ("http://[::ffff:10.0.0.1]:PORT/", "10.0.0.1"),
    ("http://100.100.100.200:PORT/", "100.64.0.0/10"),
    ("http://168.63.129.16:PORT/", "168.63.129.16"),
    ("http://169.254.169.254:PORT/", "169.254.169.254"),
    ("http://2852039166:PORT/", "169.254.0.0/16"),
    ("http://[::ffff:a9fe:a9fe]:PORT/", "169.254.169.254"),
    ("http://172.16.0.1:PORT/", "172.16.0.0/12"),
    ("http://192.168.7.7:PORT/", "192.168.7.7"),
    ("http://3232235521:PORT/", "192.168.0.1"),
    ("http://0.0.0.0:PORT/", "0.0.0.0"),
    ("http://2130706433:PORT/", "127.0.0.1"),
    ("http://127.1:PORT/", "127.0.0.1"),
    ("http://127.0.0.1.:PORT/", "127.0.0.1"),
    ("http://%31%32%37.0.0.1:PORT/", "127.0.0.1"),
    ("http://127。0。0。1:PORT/", "127.0.0.1"),
    ("http://①②⑦.⓪.⓪.①:PORT/", "127.0.0.1"),
    ("http://LOCALHOST:PORT/", "127.0.0.0/8', '::1"),
    ("http://here.test:PORT/", "127.0.0.1"),
    ("http://private.test:PORT/", "10.0.0.1"),
    ("http://mixed.test:PORT/", "10.0.0.1"),
    ("http://metadata.test:PORT/", "169.254.169.254"),
];

/// Runs a test in a network of its own; `name` is the test's.
#[track_caller]
fn in_own_network(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_none() {
        let own = std::env::current_exe().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--mount"]).arg(own);
        let ended = command.args(["--exact", name, "--nocapture"]).env(INSIDE, "1").status();
        assert!(ended.unwrap().success(), "it failed in the network of its own");
        return;
    }
    run("ip", &["link", "set", "lo", "up"]);
    for address in ADDRESSES {
        run("ip", &["addr", "add", &format!("{address}/32"), "dev", "lo"]);
    }
    let hosts = tempfile::NamedTempFile::new().unwrap();
    fs::write(hosts.path(), HOSTS).unwrap();
    run("mount", &["--bind", hosts.path().to_str().unwrap(), "/etc/hosts"]);
    test();
}

#[track_caller]
fn run(program: &str, words: &[&str]) {
    assert!(Command::new(program).args(words).status().unwrap().success(), "{program} {words:?}");
}

/// Counts and closes connections at every address.
struct Listener {
    port: u16,
    accepting: Arc<Mutex<Accepting>>,
}

struct Accepting {
    listener: TcpListener,
    count: usize,
}

impl Listener {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = Arc::new(Mutex::new(Accepting { listener, count: 0 }));
        // Closes connections at once, so that no client waits for an answer.
        let shared = Arc::downgrade(&accepting);
        thread::spawn(move || {
            while let Some(accepting) = shared.upgrade() {
                accepting.lock().unwrap().accept();
                thread::sleep(Duration::from_millis(5));
            }
        });
        Self { port, accepting }
    }

    fn at(&self, url: &str) -> String {
        url.replace("PORT", &self.port.to_string())
    }

    /// The number of connections since the last call, by a process that has ended.
    fn connections(&self) -> usize {
        let mut accepting = self.accepting.lock().unwrap();
        accepting.accept();
        std::mem::take(&mut accepting.count)
    }
}

impl Accepting {
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok(_) => self.count += 1,
                Err(error) => return assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }
}

/// Lists the tools of a server with this entry.
fn tools(entry: &str) -> Ended {
    let world = World::new();
    world.write_user_config(&format!("[servers.s]\n{entry}\n"));
    world.capstan(["tools", "s", "--json"]).run()
}

/// The line of configuration that an error names.
fn named_line(ended: &Ended) -> String {
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let message = told.pointer("/error/message").unwrap().as_str().unwrap();
    message.split('`').find(|part| part.starts_with("networks = ")).unwrap().to_owned()
}

#[test]
fn a_refused_address_is_never_connected_to_and_the_named_line_allows_it() {
    in_own_network("a_refused_address_is_never_connected_to_and_the_named_line_allows_it", || {
        let listener = Listener::new();
        for (url, network) in REFUSED {
            let url = listener.at(url);
            for trust in ["untrusted", "sandboxed"] {
                let ended = tools(&format!("url = '{url}'\ntrust = '{trust}'"));
                assert_eq!(listener.connections(), 0, "{url}");
                assert_eq!(ended.status, Some(6), "{url}: {}", ended.stderr);
                assert!(ended.stdout.contains("policy_blocked"), "{url}: {}", ended.stdout);
                assert!(ended.stdout.contains("\"retryable\": false"), "{url}: {}", ended.stdout);
                assert!(ended.stdout.contains("networks = ["), "{url}: {}", ended.stdout);
                assert!(ended.stdout.contains("[servers.s]"), "{url}: {}", ended.stdout);
            }
            tools(&format!("url = '{url}'\nnetworks = ['192.168.99.0/24']"));
            assert_eq!(listener.connections(), 0, "{url}");
            tools(&format!("url = '{url}'\nnetworks = ['{network}']"));
            assert!(listener.connections() > 0, "{url}");
            tools(&format!("url = '{url}'\n{}", named_line(&tools(&format!("url = '{url}'")))));
            assert!(listener.connections() > 0, "{url}");
            tools(&format!("url = '{url}'\ntrust = 'trusted'"));
            assert!(listener.connections() > 0, "{url}");
        }
    });
}

#[test]
fn public_addresses_and_this_machine_in_so_many_words_are_connected_to() {
    in_own_network("public_addresses_and_this_machine_in_so_many_words_are_connected_to", || {
        let listener = Listener::new();
        for url in [
            "http://11.0.0.1:PORT/",
            "http://public.test:PORT/",
            "http://PUBLIC.test:PORT/",
            "http://127.0.0.1:PORT/",
            "http://localhost:PORT/",
            "https://localhost:PORT/",
        ] {
            tools(&format!("url = '{}'", listener.at(url)));
            assert!(listener.connections() > 0, "{url}");
        }
    });
}

#[test]
fn a_redirect_never_leads_to_another_server() {
    in_own_network("a_redirect_never_leads_to_another_server", || {
        let listener = Listener::new();
        for url in [
            "http://10.0.0.1:PORT/",
            "http://127.0.0.1:PORT/",
            "http://169.254.169.254:PORT/",
            "http://private.test:PORT/",
            "http://11.0.0.1:PORT/",
        ] {
            for (status, host) in [(307, "11.0.0.1"), (302, "127.0.0.1"), (308, "public.test")] {
                let from = redirecting(status, &listener.at(url));
                let ended = tools(&format!("url = 'http://{host}:{}/'", from.port()));
                assert_eq!(listener.connections(), 0, "{url}");
                assert_eq!(ended.status, Some(6), "{url}: {}", ended.stderr);
                assert!(ended.stdout.contains("policy_blocked"), "{url}: {}", ended.stdout);
            }
        }
    });
}

#[test]
fn documents_and_registries_are_held_to_the_same_rule() {
    in_own_network("documents_and_registries_are_held_to_the_same_rule", || {
        let listener = Listener::new();
        for url in ["http://10.0.0.1:PORT/", "http://metadata.test:PORT/", "http://0:PORT/"] {
            let url = listener.at(url);
            let ended = tools(&format!("openapi = '{url}api.json'"));
            assert_eq!((listener.connections(), ended.status), (0, Some(6)), "{}", ended.stdout);
            let world = World::new();
            let document = format!(
                r#"{{"openapi": "3.1.0", "servers": [{{"url": "{url}"}}],
                    "paths": {{"/a": {{"get": {{"operationId": "a"}}}}}}}}"#
            );
            let file = world.write("api.json", document);
            let entry = format!("[servers.s]\nopenapi = '{}'\n", file.display());
            world.write_user_config(&format!("{entry}[permissions]\nallow = ['*']\n"));
            let ended = world.capstan(["call", "s__a", "--json"]).run();
            assert_eq!((listener.connections(), ended.status), (0, Some(6)), "{}", ended.stdout);
        }
        for url in ["http://169.254.169.254:PORT/", "http://metadata.test:PORT/", "http://0:PORT/"]
        {
            let words = ["registry", "search", "x", "--registry", &listener.at(url)];
            let ended = World::new().capstan(words).run();
            assert_eq!((listener.connections(), ended.status), (0, Some(6)), "{}", ended.stderr);
        }
    });
}

#[test]
fn add_allows_the_literal_that_was_typed_and_asks_about_names() {
    in_own_network("add_allows_the_literal_that_was_typed_and_asks_about_names", || {
        for (words, networks) in [
            ("http://10.0.0.1/mcp", Some("networks = [\"10.0.0.1\"]")),
            ("http://0xc0a80707/mcp", Some("networks = [\"192.168.7.7\"]")),
            ("http://private.test/ --network 10.0.0.1", Some("networks = [\"10.0.0.1\"]")),
            ("http://mixed.test/ --network 10.0.0.0/8", Some("networks = [\"10.0.0.0/8\"]")),
            ("http://127.0.0.1:81/mcp", None),
            ("http://localhost/mcp", None),
            ("https://[::1]/mcp", None),
            ("https://11.0.0.1/mcp", None),
            ("https://public.test/mcp", None),
            ("https://nowhere.test/mcp", None),
        ] {
            let (ended, file) = add(words);
            assert_eq!(ended.status, Some(0), "{words}: {}", ended.stderr);
            assert_eq!(file.lines().find(|line| line.starts_with("networks")), networks, "{words}");
            let says_so = ended.stderr.contains("networks = [");
            assert_eq!(says_so, networks.is_some() && !words.contains("--net"), "{}", ended.stderr);
        }
        for (words, part) in [
            ("http://169.254.169.254/", "networks = [\"169.254.169.254\"]"),
            ("http://metadata.test/", "networks = [\"169.254.169.254\"]"),
            ("http://10.0.0.1/ --network 169.254.0.0/16", "into the file yourself"),
            ("http://LOCALHOST/", "write `127.0.0.1`"),
            ("http://127.1/", "write `127.0.0.1`"),
            ("http://0.0.0.0:3000/", "write `127.0.0.1`"),
            ("http://here.test/", "write `127.0.0.1`"),
            ("http://[::ffff:127.0.0.1]/", "write `127.0.0.1`"),
            ("http://private.test/", "--network 10.0.0.1"),
            ("http://mixed.test/", "--network 10.0.0.1"),
            ("http://private.test/ --network 10.0.0.2", "--network 10.0.0.1"),
        ] {
            let (ended, file) = add(words);
            assert_eq!(ended.status, Some(6), "{words}: {}", ended.stderr);
            assert!(ended.stderr.contains(part), "{words}: {}", ended.stderr);
            assert_eq!(file, "", "{words}");
        }
    });
}

/// Adds a server; the file afterwards.
fn add(words: &str) -> (Ended, String) {
    let world = World::new();
    let words = ["add", "--scope", "user", "s"].into_iter().chain(words.split(' '));
    let ended = world.capstan(words).run();
    let file = fs::read_to_string(world.config().join("capstan/config.toml"));
    (ended, file.unwrap_or_default())
}

/// A server that redirects every request.
fn redirecting(status: u16, to: &str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answer = format!(
        "HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The head comes in one piece, and the rest of the request does not matter.
            drop(stream.read(&mut [0; 4096]));
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    address
}

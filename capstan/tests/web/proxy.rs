//! Proxies that the environment names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use capstan_testkit::World;

use crate::peer::Peer;
use crate::stage::{ended, ends, legacy, says, world_at};
use crate::tls::private;

/// Leads every connection to one place, whatever was asked for, and writes down what that was.
pub(crate) struct Proxy {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

// === impl Proxy ===

impl Proxy {
    pub(crate) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let asked = Arc::clone(&all);
                thread::spawn(move || lead(client, target, &asked));
            }
        });
        Self { url, asked }
    }

    /// The first lines of the requests, without the version.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// One connection: `CONNECT` opens a tunnel, anything else is passed on as it is.
fn lead(client: TcpStream, target: SocketAddr, asked: &Mutex<Vec<String>>) {
    let mut server = TcpStream::connect(target).unwrap();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let shown = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    asked.lock().unwrap().push(shown);
    if line.starts_with("CONNECT ") {
        let mut rest = String::new();
        while reader.read_line(&mut rest).is_ok_and(|length| length > 2) {
            rest.clear();
        }
        (&client).write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    } else {
        server.write_all(line.as_bytes()).unwrap();
    }
    let back = server.try_clone().unwrap();
    thread::spawn(move || pump(back, client));
    pump(reader, server);
}

/// Carries everything from one side to the other, and then its end.
fn pump(mut from: impl Read, mut to: TcpStream) {
    // Either side may go away at any time.
    drop(std::io::copy(&mut from, &mut to));
    drop(to.shutdown(Shutdown::Both));
}

/// A name that no resolver knows, so that only a proxy can lead there.
const HOST: &str = "mcp.invalid";

#[test]
fn a_proxy_carries_what_goes_over_plain_http() {
    let peer = Peer::new(legacy);
    let proxy = Proxy::to(peer.address);
    let world = world_at(&format!("http://{HOST}/mcp"), "type = \"http\"");
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let before = proxy.asked().len();
        let called = ended(world.capstan(["call", "s__do"]).env(variable, &proxy.url));
        assert_eq!(ends(called, 0).stdout, "done\n", "{variable}");
        assert!(proxy.asked().len() > before, "{variable}");
    }
    assert!(proxy.asked().iter().all(|line| line.ends_with(" http://mcp.invalid/mcp")));
}

#[test]
fn a_proxy_opens_a_tunnel_for_https_and_sees_nothing_inside() {
    let world = World::new();
    let (peer, authority) = private(&world, HOST);
    let proxy = Proxy::to(peer.address);
    world.write_user_config(&format!("[servers.s]\nurl = \"https://{HOST}/mcp\"\n"));
    let call = world.capstan(["call", "s__do"]).env("HTTPS_PROXY", &proxy.url);
    let called = ended(call.env("SSL_CERT_FILE", authority));
    assert_eq!(ends(called, 0).stdout, "done\n");
    let asked = proxy.asked();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|line| *line == format!("CONNECT {HOST}:443")), "{asked:?}");
}

#[test]
fn what_is_exempt_and_what_is_here_goes_past_the_proxy() {
    let peer = Peer::new(legacy);
    let proxy = Proxy::to(peer.address);
    let world = world_at(&format!("http://{HOST}/mcp"), "type = \"http\"");
    let exempt = world.capstan(["call", "s__do"]).env("HTTP_PROXY", &proxy.url);
    let exempt = ends(ended(exempt.env("NO_PROXY", "other.example,mcp.invalid")), 7);
    says(&exempt.stderr, "no connection");

    let world = world_at(&format!("{}/mcp", peer.origin), "");
    let local = ended(world.capstan(["call", "s__do"]).env("HTTP_PROXY", &proxy.url));
    assert_eq!(ends(local, 0).stdout, "done\n");
    assert_eq!(proxy.asked(), [""; 0]);
}

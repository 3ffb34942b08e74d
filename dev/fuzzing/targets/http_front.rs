//! The gateway over HTTP: raw bytes on a connection, in two pieces. It answers or closes, and the next
//! connection is served.
#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use capstan_gateway::Gateway;
use capstan_gateway::http::{
    Anonymous, HttpSettings, McpEndpoints, NOT_FOUND, Routes, Site, bind, pages, serve,
};
use capstan_hub::HubBuilder;
use capstan_policy::PolicySource;
use capstan_testkit::fakes::{AuditTrail, TestClock};
use libfuzzer_sys::fuzz_target;

/// The longest wait for an answer; longer is a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// Starts a gateway without servers, once.
fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let policy = Arc::new(PolicySource::default().compile());
                let (log, clock) = (Arc::<AuditTrail>::default(), Arc::new(TestClock::default()));
                let hub = Arc::new(HubBuilder::new(policy, log, clock).build());
                let settings = HttpSettings::new("127.0.0.1:0".parse().expect("an address"));
                let bound = bind(settings).await.expect("a port");
                sender.send(bound.address()).expect("a receiver");
                let gateway = Gateway::watched(hub, None).expect("a gateway");
                let mcp = McpEndpoints::new(&gateway, bound.limits());
                let routes = pages::mount(mcp.mount(Routes::new(NOT_FOUND)), &gateway);
                let site = Site { mcp, routes, authenticator: Arc::new(Anonymous) };
                serve(bound, site, std::future::pending()).await;
            });
        });
        receiver.recv().expect("an address")
    })
}

/// Sends these pieces, closes our side and reads to the end.
fn exchange(pieces: [&[u8]; 2]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address()).expect("it accepts");
    stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
    for piece in pieces {
        // It may have refused the first piece and closed.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    drop(stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("it neither answers nor closes: {error}"),
    }
    answer
}

fuzz_target!(|data: (u16, &[u8])| {
    let (at, bytes) = data;
    let (first, second) = bytes.split_at(usize::from(at).min(bytes.len()));
    let answer = exchange([first, second]);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{answer:?}");
    let head = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", address());
    assert!(exchange([head.as_bytes(), b""]).starts_with(b"HTTP/1.1 200"));
});

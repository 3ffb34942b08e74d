//! The end of a client over stdio.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use capstan_gateway::View;
use capstan_gateway::stdio::serve;
use capstan_gateway::stdio::streams::Outlet;
use capstan_model::Caller;
use futures::FutureExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _, duplex};

use crate::harness::{Harness, Server};

/// A client that takes everything and counts how often it is checked for.
struct Reader(Arc<AtomicUsize>);

// === impl Reader ===

impl Outlet for Reader {
    fn is_read(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl AsyncWrite for Reader {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The checks begin when the client closes its side; those of the hours before are not made up for.
#[tokio::test(start_paused = true)]
async fn a_client_that_closes_its_side_after_hours_is_checked_a_few_times_a_second() {
    let harness = Harness::new(vec![Server::new("a").running(|_, _| pending().boxed())]);
    let checks = Arc::<AtomicUsize>::default();
    let (mut client, input) = duplex(64 * 1024);
    let output = Reader(Arc::clone(&checks));
    let served = tokio::spawn(serve(
        Arc::clone(&harness.gateway),
        (Arc::new(Caller::anonymous()), View::All),
        input,
        output,
        pending(),
        Duration::from_secs(10),
    ));
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        client.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_hours(3)).await;
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t","arguments":{}}}"#;
    client.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    drop(client);
    served.await.unwrap().unwrap();
    let checks = checks.load(Ordering::Relaxed);
    assert!((10..100).contains(&checks), "{checks}");
}

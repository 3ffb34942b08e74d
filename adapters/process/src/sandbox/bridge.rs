//! Carries connections of the sandbox to the proxy of the hub.
//!
//! The sandbox reaches a port of its own loopback, the keeper a socket of the hub. Nothing is read
//! here: the proxy decides.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use super::namespaces;

/// The number of connections at the same time.
const CONNECTIONS: usize = 64;

/// The port of a sandbox that leads to its proxy.
pub(crate) struct Bridge {
    listener: TcpListener,
    /// The address of the port.
    pub(crate) address: String,
    /// A handle of the proxy's socket, whose name is gone.
    socket: OwnedFd,
}

// === impl Bridge ===

impl Bridge {
    /// Listens in the namespace of this process, and takes the name of the proxy's socket away, so
    /// that no other program can open it.
    pub(crate) fn new(socket: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(socket, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        std::fs::remove_file(socket)?;
        // Its folder has nothing else in it, so that nothing is left if the hub is killed.
        drop(socket.parent().map(std::fs::remove_dir));
        let listener = namespaces::listen()?;
        let address = listener.local_addr()?.to_string();
        Ok(Self { listener, address, socket: handle })
    }

    /// The variables that lead programs to the port.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let proxy = format!("http://{}", self.address);
        let mut variables: Vec<_> =
            ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"]
                .map(|name| (name, proxy.clone()))
                .into();
        // Node reads the others only if it is told to.
        variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
        variables
    }

    /// Carries connections until the runtime ends.
    pub(crate) async fn run(self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let way = PathBuf::from(format!("/proc/self/fd/{}", self.socket.as_raw_fd()));
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let place = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
            // Errors of single connections, such as one that was reset before it was accepted.
            let Ok((mut inner, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let way = way.clone();
            tokio::spawn(async move {
                if let Ok(mut outer) = UnixStream::connect(way).await {
                    drop(tokio::io::copy_bidirectional(&mut inner, &mut outer).await);
                }
                drop(place);
            });
        }
    }
}

//! The sandboxes of servers: their proxies, by the one HTTP adapter, for the adapter of processes.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use capstan_app::Environment;
use capstan_app::server_settings::{SandboxFolders, sandbox_folders};
use capstan_config::{NetHost, Sandbox as Settings, Server, ServerEntry};
use capstan_http::{AllowedHost, SandboxProxy};
use capstan_model::{ServerName, Trust};
use capstan_process::sandbox::{Limits, OpenOutlet, Outlet, Sandbox};
use capstan_safety::address::Network;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

/// The proxies of one server, one for each process.
struct Proxies {
    server: ServerName,
    hosts: Vec<NetHost>,
    trust: Trust,
    networks: Vec<Network>,
}

/// A running proxy, with the folder of its socket.
struct Running {
    task: JoinHandle<()>,
    folder: PathBuf,
}

/// The sandbox of a server's entry.
pub(crate) fn sandbox(
    environment: &Environment,
    entry: &ServerEntry,
    server: &Server,
    settings: &Settings,
) -> Sandbox {
    let SandboxFolders { private, read, write } = sandbox_folders(environment, entry, settings);
    let proxies = Proxies {
        server: entry.name.clone(),
        hosts: settings.net.clone(),
        trust: server.trust,
        networks: server.networks.clone(),
    };
    Sandbox {
        private,
        home: environment.home.clone(),
        read,
        write,
        outlet: (!settings.net.is_empty()).then(|| Arc::new(proxies) as Arc<dyn Outlet>),
        limits: Limits {
            processes: settings.processes.map(u64::from),
            memory: settings.memory,
            open_files: settings.open_files.map(u64::from),
            file_size: settings.file_size,
        },
    }
}

impl Outlet for Proxies {
    fn open(&self) -> io::Result<OpenOutlet> {
        // The name of a socket must be short, and nobody else may open it.
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("capstan-{:016x}", u64::from_ne_bytes(random));
        let folder = std::env::temp_dir().join(name);
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&folder)?;
        let socket = folder.join("proxy");
        let listener = UnixListener::bind(&socket)?;
        let server = self.server.clone();
        let proxy = SandboxProxy {
            server: self.server.clone(),
            allowed: self.hosts.iter().map(allowed).collect(),
            trust: self.trust,
            networks: self.networks.clone(),
            refused: Arc::new(move |host, reason| {
                tracing::warn!(%server, host, reason, "a sandboxed server was refused a host");
            }),
        };
        let task = tokio::spawn(proxy.serve(listener));
        Ok(OpenOutlet { socket, guard: Box::new(Running { task, folder }) })
    }

    fn reaches_loopback(&self) -> bool {
        self.hosts.iter().any(|host| {
            let address = host.name.parse::<IpAddr>();
            host.name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        })
    }
}

fn allowed(host: &NetHost) -> AllowedHost {
    let NetHost { name, subdomains, port } = host.clone();
    AllowedHost { name, subdomains, port }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
        // The keeper has usually removed both by now.
        drop(std::fs::remove_file(self.folder.join("proxy")));
        drop(std::fs::remove_dir(&self.folder));
    }
}

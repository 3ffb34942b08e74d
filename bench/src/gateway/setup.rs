//! What one run of the load driver starts and measures, each gateway in a home of its own.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use capstan_testkit::{World, descendants, process};
use serde_json::{Map, Value, json};

use super::parse::Tables;
use crate::oneshot::built;

/// Where `./dev/bench` builds the load driver, below the root of the repository.
const TOOLS: &str = "target/mcpbench/release";

/// How long one run of the load driver may take.
const LIMIT: Duration = Duration::from_mins(20);

/// How often it is looked whether the run has ended; looking costs next to nothing.
const INTERVAL: Duration = Duration::from_millis(100);

/// The peers of one run.
pub(crate) struct Setup {
    /// Where the load driver itself runs.
    world: World,
    /// The gateways' homes.
    homes: Vec<World>,
    peers: Vec<Value>,
    /// The ports that were given out, held until the run begins so that no two are the same.
    held: Vec<TcpListener>,
}

/// A server behind a gateway.
pub(crate) enum Server {
    /// The echo server over stdio, with further arguments.
    Stdio(Vec<&'static str>),
    Http(SocketAddr),
}

/// How clients reach a gateway.
#[derive(Clone, Copy)]
pub(crate) enum Front {
    Http,
    Stdio,
}

/// The era of the protocol that clients speak.
#[derive(Clone, Copy)]
pub(crate) enum Era {
    /// 2025-11-25: a session, and no description in requests.
    Legacy,
    /// 2026-07-28: each request describes its client.
    Modern,
}

/// Whether the gateways' memory is watched during a run, which costs some CPU.
#[derive(Clone, Copy)]
pub(crate) enum Watch {
    Nothing,
    Memory,
}

/// What a run told.
pub(crate) struct Ran {
    pub(crate) tables: Tables,
    /// The most memory a gateway has had, in MiB; 0 when it was not watched.
    pub(crate) peak_mib: f64,
}

// === impl Setup ===

impl Setup {
    pub(crate) fn new() -> Self {
        Self { world: World::new(), homes: Vec::new(), peers: Vec::new(), held: Vec::new() }
    }

    /// Adds the echo server over HTTP, which is started first and not measured, and itself as
    /// `direct`, by which the others are judged.
    pub(crate) fn backend_and_direct(&mut self) -> anyhow::Result<SocketAddr> {
        let address = self.address()?;
        let command = echo_over_http(address)?;
        self.peers
            .push(json!({"name": "backend", "backend": true, "url": url(address), "cmd": command}));
        self.peers.push(json!({"name": "direct", "url": url(address)}));
        Ok(address)
    }

    /// Adds the echo server over HTTP as `direct`, measured itself.
    pub(crate) fn direct(&mut self, further: &[&str]) -> anyhow::Result<SocketAddr> {
        let address = self.address()?;
        let mut command = echo_over_http(address)?;
        command.extend(further.iter().map(|&word| word.to_owned()));
        self.peers.push(json!({"name": "direct", "url": url(address), "cmd": command}));
        Ok(address)
    }

    /// Adds a bare proxy with two threads.
    pub(crate) fn bare(&mut self, name: &str, server: &Server) -> anyhow::Result<()> {
        let address = self.address()?;
        let mut command = vec![tool("mcpbench-bare")?, "--listen".to_owned(), address.to_string()];
        command.extend(["--threads", "2"].map(str::to_owned));
        match server {
            Server::Http(to) => command.extend(["http".to_owned(), to.to_string()]),
            Server::Stdio(further) => {
                command.extend(["stdio", "--"].map(str::to_owned));
                command.extend(echo_over_stdio(further)?);
            }
        }
        self.peers.push(json!({"name": name, "url": url(address), "cmd": command}));
        Ok(())
    }

    /// Adds a gateway, with permissions and the audit log, in front of servers `s0`, `s1`, ….
    pub(crate) fn capstan(
        &mut self,
        name: &str,
        front: Front,
        servers: &[Server],
    ) -> anyhow::Result<()> {
        let home = World::new();
        home.write_user_config(&config(servers)?);
        let mut environment = Map::new();
        for (variable, value) in home.environment() {
            let value = value.into_string().ok().context("a path is not UTF-8")?;
            environment.insert(variable.to_owned(), value.into());
        }
        self.homes.push(home);
        let mut command = vec![text(&built("capstan")?)?, "serve".to_owned()];
        // The last one's tool: whoever waits for it waits for about all of them.
        let tool = format!("s{}__echo", servers.len().saturating_sub(1));
        let mut peer = json!({"name": name, "env": environment, "tool": tool});
        match front {
            Front::Http => {
                let address = self.address()?;
                command.extend(["--http".to_owned(), address.to_string()]);
                set(&mut peer, "url", url(address).into());
            }
            Front::Stdio => {}
        }
        set(&mut peer, "cmd", command.into());
        self.peers.push(peer);
        Ok(())
    }

    /// Lets clients of the peer that was added last speak this era.
    pub(crate) fn spoken(&mut self, era: Era) {
        let mode = match era {
            Era::Legacy => "session",
            Era::Modern => "stateless",
        };
        if let Some(peer) = self.peers.last_mut() {
            set(peer, "mode", mode.into());
        }
    }

    /// How many tools a complete list of the peer that was added last has.
    pub(crate) fn expect_tools(&mut self, tools: usize) {
        if let Some(peer) = self.peers.last_mut() {
            set(peer, "expect_tools", tools.into());
        }
    }

    /// Runs the load driver once: its command, then its options.
    pub(crate) fn run(mut self, words: &[&str], watch: Watch) -> anyhow::Result<Ran> {
        let peers = self.world.write("peers.json", serde_json::to_vec_pretty(&self.peers)?);
        let said = self.world.home().join("tables.md");
        let complained = self.world.home().join("complaints");
        let (command, options) = words.split_first().context("no command")?;
        let mut driver =
            self.world.program(tool("mcpbench")?, ["--logs", "logs", command]).into_command();
        driver.arg(peers).args(options);
        driver.stdout(File::create(&said)?).stderr(File::create(&complained)?);
        self.held.clear();
        let mut child = driver.spawn().context("cannot start the load driver")?;
        let (pid, capstan, mut peak_mib) = (child.id(), built("capstan")?, 0.0_f64);
        let status = wait(&mut child, || match watch {
            Watch::Nothing => {}
            Watch::Memory => peak_mib = peak_mib.max(peak_below(pid, &capstan)),
        })?;
        if !status.success() {
            let complaints = fs::read_to_string(&complained).unwrap_or_default();
            bail!("`mcpbench {command}` ended with {status}: {}", complaints.trim());
        }
        Ok(Ran { tables: Tables::parse(&fs::read_to_string(&said)?), peak_mib })
    }

    fn address(&mut self) -> anyhow::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let address = listener.local_addr()?;
        self.held.push(listener);
        Ok(address)
    }
}

/// The configuration of a gateway. All servers are started at once and stay.
fn config(servers: &[Server]) -> anyhow::Result<String> {
    let mut config = "[permissions]\nallow = [\"*\"]\n\n[audit]\nenabled = true\n".to_owned();
    for (number, server) in servers.iter().enumerate() {
        write!(config, "\n[servers.s{number}]\nstart = \"eager\"\nidle_timeout = \"never\"\n")?;
        match server {
            Server::Http(address) => writeln!(config, "url = \"{}\"", url(*address))?,
            Server::Stdio(further) => {
                let words = echo_over_stdio(further)?;
                let (program, arguments) = words.split_first().context("no program")?;
                // What JSON writes, TOML reads.
                writeln!(config, "command = {}", serde_json::to_string(program)?)?;
                writeln!(config, "args = {}", serde_json::to_string(arguments)?)?;
            }
        }
    }
    Ok(config)
}

fn echo_over_stdio(further: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut command = vec![tool("mcpbench-echo")?];
    command.extend(["--engine", "raw"].iter().chain(further).map(|&word| word.to_owned()));
    Ok(command)
}

fn echo_over_http(address: SocketAddr) -> anyhow::Result<Vec<String>> {
    let mut command = echo_over_stdio(&["--http"])?;
    command.push(address.to_string());
    Ok(command)
}

/// The path of a program of the load driver.
fn tool(name: &str) -> anyhow::Result<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TOOLS);
    let path = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    let path = path.canonicalize();
    text(&path.with_context(|| format!("`{name}` is not built; `./dev/bench gateway` does that"))?)
}

fn text(path: &Path) -> anyhow::Result<String> {
    path.to_str().map(str::to_owned).context("a path is not UTF-8")
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}

fn set(peer: &mut Value, key: &str, value: Value) {
    if let Some(members) = peer.as_object_mut() {
        members.insert(key.to_owned(), value);
    }
}

/// Waits for the end of the run, looking in between; past the limit everything below it is ended.
fn wait(child: &mut Child, mut look: impl FnMut()) -> anyhow::Result<ExitStatus> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= end {
            // Its peers are in process groups of their own.
            let below = descendants(child.id());
            child.kill()?;
            child.wait()?;
            let pids = below.iter().map(u32::to_string);
            process::command("kill").args(pids).status().context("cannot end the peers")?;
            bail!("the load driver has not ended within {LIMIT:?}");
        }
        look();
        thread::sleep(INTERVAL);
    }
}

/// The most memory, in MiB, that a gateway below a process has had since it began.
fn peak_below(pid: u32, capstan: &Path) -> f64 {
    let below = descendants(pid).into_iter();
    let gateways = below.filter(|pid| {
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == capstan)
    });
    let peaks = gateways
        .filter_map(|pid| peak_mib(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?));
    peaks.fold(0.0, f64::max)
}

/// The high-water mark in what the system says of a process.
fn peak_mib(status: &str) -> Option<f64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = kib.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_in_mib() {
        let status = "Name:\tcapstan\nVmHWM:\t   10240 kB\nVmRSS:\t    9216 kB\n";
        assert_eq!(peak_mib(status), Some(10.0));
        assert_eq!(peak_mib("Name:\tcapstan\nVmRSS:\t 9216 kB\n"), None);
    }

    #[test]
    fn a_gateway_is_measured_with_permissions_and_the_audit_log() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 7200));
        let config = config(&[Server::Http(address)]).unwrap();
        for expected in [
            "[permissions]\nallow = [\"*\"]\n",
            "[audit]\nenabled = true\n",
            "[servers.s0]\n",
            "url = \"http://127.0.0.1:7200/mcp\"\n",
        ] {
            assert!(config.contains(expected), "{config}");
        }
    }

    #[test]
    fn no_two_peers_get_the_same_port() {
        let mut setup = Setup::new();
        let mut addresses: Vec<_> = (0..20).map(|_| setup.address().unwrap()).collect();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), 20);
    }
}

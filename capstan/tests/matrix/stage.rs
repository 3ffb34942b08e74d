//! What the matrix is played on: a server of each kind, and gateways in front of them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use capstan_testkit::process::command;
use capstan_testkit::{World, binary};
use serde_json::Value;

use crate::client::Client;
use crate::kinds::{ClientKind, SERVERS, ServerKind, Transport};
use crate::wire::{Place, Wire};
use crate::{Cell, Outcome};

/// Rules that let everything run.
const ALL: &str = "[permissions]\nallow = [\"*\"]\n\n";

/// Servers and a gateway that run. They end with the test.
pub(crate) struct Stage {
    world: World,
    /// Where the gateway listens.
    address: String,
    children: Vec<Child>,
}

// === impl Stage ===

impl Stage {
    /// Starts the servers that are reached over the network, and a gateway for all of them.
    pub(crate) fn set() -> Self {
        let mut stage = Self { world: World::new(), address: String::new(), children: Vec::new() };
        let mut all = ALL.to_owned();
        for server in &SERVERS {
            let entry = stage.entry(server);
            // A client over stdio has a gateway of its own, with one server.
            stage.world.write(format!("project/{}.toml", server.name), format!("{ALL}{entry}"));
            all.push_str(&entry);
        }
        stage.world.write("project/all.toml", all);
        let gateway = stage.world.capstan(["serve", "--http", ":0", "--config", "all.toml"]);
        stage.address = stage.start(gateway.into_command());
        stage
    }

    /// A client of the gateway that is to use this server.
    pub(crate) fn cell(
        &self,
        kind: &'static ClientKind,
        server: &'static ServerKind,
    ) -> Outcome<Cell> {
        let place = |page: &str| Place {
            address: self.address.clone(),
            path: format!("/servers/{}/{page}", server.name),
        };
        let client = match kind.transport {
            Transport::Stdio => {
                let config = format!("{}.toml", server.name);
                let gateway = self.world.capstan(["serve", "--config", &config]).into_command();
                let prefix = format!("{}__", server.name);
                Client::connect(kind, prefix, |heard| Wire::stdio(gateway, heard))
            }
            Transport::Sse => {
                Client::connect(kind, String::new(), |heard| Wire::sse(place("sse"), heard))
            }
            Transport::Http => Client::connect(kind, String::new(), |_| {
                Ok(if kind.is_modern() {
                    Wire::modern(place("mcp"))
                } else {
                    Wire::session(place("mcp"), kind.revision)
                })
            }),
        };
        let tag = format!("{} {}", kind.name, server.name);
        Ok(Cell { client: client?, revision: server.revision_for(kind), tag })
    }

    /// The configuration of a server, which is started unless the gateway is to start it.
    fn entry(&mut self, server: &ServerKind) -> String {
        let program = binary("capstan-conformance-server");
        let name = server.name;
        if server.transport == Transport::Stdio {
            let program = Value::from(program.to_string_lossy());
            let options = Value::from(server.options());
            return format!("[servers.{name}]\ncommand = {program}\nargs = {options}\n\n");
        }
        let mut fixture = command(program);
        fixture.args(server.options());
        let address = self.start(fixture);
        let (kind, page) = match server.transport {
            Transport::Sse => ("sse", "sse"),
            Transport::Http | Transport::Stdio => ("http", "mcp"),
        };
        format!("[servers.{name}]\ntype = \"{kind}\"\nurl = \"http://{address}/{page}\"\n\n")
    }

    /// Starts what says where it listens: the address.
    fn start(&mut self, mut command: Command) -> String {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        self.children.push(child);
        let said = lines.by_ref().map_while(Result::ok);
        let line = { said }.find(|line| line.starts_with("listening on ")).unwrap();
        // Whatever else it says, it must not wait for somebody to read it.
        thread::spawn(move || lines.for_each(drop));
        let address = line.strip_prefix("listening on http://").unwrap();
        address.split('/').next().unwrap().to_owned()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

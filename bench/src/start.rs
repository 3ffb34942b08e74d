//! `./dev/bench start`: the first `tools/list` of a gateway whose many servers are remembered, beside
//! that of a gateway without any, and its memory at rest; and commands that list servers that were
//! seen before.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use capstan_testkit::{World, descendants, wait_until};
use serde::Serialize;

use crate::oneshot::{built, median};
use crate::reading::{self, ReadingCommand};
use crate::table::Table;

/// Servers of somebody who has many.
const SERVERS: usize = 50;

/// Tools of each of them.
const TOOLS: usize = 18;

/// How often each gateway is started, in turns.
const RUNS: u32 = 31;

/// The first list should take at most so many times that of a gateway without servers.
const MAX_RATIO: f64 = 3.0;

/// Memory at rest should be at most this, in MiB.
const MAX_MEMORY: f64 = 20.0;

/// How long a gateway is left alone before its memory counts.
const REST: Duration = Duration::from_secs(3);

/// How long the servers may take to be known.
const LIMIT: Duration = Duration::from_mins(2);

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    servers: usize,
    runs: u32,
    with_servers_ms: f64,
    without_ms: f64,
    ratio: f64,
    max_ratio: f64,
    memory_mib: f64,
    memory_without_mib: f64,
    max_memory_mib: f64,
    /// Processes below the gateway after the lists.
    processes: usize,
    /// Commands that list servers.
    commands: Vec<ReadingCommand>,
    met: bool,
}

/// A gateway on our streams. It ends with this.
struct Gateway {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

// === impl Report ===

impl Report {
    pub(crate) fn measure() -> anyhow::Result<Self> {
        let (many, none) = (World::new(), World::new());
        many.write_user_config(&config(SERVERS)?);
        none.write_user_config("");
        learn(&many)?;
        let (mut with, mut without) = (Vec::new(), Vec::new());
        // Once each without counting, then in turns, so that whatever else the machine does meets
        // both alike.
        for run in 0..=RUNS {
            let (ours, empty) = (first_list(&many, SERVERS)?.0, first_list(&none, 0)?.0);
            if run > 0 {
                with.push(ours);
                without.push(empty);
            }
        }
        let (_, gateway) = first_list(&many, SERVERS)?;
        let (_, other) = first_list(&none, 0)?;
        std::thread::sleep(REST);
        let processes = descendants(gateway.child.id()).len();
        let (memory, memory_without) = (gateway.memory()?, other.memory()?);
        let (with, without) = (median(with), median(without));
        let ratio = with / without;
        let commands = reading::measure()?;
        let all_met = commands.iter().all(|command| command.met);
        Ok(Self {
            servers: SERVERS,
            runs: RUNS,
            with_servers_ms: with,
            without_ms: without,
            ratio,
            max_ratio: MAX_RATIO,
            memory_mib: memory,
            memory_without_mib: memory_without,
            max_memory_mib: MAX_MEMORY,
            processes,
            commands,
            met: ratio <= MAX_RATIO && memory <= MAX_MEMORY && processes == 0 && all_met,
        })
    }

    pub(crate) fn print_json(&self) -> anyhow::Result<ExitCode> {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(self)?)?;
        Ok(ExitCode::SUCCESS)
    }

    pub(crate) fn print_table(&self) -> anyhow::Result<ExitCode> {
        let number = |number: f64| format!("{number:.1}");
        let heading = format!("with {SERVERS} servers");
        let mut table = Table::new(["what", &heading, "with none", "ratio", "goal"]);
        table.row([
            "start to first tools/list, ms".to_owned(),
            number(self.with_servers_ms),
            number(self.without_ms),
            format!("{:.2}", self.ratio),
            format!("≤ {MAX_RATIO}"),
        ]);
        table.row([
            "memory at rest, MiB".to_owned(),
            number(self.memory_mib),
            number(self.memory_without_mib),
            String::new(),
            format!("≤ {MAX_MEMORY}"),
        ]);
        table.row([
            "processes started".to_owned(),
            self.processes.to_string(),
            String::new(),
            String::new(),
            "0".to_owned(),
        ]);
        write!(io::stdout(), "{table}")?;
        let count = |count: Option<f64>| count.map_or_else(|| "-".to_owned(), number);
        let mut table = Table::new(["command", "ms", "--version, ms", "ratio", "goal"]);
        for command in &self.commands {
            let name = format!("{} with {} servers", command.command, command.servers);
            table.row([
                name.clone(),
                number(command.command_ms),
                number(command.version_ms),
                format!("{:.2}", command.ratio),
                format!("≤ {}", command.max_ratio),
            ]);
            table.row([
                format!("{name}, million instructions"),
                count(command.instructions_m),
                count(command.version_instructions_m),
                String::new(),
                String::new(),
            ]);
        }
        write!(io::stdout(), "{table}")?;
        if !self.met {
            writeln!(io::stdout(), "a goal is missed")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl Gateway ===

impl Gateway {
    fn start(world: &World) -> anyhow::Result<Self> {
        let mut command = world.program(built("capstan")?, ["serve"]).into_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start the gateway")?;
        let stdin = child.stdin.take().context("no stdin")?;
        let stdout = BufReader::new(child.stdout.take().context("no stdout")?);
        Ok(Self { child, stdin, stdout })
    }

    fn send(&mut self, message: &str) -> anyhow::Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes()).context("the gateway is gone")
    }

    /// The answer to the request with this id, which is written as we wrote it.
    fn answer(&mut self, id: u32) -> anyhow::Result<String> {
        let mark = format!("\"id\":{id},");
        loop {
            let mut line = String::new();
            ensure!(self.stdout.read_line(&mut line)? > 0, "the gateway has ended");
            if line.contains(&mark) {
                return Ok(line);
            }
        }
    }

    fn tools(&mut self, id: u32) -> anyhow::Result<usize> {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#))?;
        Ok(self.answer(id)?.matches("\"inputSchema\"").count())
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
        let hello =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        self.send(&hello)?;
        self.answer(1)?;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
    }

    /// Its private memory (`RssAnon` + `RssShmem`), in MiB.
    fn memory(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kib = |name: &str| -> anyhow::Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            Ok(line.unwrap_or_default().trim().trim_end_matches("kB").trim().parse()?)
        };
        Ok((kib("RssAnon:")? + kib("RssShmem:")?) / 1024.0)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn config(servers: usize) -> anyhow::Result<String> {
    let fixture = built("capstan-fixture")?;
    let program = serde_json::to_string(fixture.to_str().context("a path is not UTF-8")?)?;
    let mut config = String::new();
    for number in 0..servers {
        writeln!(config, "[servers.s{number}]\ncommand = {program}\n")?;
    }
    Ok(config)
}

/// Runs a gateway until what all servers offer is remembered.
fn learn(world: &World) -> anyhow::Result<()> {
    let mut gateway = Gateway::start(world)?;
    gateway.greet()?;
    let mut id = 2;
    let all = || {
        id += 1;
        gateway.tools(id).is_ok_and(|tools| tools == SERVERS * TOOLS)
    };
    ensure!(wait_until(all, LIMIT), "the servers do not list all that they have");
    let whole = || {
        let files = fs::read_dir(world.cache().join("capstan/manifests")).into_iter().flatten();
        let texts = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.filter(|text| text.contains("\"resourceTemplates\":")).count() == SERVERS
    };
    ensure!(wait_until(whole, LIMIT), "not all servers are remembered");
    Ok(())
}

/// Starts a gateway and asks for its tools: how long that takes, and the gateway.
fn first_list(world: &World, servers: usize) -> anyhow::Result<(Duration, Gateway)> {
    let begun = Instant::now();
    let mut gateway = Gateway::start(world)?;
    gateway.greet()?;
    let tools = gateway.tools(2)?;
    let took = begun.elapsed();
    ensure!(tools == servers * TOOLS, "{tools} tools were listed");
    Ok((took, gateway))
}

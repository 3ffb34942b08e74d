//! `./dev/bench life`: what one server that exits again and again does to the others behind the same
//! gateway, and how long it takes until a server that was killed is noticed and back.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use capstan_testkit::{World, wait_until};
use serde::Serialize;

use crate::oneshot::median;
use crate::peer::Gateway;
use crate::table::Table;

/// Servers behind the gateway; the last one is the one that exits.
const SERVERS: usize = 50;

/// Clients that call the others, one call after the other.
const CLIENTS: usize = 4;

/// Windows of each kind, in turns, so that whatever else the machine does meets both alike.
const WINDOWS: usize = 7;

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(4);

/// How often the one exits.
const EVERY: Duration = Duration::from_secs(1);

/// Servers that are killed, each once.
const KILLED: usize = 20;

/// How often it is looked whether that is noticed.
const LOOK: Duration = Duration::from_millis(2);

/// The slowest calls to the others should take at most so many times as long.
const MAX_RATIO: f64 = 1.2;

/// The death of a server should be noticed within so many milliseconds.
const MAX_NOTICED: f64 = 1000.0;

/// How long the servers may take to be there.
const LIMIT: Duration = Duration::from_mins(2);

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    servers: usize,
    windows: usize,
    calls: usize,
    exits: usize,
    quiet_p99_ms: f64,
    flapping_p99_ms: f64,
    ratio: f64,
    max_ratio: f64,
    killed: usize,
    noticed_ms: f64,
    noticed_at_most_ms: f64,
    max_noticed_ms: f64,
    back_ms: f64,
    back_at_most_ms: f64,
    met: bool,
}

/// What happened in one window.
struct Window {
    p99: Duration,
    calls: usize,
    exits: usize,
}

// === impl Report ===

impl Report {
    pub(crate) fn measure() -> anyhow::Result<Self> {
        let world = World::new();
        let gateway = Gateway::start(&world, SERVERS)?;
        let mut client = gateway.client()?;
        for number in 0..SERVERS {
            let tool = format!("s{number}__echo");
            let there = || client.works(&tool).is_ok_and(|works| works);
            ensure!(wait_until(there, LIMIT), "`{tool}` cannot be called");
        }
        let (mut quiet, mut flapping) = (Vec::new(), Vec::new());
        let (mut calls, mut exits) = (0, 0);
        for window in 0..=WINDOWS {
            for (one, flaps) in [(&mut quiet, false), (&mut flapping, true)] {
                let seen = if flaps { Window::flapping(&gateway) } else { Window::quiet(&gateway) };
                let seen = seen?;
                // The first of each is not counted.
                if window > 0 {
                    one.push(seen.p99);
                    calls += seen.calls;
                    exits += seen.exits;
                }
            }
        }
        let (noticed, back) = deaths(&gateway)?;
        let most = |times: &[Duration]| {
            times.iter().max().map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
        };
        let (noticed_at_most_ms, back_at_most_ms) = (most(&noticed), most(&back));
        let (quiet_p99_ms, flapping_p99_ms) = (median(quiet), median(flapping));
        let ratio = flapping_p99_ms / quiet_p99_ms;
        Ok(Self {
            servers: SERVERS,
            windows: WINDOWS,
            calls,
            exits,
            quiet_p99_ms,
            flapping_p99_ms,
            ratio,
            max_ratio: MAX_RATIO,
            killed: KILLED,
            noticed_ms: median(noticed),
            noticed_at_most_ms,
            max_noticed_ms: MAX_NOTICED,
            back_ms: median(back),
            back_at_most_ms,
            met: ratio <= MAX_RATIO && noticed_at_most_ms <= MAX_NOTICED,
        })
    }

    pub(crate) fn print_json(&self) -> anyhow::Result<ExitCode> {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(self)?)?;
        Ok(ExitCode::SUCCESS)
    }

    pub(crate) fn print_table(&self) -> anyhow::Result<ExitCode> {
        let number = |number: f64| format!("{number:.2}");
        let mut table = Table::new(["calls to the others", "one exits", "quiet", "ratio", "goal"]);
        table.row([
            format!("p99 of {} calls, ms", self.calls),
            number(self.flapping_p99_ms),
            number(self.quiet_p99_ms),
            number(self.ratio),
            format!("≤ {MAX_RATIO}"),
        ]);
        let mut killed = Table::new(["after a server is killed", "median", "at most", "goal"]);
        killed.row([
            "noticed after, ms".to_owned(),
            number(self.noticed_ms),
            number(self.noticed_at_most_ms),
            format!("≤ {MAX_NOTICED}"),
        ]);
        killed.row([
            "next call answered after, ms".to_owned(),
            number(self.back_ms),
            number(self.back_at_most_ms),
            String::new(),
        ]);
        let (servers, exits) = (self.servers, self.exits);
        write!(io::stdout(), "{servers} servers, {exits} exits\n{table}\n{killed}")?;
        if !self.met {
            writeln!(io::stdout(), "a goal is missed")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl Window ===

impl Window {
    /// Calls to all but the last server.
    fn quiet(gateway: &Gateway) -> anyhow::Result<Self> {
        let end = Instant::now() + WINDOW;
        let times: anyhow::Result<Vec<Vec<Duration>>> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| scope.spawn(move || load(gateway, number, end)))
                .collect();
            clients.into_iter().map(|one| one.join().ok().context("a client failed")?).collect()
        });
        let mut times = times?.concat();
        times.sort();
        let p99 = *times.get(times.len() * 99 / 100).context("no call was made")?;
        Ok(Self { p99, calls: times.len(), exits: 0 })
    }

    /// The same while the last one exits again and again.
    fn flapping(gateway: &Gateway) -> anyhow::Result<Self> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let flapping = scope.spawn(|| flap(gateway, &over));
            let seen = Self::quiet(gateway);
            over.store(true, Ordering::Relaxed);
            let exits = flapping.join().ok().context("the one that exits failed")??;
            Ok(Self { exits, ..seen? })
        })
    }
}

/// Calls one server after the other until the time is up: how long each call took.
fn load(gateway: &Gateway, first: usize, end: Instant) -> anyhow::Result<Vec<Duration>> {
    let mut client = gateway.client()?;
    let mut times = Vec::new();
    let mut number = first;
    while Instant::now() < end {
        let tool = format!("s{}__echo", number % (SERVERS - 1));
        number += CLIENTS;
        let begun = Instant::now();
        ensure!(client.works(&tool)?, "`{tool}` failed");
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Starts the last server and has it exit, every second: how often it did.
fn flap(gateway: &Gateway, over: &AtomicBool) -> anyhow::Result<usize> {
    let mut client = gateway.client()?;
    let (echo, crash) = (format!("s{}__echo", SERVERS - 1), format!("s{}__crash", SERVERS - 1));
    let mut exits = 0;
    while !over.load(Ordering::Relaxed) {
        let next = Instant::now() + EVERY;
        if client.works(&echo)? {
            client.call(&crash)?;
            exits += 1;
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(exits)
}

/// Kills servers, each once: how long it takes until that is seen, and until a call works again.
fn deaths(gateway: &Gateway) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let mut client = gateway.client()?;
    let (mut noticed, mut back) = (Vec::new(), Vec::new());
    for number in 0..KILLED {
        let server = format!("s{number}");
        gateway.kill(&server)?;
        let begun = Instant::now();
        while !client.is_in_state(&server, "failed")? {
            ensure!(begun.elapsed() < LIMIT, "nobody notices that `{server}` is gone");
            thread::sleep(LOOK);
        }
        noticed.push(begun.elapsed());
        ensure!(client.works(&format!("{server}__echo"))?, "`{server}` does not come back");
        back.push(begun.elapsed());
    }
    Ok((noticed, back))
}

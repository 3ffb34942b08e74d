//! Commands that list many servers that were seen before, beside `capstan --version`.

use std::ffi::OsString;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use capstan_testkit::World;
use serde::Serialize;

use crate::count::{self, COUNTING};
use crate::oneshot::{built, median};
use crate::start::config;

/// Servers that were seen.
const SERVERS: usize = 20;

/// How often each command runs, in turns.
const RUNS: u32 = 101;

/// A list should take at most so many times as long as printing the version.
const MAX_RATIO: f64 = 3.0;

/// How long the state rests before the commands run. The copy for lists is made of a state that has
/// not changed for two seconds.
const REST: Duration = Duration::from_secs(3);

/// The measurements of one command.
#[derive(Serialize)]
pub(crate) struct ReadingCommand {
    pub(crate) command: &'static str,
    pub(crate) servers: usize,
    pub(crate) runs: u32,
    pub(crate) command_ms: f64,
    pub(crate) version_ms: f64,
    pub(crate) ratio: f64,
    pub(crate) max_ratio: f64,
    /// Millions of instructions; `None` without valgrind.
    pub(crate) instructions_m: Option<f64>,
    pub(crate) version_instructions_m: Option<f64>,
    pub(crate) met: bool,
}

/// Measures every such command.
pub(crate) fn measure() -> anyhow::Result<Vec<ReadingCommand>> {
    let world = World::new();
    world.write_user_config(&config(SERVERS)?);
    let learned = world.program(built("capstan")?, ["list", "--wait", "60s"]).run();
    ensure!(learned.status == Some(0), "the servers cannot be listed: {}", learned.stderr);
    thread::sleep(REST);
    ["list", "tools"].into_iter().map(|command| ReadingCommand::measure(&world, command)).collect()
}

// === impl ReadingCommand ===

impl ReadingCommand {
    fn measure(world: &World, command: &'static str) -> anyhow::Result<Self> {
        let run =
            |word| Ok::<_, anyhow::Error>(world.program(built("capstan")?, [word]).into_command());
        let (mut list, mut version) = (run(command)?, run("--version")?);
        let (mut of_list, mut of_version) = (Vec::new(), Vec::new());
        timed(&mut list)?;
        timed(&mut version)?;
        // In turns, so that whatever else the machine does meets both alike.
        for _ in 0..RUNS {
            of_list.push(timed(&mut list)?);
            of_version.push(timed(&mut version)?);
        }
        let (command_ms, version_ms) = (median(of_list), median(of_version));
        let ratio = command_ms / version_ms;
        let (max_ratio, met) = (MAX_RATIO, ratio <= MAX_RATIO);
        Ok(Self {
            command,
            servers: SERVERS,
            runs: RUNS,
            command_ms,
            version_ms,
            ratio,
            max_ratio,
            instructions_m: millions(world, command)?,
            version_instructions_m: millions(world, "--version")?,
            met,
        })
    }
}

/// Millions of instructions of a run; `None` without valgrind.
#[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 instructions")]
fn millions(world: &World, command: &str) -> anyhow::Result<Option<f64>> {
    let mut words: Vec<OsString> = COUNTING.iter().map(OsString::from).collect();
    words.extend([built("capstan")?.into_os_string(), command.into()]);
    let counted = count::counted(&mut world.program("valgrind", words).into_command());
    Ok(counted.ok().map(|count| count as f64 / 1e6))
}

/// How long a run takes, which must go well.
fn timed(command: &mut Command) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let output = command.output()?;
    let took = begun.elapsed();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(took)
}

//! One call from the command line: `capstan call` against the smallest possible client, each of
//! which starts the server, calls it and ends it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use capstan_testkit::{World, process};
use serde::Serialize;

/// The server by which people try out their clients, below the root of the repository.
const EVERYTHING: &str =
    ".dev/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// What was measured with one server.
#[derive(Serialize)]
pub(crate) struct OneShot {
    pub(crate) server: &'static str,
    /// How often each of the two ran, in turns.
    pub(crate) runs: u32,
    pub(crate) capstan_ms: f64,
    pub(crate) smallest_client_ms: f64,
    pub(crate) ratio: f64,
    /// The ratio should not be above this.
    pub(crate) goal: f64,
    pub(crate) met: bool,
}

/// A server, and what calling it should cost at most.
struct Case {
    name: &'static str,
    server: Vec<OsString>,
    /// How often each of the two runs, after one run that is not counted: the shorter a run, the
    /// more the rest of the machine disturbs it.
    runs: u32,
    goal: f64,
}

/// Measures with every server.
pub(crate) fn measure() -> anyhow::Result<Vec<OneShot>> {
    let everything = everything()?.into_os_string();
    let cases = [
        Case {
            name: "everything",
            server: vec!["node".into(), everything, "stdio".into()],
            runs: 21,
            goal: 1.3,
        },
        Case {
            name: "instant",
            server: vec![built("capstan-fixture")?.into()],
            runs: 101,
            goal: 4.0,
        },
    ];
    cases.iter().map(Case::measure).collect()
}

// === impl OneShot ===

impl OneShot {
    fn new(case: &Case, capstan_ms: f64, smallest_client_ms: f64) -> Self {
        let Case { name: server, runs, goal, .. } = *case;
        let ratio = capstan_ms / smallest_client_ms;
        Self { server, runs, capstan_ms, smallest_client_ms, ratio, goal, met: ratio <= goal }
    }
}

// === impl Case ===

impl Case {
    fn measure(&self) -> anyhow::Result<OneShot> {
        let world = World::new();
        world.write_user_config(&self.config()?);
        let tool = format!("{}__echo", self.name);
        let mut capstan =
            world.program(built("capstan")?, ["call", &tool, "message=hi"]).into_command();
        let words = ["echo", r#"{"message":"hi"}"#, "--"].map(OsString::from);
        let words = words.into_iter().chain(self.server.iter().cloned());
        let mut thin = world.program(built("capstan-thinclient")?, words).into_command();

        let (mut of_capstan, mut of_thin) = (Vec::new(), Vec::new());
        timed(&mut capstan)?;
        timed(&mut thin)?;
        // In turns, so that whatever else the machine does meets both alike.
        for _ in 0..self.runs {
            of_capstan.push(timed(&mut capstan)?);
            of_thin.push(timed(&mut thin)?);
        }
        Ok(OneShot::new(self, median(of_capstan), median(of_thin)))
    }

    /// A user's configuration with this server, whose tool may be called unasked.
    fn config(&self) -> anyhow::Result<String> {
        let mut words = Vec::new();
        for word in &self.server {
            let word = word.to_str().context("a path is not UTF-8")?;
            // What JSON writes, TOML reads.
            words.push(serde_json::to_string(word)?);
        }
        let (program, arguments) = words.split_first().context("no program")?;
        let (name, arguments) = (self.name, arguments.join(", "));
        Ok(format!(
            "[servers.{name}]\ncommand = {program}\nargs = [{arguments}]\n\n\
             [servers.{name}.permissions]\nallow = [\"echo\"]\n"
        ))
    }
}

/// A program of this workspace, which lies beside this one.
pub(crate) fn built(name: &str) -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let path = this.with_file_name(name).with_extension(std::env::consts::EXE_EXTENSION);
    if !path.is_file() {
        bail!("`{name}` is not built; `./dev/bench` does that");
    }
    Ok(path)
}

/// Where the server is, which is installed when it is missing.
fn everything() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = root.join(EVERYTHING);
    if !script.is_file() {
        let status = process::command(root.join("dev/servers")).status();
        let status = status.context("cannot run `./dev/servers`")?;
        if !status.success() {
            bail!("`./dev/servers` ended with {status}");
        }
    }
    script.canonicalize().context("`./dev/servers` did not install server-everything")
}

/// How long a run takes, which must bring the answer.
fn timed(command: &mut Command) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let output = command.output();
    let took = begun.elapsed();
    let output = output.with_context(|| format!("cannot run {}", shown(command)))?;
    if !answered(&output) {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {} and without the answer: {said}", shown(command), output.status);
    }
    Ok(took)
}

fn answered(output: &Output) -> bool {
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains("hi")
}

fn shown(command: &Command) -> String {
    command.get_program().display().to_string()
}

/// The middle one, in milliseconds.
pub(crate) fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, |middle| middle.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order_and_the_outliers() {
        let times = [9000, 2, 1, 3, 2].map(Duration::from_millis);
        assert!((median(times.into()) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_goal_is_met_up_to_its_very_number() {
        let case = Case { name: "s", server: vec![], runs: 1, goal: 1.25 };
        assert!(OneShot::new(&case, 12.5, 10.0).met);
        assert!(!OneShot::new(&case, 12.6, 10.0).met);
        assert!(!OneShot::new(&case, f64::NAN, 10.0).met);
    }

    #[test]
    fn odd_words_survive_in_the_configuration() {
        let server = vec!["node".into(), "a \"b\"\\c".into(), "stdio".into()];
        let config = Case { name: "odd", server, runs: 1, goal: 1.0 }.config().unwrap();
        assert!(config.contains("command = \"node\"\n"), "{config}");
        assert!(config.contains(r#"args = ["a \"b\"\\c", "stdio"]"#), "{config}");
    }

    #[test]
    fn only_a_run_that_brings_the_answer_counts() {
        let run = |program: &str, word: &str| timed(process::command(program).arg(word));
        assert!(run("echo", "hi").is_ok());
        for (program, word) in [("echo", "ho"), ("false", "hi"), ("no such program", "hi")] {
            assert!(run(program, word).is_err(), "{program} {word}");
        }
    }
}

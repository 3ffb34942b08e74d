//! A stdio MCP server for tests of the hub: says odd things, misbehaves on request.
//!
//! Its options are described at [`Script`], its tools in `fixture/tools.rs`. Results are written
//! by hand where a JSON library would tidy them up. Quick tools run on the reading thread; those
//! that wait have a thread each, so that others are served meanwhile.

mod script;
mod wire;
mod session;
mod tools;
mod library;
mod call;
mod ask;
mod children;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use call::{LONG_NUMBER, WEIRD};
pub use script::{BadScript, Discover, Quirk, Script, Speaks};

use session::Session;

/// The fixture as a program: what `main` of `capstan-fixture` does.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(sleeper) = children::Sleeper::from_arguments(&arguments) {
        return code(sleeper.sleep());
    }
    match Script::parse(&arguments) {
        Ok(script) => play(script),
        Err(problem) => {
            complain(&problem.to_string());
            ExitCode::from(2)
        }
    }
}

fn play(script: Script) -> ExitCode {
    thread::sleep(script.start_delay);
    for number in 1..=script.stderr {
        complain(&format!("line {number} of {}", script.stderr));
    }
    if let Some(status) = script.exit {
        complain(&format!("exiting with {status}"));
        return ExitCode::from(status);
    }
    if let Some(live) = script.live {
        thread::spawn(move || end_after(live));
    }
    code(serve(script))
}

#[expect(clippy::exit, reason = "dying after a while is what is asked for")]
fn end_after(live: Duration) {
    thread::sleep(live);
    std::process::exit(71);
}

fn serve(script: Script) -> io::Result<()> {
    if script.has(Quirk::IgnoreTerm) {
        children::ignore_term()?;
    }
    if let Some(pids) = &script.spawn {
        children::spawn(pids)?;
    }
    let mut trace = script.trace.as_deref().map(open_trace).transpose()?;
    let silent = script.has(Quirk::Silent);
    let session = Arc::new(Session::new(script, io::stdout()));
    session.open()?;
    let mut input = BufReader::new(io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Some(trace) = &mut trace {
            trace.write_all(&line)?;
        }
        if !silent {
            session.receive(&line)?;
        }
    }
}

fn open_trace(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn complain(text: &str) {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(io::stderr(), "fixture: {text}"));
}

fn code(ended: io::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            complain(&problem.to_string());
            ExitCode::FAILURE
        }
    }
}

//! Plays `capstan` in the tests of this crate: as the keeper of a server, and as a hub that can be
//! killed without killing the test.
//!
//! `capstan-stand-in hub COMMAND ARGS…` connects to one server and says `connected` or why not.
//! Then it answers lines: `state` with the state of the server, `close` with `closed` once the
//! server is closed. It ends with its input, without closing anything.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use capstan_hub::ports::{Backend, Lane};
use capstan_mcp::Others;
use capstan_mcp::settings::{Elicitation, max_message};
use capstan_mcp::{Era, StdioServer, StdioSettings};
use capstan_model::Secret;
use capstan_process::keeper;
use tokio::sync::mpsc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == keeper::KEEPER => keeper::run(arguments),
        Some(first) if first == "hub" => match hub(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                drop(writeln!(io::stderr(), "{error}"));
                ExitCode::FAILURE
            }
        },
        _ => ExitCode::from(2),
    }
}

fn hub(arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let words = arguments.map(|word| word.into_string().map_err(|_| io::Error::other("not UTF-8")));
    let mut words = words.collect::<io::Result<Vec<String>>>()?.into_iter();
    let settings = StdioSettings {
        name: "fixture".parse().map_err(io::Error::other)?,
        command: words.next().unwrap_or_default(),
        args: words.collect(),
        environment: [("PATH".to_owned(), Secret::new("/usr/bin:/bin".to_owned()))].into(),
        secrets: Vec::new(),
        withheld: capstan_mcp::settings::Withheld::default(),
        cwd: None,
        startup_timeout: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        max_message: max_message(0),
        era: Era::Auto,
        roots: Vec::new(),
        elicitation: Elicitation::Off,
        others: Others::default(),
        keeper: std::env::current_exe()?,
        sandbox: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: StdioSettings) -> io::Result<()> {
    let server = Arc::new(StdioServer::new(settings));
    match Arc::clone(&server).connect(Lane::ANY).await {
        Ok(_) => say("connected")?,
        Err(error) => say(&error.to_string())?,
    }
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        match line.as_str() {
            "state" => say(server.state().name().as_str())?,
            "close" => {
                server.close().await;
                say("closed")?;
            }
            other => return Err(io::Error::other(format!("`{other}` means nothing here"))),
        }
    }
    Ok(())
}

/// What comes in, read by a thread of its own, so that the runtime goes on meanwhile.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (tell, lines) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

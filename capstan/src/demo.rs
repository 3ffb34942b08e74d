//! The built-in demo servers, which run as child processes of this binary.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufReader, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use capstan_demo::{Demo, Options};

use crate::logs::last_words;

/// The first argument that makes this binary run as a demo server.
pub(crate) const DEMO: &str = "__demo";

/// Runs as the demo server `WHICH ROOT DATA`.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let which = words.next().and_then(|word| word.to_str()?.parse::<Demo>().ok());
    let (Some(which), Some(root), Some(data)) = (which, words.next(), words.next()) else {
        last_words("a demo server is started by capstan itself");
        return ExitCode::from(2);
    };
    let options = Options { root: PathBuf::from(root), data: PathBuf::from(data) };
    match capstan_demo::run(which, options, BufReader::new(stdin()), stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            last_words(&error.to_string());
            ExitCode::from(1)
        }
    }
}

/// A configuration with the demo servers: files below `root`, time zones, notes stored in `data`.
pub(crate) fn config(program: &Path, root: &Path, data: &Path) -> String {
    let mut text = "[permissions]\nallow = [\"*\"]\n".to_owned();
    for demo in Demo::ALL {
        let args = [DEMO, demo.as_str(), &root.to_string_lossy(), &data.to_string_lossy()]
            .map(quoted)
            .join(", ");
        let (name, description) = (demo.as_str(), quoted(demo.description()));
        let command = quoted(&program.to_string_lossy());
        let _ = write!(
            text,
            "\n[servers.{name}]\ncommand = {command}\nargs = [{args}]\n\
             description = {description}\ntrust = \"trusted\"\n"
        );
    }
    text
}

/// Quotes a TOML string; a JSON string is also a valid TOML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

//! The process that restricts itself and becomes the server.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::words::Words;
use super::{capabilities, file_rules, system_calls};

/// Restricts this process, and runs the command in it.
///
/// # Errors
/// If one restriction cannot be set, or the command cannot be run.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment was stripped when the keeper was started"
)]
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    let usage = || io::Error::other("the keeper is started by capstan itself");
    let settings = Words::read(&mut arguments)?.ok_or_else(usage)?;
    let command = arguments.next().ok_or_else(usage)?;
    let within =
        |error: io::Error| io::Error::other(format!("its sandbox cannot be set up: {error}"));
    settings.limits.apply().map_err(within)?;
    capabilities::drop_all().map_err(within)?;
    file_rules::apply(&settings.read, &settings.write).map_err(within)?;
    system_calls::apply().map_err(within)?;
    Err(Command::new(command).args(arguments).exec())
}

//! Plays `capstan` in the tests of this crate, as the keeper of what is run.

use std::process::ExitCode;

use capstan_process::keeper;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == keeper::KEEPER => keeper::run(arguments),
        _ => ExitCode::from(2),
    }
}

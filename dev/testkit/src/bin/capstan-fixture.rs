//! The fixture server as a program; see `capstan_testkit::fixture`.

use std::process::ExitCode;

fn main() -> ExitCode {
    capstan_testkit::fixture::main(std::env::args_os().skip(1))
}

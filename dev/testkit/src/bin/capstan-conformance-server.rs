//! The server that the conformance suite tests against; see `capstan_testkit::conformance`.

use std::process::ExitCode;

fn main() -> ExitCode {
    capstan_testkit::conformance::main(std::env::args_os().skip(1))
}

//! Calls one tool of one server and prints the response: `capstan-thinclient TOOL JSON -- COMMAND`.
//! Or has a gateway run a command, and prints what came back: `capstan-thinclient --socket FILE JSON`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use capstan_testkit::{peer, process};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let said = match run(&arguments) {
        Ok(answer) => writeln!(io::stdout(), "{answer}"),
        Err(problem) => {
            drop(writeln!(io::stderr(), "capstan-thinclient: {problem}"));
            return ExitCode::FAILURE;
        }
    };
    if said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(arguments: &[OsString]) -> io::Result<String> {
    if let [first, socket, order] = arguments
        && first == "--socket"
        && let Some(order) = order.to_str()
    {
        return peer::run_in(socket.as_ref(), order);
    }
    let usage = || io::Error::other("usage: capstan-thinclient TOOL JSON -- COMMAND [ARGUMENT]...");
    let [tool, json, dashes, program, rest @ ..] = arguments else { return Err(usage()) };
    let (Some(tool), Some(json), "--") =
        (tool.to_str(), json.to_str(), dashes.to_str().unwrap_or(""))
    else {
        return Err(usage());
    };
    let mut command = process::command(program);
    command.args(rest);
    peer::call(command, tool, json)
}

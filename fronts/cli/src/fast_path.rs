//! A fast parser for the most common commands: `call NAME WORD…`, `list` and `tools`.
//!
//! Before it parses, clap builds all commands and options. For one call, that takes longer than
//! reaching a running gateway.

use std::ffi::OsString;

use crate::args::{AskArgs, CallArgs, Cli, Command, Options, ReadingArgs, ToolsArgs};

/// Parses a call without any option, and lists without any but `--json`; `None` for everything
/// else.
pub(crate) fn read(words: &[OsString]) -> Option<Cli> {
    let words: Vec<String> =
        words.iter().map(|word| word.to_str().map(ToOwned::to_owned)).collect::<Option<_>>()?;
    let [_, words @ ..] = words.as_slice() else { return None };
    read_list(words).or_else(|| read_call(words))
}

fn read_list(words: &[String]) -> Option<Cli> {
    let (verb, json) = match words {
        [verb] => (verb, false),
        [verb, option] if option == "--json" => (verb, true),
        _ => return None,
    };
    let command = match verb.as_str() {
        "list" => Command::List(ReadingArgs::default()),
        "tools" => Command::Tools(ToolsArgs::default()),
        _ => return None,
    };
    Some(Cli { options: Options { json, ..Options::default() }, command })
}

fn read_call(words: &[String]) -> Option<Cli> {
    let [verb, tool, arguments @ ..] = words else { return None };
    // A single dash means stdin; any other word with a dash may be an option.
    let is_plain = |word: &String| !word.starts_with('-') || word == "-";
    if verb != "call" || !is_plain(tool) || !arguments.iter().all(is_plain) {
        return None;
    }
    let (tool, arguments) = (tool.clone(), arguments.to_vec());
    let call = CallArgs { tool, arguments, output: None, elicit: None, ask: AskArgs::default() };
    Some(Cli { options: Options::default(), command: Command::Call(call) })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_plain_command_is_read_as_clap_reads_it() {
        for line in [
            "capstan list",
            "x list --json",
            "capstan tools",
            "capstan tools --json",
            "capstan call s__t",
            "capstan call s:t a=b c:=1",
            "capstan call s:t -",
            "capstan call - a=b",
            "capstan call s:t {\"a\":-1} a=--b =",
            "capstan call call call",
            "capstan call mcp add",
            "capstan call help",
            "x call s__t a=-",
            "capstan call s__t  a=b",
        ] {
            let theirs = crate::read(Cli::command(), words(line)).unwrap();
            let ours = read(&words(line)).unwrap();
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{line}");
        }
    }

    #[test]
    fn everything_else_is_left_to_clap() {
        for line in [
            "capstan",
            "capstan call",
            "capstan call --help",
            "capstan call s__t --json",
            "capstan call s__t -h",
            "capstan call s__t -- a",
            "capstan call --json s__t",
            "capstan --json call s__t",
            "capstan mcp call s__t",
            "capstan tools s__t",
            "capstan prompt p a",
            "capstan Call s__t",
            "capstan list --refresh",
            "capstan --json list",
            "capstan list x",
            "capstan tools f --json",
            "capstan tools --help",
        ] {
            assert!(read(&words(line)).is_none(), "{line}");
        }
    }
}

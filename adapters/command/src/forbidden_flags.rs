//! Flags that are never offered to callers.
//!
//! These are flags that run another program, load another configuration, or change the program or
//! subcommand. A list of subcommands would be useless if `fetch --upload-pack=COMMAND` ran any
//! command. In doubt, a flag is left out; an operator who needs it puts it into `args`, where no
//! caller can change it.

use crate::help::{Flag, Program, Value};

/// Names, without dashes, of flags that are never offered when they take a value.
const NAMES: &[&str] = &[
    // Other programs.
    "checkpoint-action",
    "command",
    "compress-program",
    "credential-helper",
    "diff-program",
    "editor",
    "eval",
    "exec",
    "exec-path",
    "execdir",
    "execute",
    "extcmd",
    "info-script",
    "interactive-shell",
    "new-volume-script",
    "ok",
    "okdir",
    "open-files-in-pager",
    "pager",
    "proxy-command",
    "receive-pack",
    "remote-command",
    "rmt-command",
    "rsh",
    "rsh-command",
    "rsync-path",
    "run",
    "script-shell",
    "sendmail-cmd",
    "shell",
    "strip-program",
    "to-cmd",
    "cc-cmd",
    "to-command",
    "tocmd",
    "cccmd",
    "upload-pack",
    "use-askpass",
    "use-compress-program",
    "with-editor",
    // Other configuration, code and places to find programs.
    "config",
    "config-env",
    "config-file",
    "configfile",
    "defaults-file",
    "globalconfig",
    "import",
    "init-command",
    "init-file",
    "kubeconfig",
    "load",
    "load-extension",
    "loader",
    "node-options",
    "plugin",
    "plugin-path",
    "plugins",
    "preload",
    "rcfile",
    "require",
    "userconfig",
];

/// Names of values that are commands.
const COMMANDS: &[&str] = &[
    "cmd",
    "command",
    "exec",
    "executable",
    "editor",
    "pager",
    "prog",
    "program",
    "shell",
    "shell-command",
    "shell_command",
];

/// Subcommands that run other programs, or change what is run later.
const RUNNERS: &[&str] = &[
    "daemon",
    "difftool",
    "exec",
    "filter-branch",
    "for-each-repo",
    "foreach",
    "hook",
    "instaweb",
    "mergetool",
    "remote-ext",
    "send-email",
    "shell",
];

/// Further such subcommands of one program: its configuration names programs that it runs.
const RUNNERS_OF: &[(&str, &[&str])] = &[("git", &["config", "credential"])];

/// Switches that let the configuration of a directory run programs, or lead out of it.
const SWITCHES: &[&str] = &["ext-diff", "no-index", "textconv", "use-askpass"];

/// Flags of all subcommands that are offered nevertheless.
///
/// The others select the server, the user and the credentials, which is not for callers.
const SHARED: &[&str] = &["namespace", "context", "repo", "verbose", "quiet", "debug", "no-color"];

/// Flags of subcommands that select the server or the rights of the complete program.
const AIMS: &[&str] = &["as", "as-group", "as-uid", "host", "machine", "server", "token"];

/// Subcommands that only read, except with a flag that writes their output to a file.
///
/// Flags whose names merely look like changes are left out too: with them, the classifier would not
/// recognise a read.
const READERS: &[(&str, &[&str], &[&str])] =
    &[("git", &["diff", "log", "show"], &["--output", "--irreversible-delete", "--remove-empty"])];

/// Flags that print information about the program and end it.
const ABOUT: &[&str] = &["help", "version", "usage", "help-all", "longhelp", "long-help"];

/// The owner of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// A program without subcommands.
    Program,
    /// A subcommand.
    Subcommand,
}

/// True if a subcommand runs other programs. It is offered only if the configuration names it.
pub(crate) fn runs_others(binary: &str, path: &[String], help: Option<&Program>) -> bool {
    let own = RUNNERS_OF.iter().filter(|(program, _)| *program == binary);
    let own: Vec<&str> = own.flat_map(|(_, words)| words.iter().copied()).collect();
    let is_runner =
        |word: &String| RUNNERS.contains(&word.as_str()) || own.contains(&word.as_str());
    let takes_command =
        |help: &Program| help.positionals.iter().any(|positional| is_command(&positional.name));
    path.iter().any(is_runner) || (!path.is_empty() && help.is_some_and(takes_command))
}

/// True if a flag makes a reading subcommand write, or look like it.
///
/// A caller can store the answer in a file instead.
pub(crate) fn makes_write(binary: &str, path: &[String], flag: &Flag) -> bool {
    let [word] = path else { return false };
    READERS.iter().any(|(program, words, names)| {
        *program == binary
            && words.contains(&word.as_str())
            && flag.names.iter().any(|name| names.contains(&name.as_str()))
    })
}

/// True if a flag may be offered to callers.
pub(crate) fn is_offered(flag: &Flag, of: Of) -> bool {
    let bare = |name: &String| name.trim_start_matches('-').replace('_', "-").to_ascii_lowercase();
    let known = |name: &String| NAMES.contains(&bare(name).as_str());
    let about = |name: &String| ABOUT.contains(&bare(name).as_str());
    let switch = |name: &String| SWITCHES.contains(&bare(name).as_str());
    let shared = |name: &String| SHARED.contains(&bare(name).as_str());
    let any = |test: &dyn Fn(&String) -> bool| flag.names.iter().any(test);
    if flag.names.is_empty() || any(&about) || any(&switch) || (flag.shared && !any(&shared)) {
        return false;
    }
    match &flag.value {
        Value::None => !any(&|name| name == "-?"),
        Value::Required(kind) | Value::Optional(kind) => {
            let aims = of == Of::Subcommand && any(&|name| AIMS.contains(&bare(name).as_str()));
            !any(&known) && !is_command(&kind.name) && !aims
        }
    }
}

/// True if a value with this name is a command: `PROG`, `<shell-command>`, `cmd...`.
fn is_command(name: &str) -> bool {
    let bare = name.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    COMMANDS.contains(&bare.as_str()) || bare.ends_with("-command") || bare.ends_with("-program")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    #[track_caller]
    fn offered(line: &str) -> bool {
        let program = help::read(format!("Options:\n  {line}\n").as_bytes(), &["x"]);
        is_offered(program.flags.first().unwrap(), Of::Subcommand)
    }

    #[test]
    fn flags_that_run_or_load_something_else_are_not_offered() {
        for line in [
            "--upload-pack <path>       path to upload pack",
            "-x, --exec <cmd>           add exec lines",
            "--exec-path[=<path>]       path to programs",
            "--config-env=<name>=<var>  config from the environment",
            "-I, --use-compress-program=PROG   filter through PROG",
            "--to-command=COMMAND       pipe files",
            "--checkpoint-action=ACTION    at every checkpoint",
            "--compress-program=PROG    compress temporaries",
            "--filter=COMMAND           write to shell COMMAND",
            "-c shell-command           run it",
            "--config <KEY=VALUE|PATH>  Override a value",
            "--kubeconfig='':",
            "-r, --require=...          module to preload",
            "-exec COMMAND              run it",
            "-e, --execute=COMMAND      execute a command",
            "-O, --Open-Files-In-Pager[=<pager>]  show",
            "-h, --help                 Print help",
            "-V, --version              Print version",
            "-H --host=[USER@]HOST      Operate on remote host",
            "--token string             Bearer token",
            "--[no-]ext-diff            allow an external diff helper",
        ] {
            assert!(!offered(line), "{line}");
        }
    }

    #[test]
    fn a_subcommand_that_runs_what_it_is_given_is_known() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let usage = |text: &str| help::read(format!("usage: {text}\n").as_bytes(), &["git"]);
        for path in ["submodule foreach", "difftool", "hook run", "config", "exec"] {
            assert!(runs_others("git", &words(path), None), "{path}");
        }
        let bisect = usage("git bisect run <cmd> [<arg>...]");
        assert!(runs_others("git", &words("bisect run"), Some(&bisect)));
        for path in ["log", "remote add", "submodule status", "bisect log"] {
            assert!(!runs_others("git", &words(path), None), "{path}");
        }
        assert!(!runs_others("kubectl", &words("config view"), None));
    }

    #[test]
    fn a_flag_that_makes_a_reader_write_is_known() {
        let text = "Options:\n  --output=<file>   where to\n  --stat   numbers\n";
        let flags = help::read(text.as_bytes(), &["git"]).flags;
        let all = |binary: &str, word: &str| -> Vec<bool> {
            let path = [word.to_owned()];
            flags.iter().map(|flag| makes_write(binary, &path, flag)).collect()
        };
        assert_eq!(all("git", "log"), [true, false]);
        assert_eq!(all("git", "archive"), [false, false]);
        assert_eq!(all("hg", "log"), [false, false]);
    }

    #[test]
    fn of_what_all_subcommands_share_little_is_offered() {
        let text =
            b"Global Flags:\n  -n, --namespace string   where\n      --server string      which\n";
        let program = help::read(text, &["x"]);
        let offered: Vec<&str> = program
            .flags
            .iter()
            .filter(|flag| is_offered(flag, Of::Subcommand))
            .map(Flag::name)
            .collect();
        assert_eq!(offered, ["--namespace"]);
    }

    #[test]
    fn a_program_that_has_nothing_but_flags_is_told_where_to_work() {
        let program = help::read(b"Options:\n  -h, --host=HOSTNAME   server host\n", &["psql"]);
        assert!(is_offered(&program.flags[0], Of::Program));
        assert!(!is_offered(&program.flags[0], Of::Subcommand));
    }

    #[test]
    fn other_flags_are_offered() {
        for line in [
            "-n, --dry-run              do nothing",
            "-o, --output=FORMAT        how to print",
            "--namespace='':",
            "-C, --directory=DIR        where",
            "--format string            Format",
            "--executed                 what was executed",
            "-f, --filter filter        Filter output",
            "--load                     load the result",
        ] {
            assert!(offered(line), "{line}");
        }
    }
}

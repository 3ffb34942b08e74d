//! Help texts in the styles of the usual libraries, about programs that do not exist.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod texts;

use std::fmt::Write as _;

use capstan_command::help::{Flag, Positional, Program, Subcommand, Value, ValueType, read};

/// A program in a few lines.
fn shown(text: &str, words: &[&str]) -> Vec<String> {
    let Program { subcommands, flags, positionals, separator, .. } = read(text.as_bytes(), words);
    let mut lines: Vec<String> = subcommands.iter().map(subcommand).collect();
    lines.extend(flags.iter().map(flag));
    let places: Vec<String> = positionals.iter().map(place).collect();
    let mark = separator.map_or(String::new(), |at| format!(" | -- at {at}"));
    if !places.is_empty() || !mark.is_empty() {
        lines.push(format!("({}){mark}", places.join(", ")));
    }
    lines
}

fn subcommand(subcommand: &Subcommand) -> String {
    let aliases: Vec<String> = subcommand.aliases.iter().map(|alias| format!("/{alias}")).collect();
    let own = subcommand.usage.as_ref().map(|usage| {
        let flags: Vec<String> = usage.flags.iter().map(flag).collect();
        let places: Vec<String> = usage.positionals.iter().map(place).collect();
        format!(" {{{}}} ({})", flags.join("; "), places.join(", "))
    });
    format!("{}{}{}", subcommand.name, aliases.concat(), own.unwrap_or_default())
}

fn flag(flag: &Flag) -> String {
    let mut text = flag.names.join(" ");
    if let Some(negation) = &flag.negation {
        write!(text, " !{negation}").unwrap();
    }
    let value = match &flag.value {
        Value::None => None,
        Value::Required(kind) => Some((kind, "")),
        Value::Optional(kind) => Some((kind, "?")),
    };
    if let Some((kind, mark)) = value {
        let word = match kind.value_type {
            ValueType::Text if !kind.choices.is_empty() => kind.choices.join("|"),
            ValueType::Text => "text".to_owned(),
            ValueType::Integer => "integer".to_owned(),
            ValueType::Number => "number".to_owned(),
            ValueType::Boolean => "boolean".to_owned(),
        };
        let default = kind.default.as_ref().map_or(String::new(), |text| format!(" = {text}"));
        write!(text, ": {word}{mark}{default}").unwrap();
    }
    if flag.repeatable {
        text.push_str(" ...");
    }
    text
}

fn place(positional: &Positional) -> String {
    let dots = if positional.repeated { "..." } else { "" };
    let mark = if positional.required { "" } else { "?" };
    let choices = match positional.choices.join("|") {
        choices if choices.is_empty() => choices,
        choices => format!(": {choices}"),
    };
    format!("{}{dots}{mark}{choices}", positional.name)
}

#[track_caller]
fn check(text: &str, words: &[&str], expected: &[&str]) {
    assert_eq!(shown(text, words), expected);
}

#[test]
fn git_lists_commands_under_many_headings_and_those_of_others_under_their_own() {
    let expected = ["plant", "water", "harvest", "weigh"];
    check(texts::GIT_ALL, &["garden"], &expected);
}

#[test]
fn git_prints_usage_lines_with_subcommands_in_them() {
    let expected = [
        "add {-t: text; -f; --mirror: text} (name, url)",
        "rename {--progress !--no-progress} (old, new)",
        "push {-p --patch; -m --message: text} (pathspec...?)",
        "-v --verbose !--no-verbose",
        "--depth !--no-depth: integer",
    ];
    check(texts::GIT_USAGE, &["garden", "bed"], &expected);
}

#[test]
fn git_shows_where_the_double_dash_goes() {
    let expected = ["-q --quiet !--no-quiet", "(range?, path...?) | -- at 1"];
    check(texts::GIT_DASHES, &["garden", "log"], &expected);
}

#[test]
fn what_only_some_usages_need_is_not_required() {
    let text = "usage: g checkout <branch>\n   or: g checkout [<branch>] -- <file>...\n";
    check(text, &["g", "checkout"], &["(branch?, file...?) | -- at 1"]);
    let text = "Usage: cp SRC DEST\n  or:  cp SRC... DIR\n  or:  cp -t DIR SRC...\n";
    check(text, &["cp"], &["-t: text", "(src..., dir?)"]);
}

#[test]
fn kubectl_writes_defaults_behind_the_flag() {
    let expected = [
        "-A --all-plots: boolean = false",
        "--chunk-size: integer = 500",
        "-f --filename: text ...",
        "-o --output: text",
        "-l: text",
        "(kind, name...?)",
    ];
    check(texts::KUBECTL, &["plotctl", "get"], &expected);
}

#[test]
fn cobra_lists_commands_and_typed_flags() {
    let expected = [
        "issue",
        "pull-request/pr",
        "repo",
        "--limit: integer = 30",
        "-l --label: text ...",
        "--state: open|closed|all = open",
        "-w --web",
        "-R --repo: text",
        "(command, subcommand) | -- at 0",
    ];
    check(texts::COBRA, &["hub"], &expected);
}

#[test]
fn docker_lists_commands_and_shows_places() {
    let expected = [
        "-d --detach",
        "-e --env: text ...",
        "--cpus: text",
        "--memory: text",
        "--pull: always|missing|never = missing",
        "--retries: integer",
        "(image, command?, arg...?)",
    ];
    check(texts::DOCKER, &["boxer", "run"], &expected);
    check(
        texts::DOCKER_ROOT,
        &["boxer"],
        &["run", "ps", "image", "-D --debug", "(command) | -- at 0"],
    );
}

#[test]
fn clap_names_possible_values_and_defaults() {
    let expected = [
        "build/b",
        "test",
        "--color: auto|always|never = auto",
        "-j --jobs: integer",
        "-v --verbose",
        "-p --package: text?",
        "-h --help",
        "(command?) | -- at 0",
    ];
    check(texts::CLAP, &["crate"], &expected);
}

#[test]
fn argparse_names_choices_and_subparsers() {
    let expected = [
        "sow",
        "reap",
        "-h --help",
        "--unit: kg|lb",
        "--count: integer",
        "-q --quiet",
        "(bed, row...?) | -- at 0",
    ];
    check(texts::ARGPARSE, &["farm"], &expected);
}

#[test]
fn argparse_describes_subparsers_below_their_names() {
    let program = read(texts::ARGPARSE.as_bytes(), &["farm"]);
    let summaries: Vec<(&str, &str)> =
        program.subcommands.iter().map(|one| (one.name.as_str(), one.summary.as_str())).collect();
    assert_eq!(summaries, [("sow", "put seeds"), ("reap", "take crops")]);
}

#[test]
fn argparse_choices_of_an_argument_are_values_and_no_subcommands() {
    let expected = ["-h --help", "-n --namespace: text", "(choice: pods|nodes) | -- at 0"];
    check(texts::ARGPARSE_CHOICES, &["ctl", "get"], &expected);
    for (usage, expected) in [
        ("x [-h] {a,b} [{a,b} ...]", "(choice...: a|b)"),
        ("x [{a,b} ...]", "(choice...?: a|b)"),
        ("x [{a,b}] {c,d} FILE", "(choice?: a|b, choice_2: c|d, file)"),
        ("x NAME {on,off}", "(name, choice: on|off)"),
    ] {
        let text = format!("usage: {usage}\n");
        let found = shown(&text, &["x"]);
        assert_eq!(found.last().unwrap(), expected, "{usage}");
        assert!(found.iter().all(|line| line.starts_with(['(', '-'])), "{found:?}");
    }
    // With dots, the arguments of subcommands follow.
    check("usage: x {get,put} ...\n", &["x"], &["get", "put"]);
}

#[test]
fn npm_lists_commands_with_commas_and_flags_in_brackets() {
    check(
        texts::NPM_ROOT,
        &["pkg"],
        &["access", "audit", "install", "run", "view", "-h", "(command)"],
    );
    let expected = [
        "-S --save",
        "--no-save",
        "-g --global",
        "--strategy: hoisted|nested|linked",
        "--omit: dev|optional|peer ...",
        "(package_spec...?)",
    ];
    check(texts::NPM, &["pkg", "install"], &expected);
}

#[test]
fn gnu_writes_values_behind_equals_signs_and_wraps_far_to_the_right() {
    let expected = [
        "-a --all",
        "--block-size: text",
        "--color: text?",
        "-x --extract --get",
        "-n --lines: text",
        "-H --host: text",
        "--help",
        "--version",
        "(file...?) | -- at 0",
    ];
    check(texts::GNU, &["lsx"], &expected);
}

#[test]
fn busybox_lists_its_applets() {
    check(texts::BUSYBOX, &["box"], &["ash", "cat", "grep", "wget", "(function?, arguments...?)"]);
}

#[test]
fn a_synopsis_alone_tells_flags_and_places() {
    let expected = [
        "-q",
        "-a: text",
        "-t: rsa|ecdsa|ed25519",
        "-F: text",
        "-l",
        "-v",
        "-k",
        "-f: text",
        "(file...?)",
    ];
    check(texts::BSD, &["keymaker"], &expected);
}

#[test]
fn systemd_shows_the_places_of_its_subcommands() {
    let expected = [
        "list-units {} (pattern...?)",
        "start {} (unit...)",
        "set-property {} (unit, property...)",
        "daemon-reload {} ()",
        "-h --help",
        "-H --host: text",
        "--no-pager",
        "(command...)",
    ];
    check(texts::SYSTEMD, &["unitctl"], &expected);
}

#[test]
fn apt_parts_names_from_summaries_with_a_dash() {
    check(
        texts::APT,
        &["deb-cache"],
        &["showsrc {} (pkg1, pkg2...?)", "search", "depends", "(command)"],
    );
}

#[test]
fn a_grammar_lists_objects() {
    check(texts::GRAMMAR, &["net"], &["address", "link", "route", "(object, command)"]);
}

#[test]
fn columns_of_names_are_subcommands() {
    check(
        texts::COLUMNS,
        &["ssl"],
        &["asn1parse", "ca", "ciphers", "x509", "md5", "sha1", "sha256"],
    );
}

#[test]
fn a_manual_is_read_through_its_bold_letters() {
    let expected =
        ["-n --max-count: integer", "--since --after: text", "(range?, path...?) | -- at 1"];
    let bold = texts::MANUAL
        .replace("NAME", "N\u{8}NA\u{8}AM\u{8}ME\u{8}E")
        .replace("--since", "\u{1b}[1m--since\u{1b}[0m");
    check(&bold, &["garden", "log"], &expected);
}

#[test]
fn what_is_no_help_is_not_understood() {
    for text in [
        "",
        "permission denied\n",
        "garden: 'x' is not a command. See 'garden --help'.\n",
        "\u{0}\u{1}",
    ] {
        assert!(!read(text.as_bytes(), &["garden", "x"]).is_understood(), "{text:?}");
    }
}

#[test]
fn a_program_that_reads_arguments_from_files_is_recognised() {
    for text in
        ["Usage: x [options] @<file>\n", "  @FILE      Read options from FILE\n", "x @path ...\n"]
    {
        assert!(read(text.as_bytes(), &["x"]).response_files, "{text}");
    }
    assert!(!read(b"Usage: x USER@HOST\n mail to a@file.example\n", &["x"]).response_files);
}

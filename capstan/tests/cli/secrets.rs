//! A secret in the configuration is in no output of ours.

use capstan_testkit::{Ended, World};

use crate::stage::{ends_with, fixture, read, run, says, with};

/// Part of every secret of these tests; nothing that looks like a token by itself.
const CANARY: &str = "canary";

/// A configuration with a secret in every place that can hold one.
#[track_caller]
fn full_of_secrets() -> World {
    let fixture = fixture("f", &["--stderr", "2"]);
    with(&format!(
        "{fixture}env = {{ API_KEY = \"canary-in-env\", PLAIN = \"canary-in-plain\", \
         FROM_SHELL = \"${{SHELL_SECRET}}\" }}\n\n\
         [servers.flags]\ncommand = \"/nowhere/flags\"\n\
         args = [\"--token\", \"canary-after-flag\", \"--api-key=canary-in-flag\", \
         \"postgres://me:canary-password@host/db\", \"${{SHELL_SECRET}}\"]\n\n\
         [servers.remote]\nurl = \"https://me:canary-user@example.com/mcp?api_key=canary-query\"\n\
         headers = {{ Authorization = \"Bearer canary-bearer\", X-Plain = \"canary-header\" }}\n\n\
         [servers.dies]\ncommand = \"sh\"\n\
         args = [\"-c\", \"echo $API_KEY $1 $2 >&2; exit 1\", \"sh\", \"--token\", \
         \"canary-in-argument\"]\n\
         env = {{ API_KEY = \"canary-in-stderr\" }}\n"
    ))
}

#[track_caller]
fn ran(world: &World, words: &str) -> Ended {
    let run = world.capstan(words.split_whitespace());
    run.env("SHELL_SECRET", "canary-from-shell").run()
}

#[track_caller]
fn keeps_quiet(ended: &Ended, words: &str) {
    let Ended { stdout, stderr, .. } = ended;
    for line in stdout.lines().chain(stderr.lines()) {
        assert!(!line.contains(CANARY), "`{words}` says: {line}");
    }
}

#[test]
fn no_command_shows_a_secret() {
    let world = full_of_secrets();
    for words in [
        "list",
        "list --json",
        "list --debug",
        "tools",
        "tools --json",
        "tools --debug",
        "get f",
        "get flags",
        "get remote",
        "get dies",
        "get dies --json",
        "get dies --debug",
        "config show",
        "config show --json",
        "config check",
        "config check --json",
        "config path",
        "doctor",
        "doctor --json",
        "doctor --debug",
        "call f__echo --debug",
        "call flags__x",
        "call dies__x --json",
        "why f__echo",
        "audit",
        "audit --json",
        "disable f --debug",
        "enable f --debug",
    ] {
        let ended = ran(&world, words);
        keeps_quiet(&ended, words);
        assert_eq!(ended.stderr.matches("panicked").count(), 0, "{}", ended.stderr);
    }
    says(&ran(&world, "get dies").stdout, "***");
    let log = read(world.state().join("capstan/audit.jsonl"));
    assert!(!log.contains(CANARY), "{log}");
}

#[test]
fn a_mistake_beside_a_secret_is_shown_without_it() {
    for text in [
        "[servers.a]\ncomand = \"npx\"\nenv = { API_KEY = \"canary-1\" }\n",
        "[servers.a]\ncommand = \"npx\"\nenv = { API_KEY = \"canary-2\", LD_PRELOAD = \"x\" }\n",
        "[servers.a.env]\nPLAIN = \"canary-3\"\nLD_PRELOAD = \"x\"\n",
        "[servers.a]\nurl = \"ftp://me:canary-4@h\"\nheaders = { A = 'canary-5', \"b c\" = \"x\" }\n",
        "[servers.a]\nargs = [\"--token\", \"canary-6\"]\ncomand = \"x\"\n",
        "[servers.a]\ncommand = \"x\"\nargs = [\n  \"--api-key=canary-7\", 5\n]\n",
        "[servers.a]\ncommand = \"x\"\nenv = { API_KEY = \"canary-8 }\n",
        "[servers.a]\ncommand = \"x\"\nenv.TOKEN = \"\"\"canary-9\"\"\"\nbad = 1\n",
        "[gateway.auth.tokenz]\n\"canary-10\" = \"bob\" # canary-10\n",
        "[servers.a]\ncommand = \"x\"\nevn = { BAR = \"canary-11\" }\nheadres = { X = \"canary-12\" }\n",
        "[servers.a]\ncommand = \"x\"\nenv = [\"canary-13\"]\nheaders = \"Bearer canary-14\"\n",
    ] {
        let world = with(text);
        let ended = ends_with(run(&world, "config check"), 3);
        keeps_quiet(&ended, text);
        says(&ended.stderr, "config.toml:");
        for words in ["list", "doctor", "config check --json", "list --json", "config show"] {
            keeps_quiet(&run(&world, words), text);
        }
    }
}

#[test]
fn the_answer_itself_is_the_callers_and_stays_as_it_is() {
    let ended = ends_with(ran(&full_of_secrets(), "call f__env --json"), 0);
    says(&ended.stdout, "canary-in-env");
    assert_eq!(ended.stderr, "");
}

#[test]
fn secret_arguments_of_a_call_are_masked_in_the_traffic() {
    let world = full_of_secrets();
    let words = "call f__add password=canary a=1 b=2 --debug";
    let ended = ran(&world, words);
    let sent = ended.stderr.lines().find(|line| line.contains("tools/call")).unwrap();
    says(sent, "\"password\":\"***\"");
    keeps_quiet(&ended, words);
}

/// Issue "First hour" 9: messages of servers keep ordinary paths and lose secrets.
#[test]
fn a_message_of_a_server_keeps_paths_and_loses_secrets() {
    let world = World::new();
    world.write_user_config(
        "[servers.s]\ncommand = \"/bin/sh\"\n\
         args = [\"-c\", \"echo no $DATA in $HERE for $DB_PASSWORD >&2; exit 1\"]\n\
         env = { DATA = \"/srv/data/documents\", HERE = \"/srv/here/too\", DB_PASSWORD = \"plum-tart\" }\n",
    );
    let command = world.capstan(["call", "s__x"]).env("PWD", "/srv/here/too");
    let ended = command.env("OLDPWD", "/srv/data/documents").run();
    let said = format!("{}{}", ended.stdout, ended.stderr);
    says(&said, "no /srv/data/documents in /srv/here/too for ***");
    assert!(!said.contains("plum-tart"), "{said}");
}

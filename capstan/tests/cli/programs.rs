//! Command-line programs as servers: found, limited, called.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::{Ended, World};
use serde_json::{Value, json};

use crate::stage::{column, ends_with, failure, json, says, with};

/// A program that speaks of itself as kubectl does, and writes down how it is run.
const KUBECTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
{ printf '%s\037' "$@"; printf '\036'; } >> "$here/runs"
case "$*" in
  --help) cat <<'END'
kubectl controls clusters.

Basic Commands (Beginner):
  get             Display one or many resources
  delete          Delete resources
Troubleshooting and Debugging Commands:
  describe        Show details of a specific resource
  logs            Print the logs for a container in a pod
  exec            Execute a command in a container

Usage:
  kubectl [flags] [options]

Use "kubectl <command> --help" for more information about a given command.
Use "kubectl options" for a list of global command-line options (applies to all commands).
END
  exit ;;
  options) printf 'The following options can be passed to any command:\n\n    --kubeconfig='"''"':\n\tPath to the file.\n\n    -n, --namespace='"''"':\n\tThe namespace.\n\n    --token='"''"':\n\tA token.\n'; exit ;;
  'get --help') printf 'Display one or many resources.\n\nOptions:\n    -A, --all-namespaces=false:\n\tAll of them.\n\n    -o, --output='"''"':\n\tOutput format.\n\nUsage:\n  kubectl get (TYPE [NAME | -l label] | TYPE/NAME ...) [flags] [options]\n'; exit ;;
  *--help) printf 'Usage:\n  kubectl %s NAME [flags]\n' "$1"; exit ;;
esac
printf '%s\n' "$@"
[ "$1" != logs ] || { echo 'no such pod' >&2; exit 1; }
"#;

/// A world with programs of its own first in `PATH`.
struct Scene {
    world: World,
}

impl Scene {
    fn new(world: World) -> Self {
        let path = world.write("bin/kubectl", KUBECTL);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { world }
    }

    fn run(&self, words: &[&str]) -> Ended {
        let mut path = OsString::from(self.world.home().join("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        self.world.capstan(words).env("PATH", path).run()
    }

    #[track_caller]
    fn tools(&self) -> Vec<String> {
        column(&json(&ends_with(self.run(&["tools", "--json"]), 0)), "id")
    }

    fn call(&self, tool: &str, arguments: &Value) -> Ended {
        self.run(&["call", tool, &arguments.to_string(), "--json"])
    }

    /// How the program was run: the words of each run.
    fn runs(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.world.home().join("bin/runs")).unwrap_or_default();
        let words = |run: &str| run.split_terminator('\u{1f}').map(str::to_owned).collect();
        text.split_terminator('\u{1e}').map(words).collect()
    }
}

fn avelino(servers: &Value) -> World {
    let world = World::new();
    let file = json!({ "mcpServers": servers }).to_string();
    world.write(world.config().join("mcp/servers.json"), file);
    world
}

#[test]
fn c24_only_the_listed_subcommands_of_a_program_can_be_reached() {
    let kubectl = json!({ "command": "kubectl", "cli": true, "cli_depth": 2, "cli_only": ["get", "describe", "logs"] });
    let scene = Scene::new(avelino(&json!({ "kubectl": kubectl })));
    let expected = ["kubectl__kubectl_get", "kubectl__kubectl_describe", "kubectl__kubectl_logs"];
    assert_eq!(scene.tools(), expected);

    let told = ends_with(
        scene.call(expected[0], &json!({ "type": "pods", "output": "wide", "namespace": "a" })),
        0,
    );
    let stdout = json(&told)["structuredContent"]["stdout"].clone();
    assert_eq!(stdout, json!("get\n--output=wide\n--namespace=a\n--\npods\n"));

    for arguments in [
        json!({ "type": "pods", "args": ["delete"] }),
        json!({ "type": "pods", "delete": "pods" }),
        json!({ "type": "pods", "kubeconfig": "/tmp/other" }),
        json!({ "type": "pods", "token": "x" }),
        json!({ "type": "pods", "all_namespaces": "--; kubectl delete pods" }),
        json!({ "type": ["delete", "pods"] }),
    ] {
        assert_eq!(scene.call(expected[0], &arguments).status, Some(2), "{arguments}");
    }
    for value in
        ["delete", "--", "-- delete", "; kubectl delete pods", "$(kubectl delete pods)", "\ndelete"]
    {
        ends_with(
            scene.call(expected[0], &json!({ "type": value, "name": [value], "output": value })),
            0,
        );
    }
    for tool in [
        "kubectl__kubectl_delete",
        "kubectl__delete",
        "kubectl__kubectl_get delete",
        "kubectl__kubectl_exec",
    ] {
        assert_eq!(scene.call(tool, &json!({})).status, Some(4), "{tool}");
    }
    let first: Vec<String> =
        scene.runs().into_iter().filter_map(|run| run.into_iter().next()).collect();
    assert!(!first.is_empty());
    let known = ["--help", "options", "get", "describe", "logs"];
    assert!(first.iter().all(|word| known.contains(&word.as_str())), "{first:?}");
}

/// The documents' read-only example works for a role that may only read.
#[test]
fn c24_a_read_role_may_use_what_the_program_only_shows() {
    let access = "[access]\ndefault = \"deny\"\n[access.roles]\nreader = [{ server = \"*\", access = \"read\" }]\n";
    let only = "cli_only = [\"get\", \"describe\", \"logs\", \"delete\"]";
    let server = format!("[servers.kubectl]\ntype = \"cli\"\ncommand = \"kubectl\"\n{only}\n");
    let scene = Scene::new(with(&format!("{access}\n{server}")));
    for (tool, status) in [("get", 0), ("describe", 0), ("logs", 0), ("delete", 6)] {
        let tool = format!("kubectl_{tool}");
        let words = ["acl", "check", "--role", "reader", "--server", "kubectl", "--tool", &tool];
        ends_with(scene.run(&words), status);
    }
}

/// `get {pods,nodes} -n NS` of argparse is one command with its flags, with the real library.
#[test]
fn argparse_choices_are_values_of_the_command() {
    let script = r#"import argparse
p = argparse.ArgumentParser(prog="ctl")
s = p.add_subparsers(dest="command")
g = s.add_parser("get", help="Display resources")
g.add_argument("kind", choices=["pods", "nodes"])
g.add_argument("-n", "--namespace", metavar="NS")
print(p.parse_args())
"#;
    let world = with(
        "[servers.ctl]\ntype = \"cli\"\ncommand = \"python3\"\nargs = [\"ctl.py\"]\ncwd = \".\"\n",
    );
    world.write("project/ctl.py", script);
    let scene = Scene::new(world);
    assert_eq!(scene.tools(), ["ctl__python3_get"]);
    let told = scene.call("ctl__python3_get", &json!({ "choice": "pods", "namespace": "a" }));
    let stdout = json(&ends_with(told, 0))["structuredContent"]["stdout"].clone();
    assert_eq!(stdout, json!("Namespace(command='get', kind='pods', namespace='a')\n"));
    for arguments in [json!({ "choice": "secrets" }), json!({ "choice": "--help" }), json!({})] {
        assert_eq!(scene.call("ctl__python3_get", &arguments).status, Some(2), "{arguments}");
    }
}

#[test]
fn a_program_with_many_tools_comes_with_the_line_that_limits_it() {
    let server = "[servers.git]\ntype = \"cli\"\ncommand = \"git\"\n";
    let scene = Scene::new(with(server));
    let listed = json(&ends_with(scene.run(&["list", "--wait", "60s", "--json"]), 0));
    let advice = listed[0]["advice"].as_str().unwrap().to_owned();
    says(&advice, "tools cost a model about ");
    says(&advice, "write `cli_only = [\"");
    says(&advice, "under `[servers.git]`");
    says(&ends_with(scene.run(&["list", "--wait", "60s"]), 0).stderr, &advice);
    let checks = json(&ends_with(scene.run(&["doctor", "git", "--json"]), 0));
    let found = checks.as_array().unwrap().iter().find(|check| check["status"] == "warning");
    says(found.unwrap()["fix"].as_str().unwrap(), "cli_only = [");

    let limited = Scene::new(with(&format!("{server}cli_only = [\"status\"]\n")));
    let listed = json(&ends_with(limited.run(&["list", "--wait", "60s", "--json"]), 0));
    assert_eq!(listed[0]["advice"], json!(null));
}

#[test]
fn c25_idle_times_are_adaptive_within_limits_never_or_fixed() {
    let world = avelino(&json!({
        "slack": { "command": "x", "idle_timeout": "adaptive", "min_idle_timeout": "30s", "max_idle_timeout": "5m" },
        "sentry": { "url": "https://example.com/mcp", "idle_timeout": "never" },
        "github": { "command": "x", "idle_timeout": "2m" },
    }));
    let shown = ends_with(world.capstan(["config", "show"]).run(), 0).stdout;
    for (key, value) in [
        ("slack.idle_timeout", "\"adaptive\""),
        ("slack.min_idle_timeout", "\"30s\""),
        ("slack.max_idle_timeout", "\"5m\""),
        ("sentry.idle_timeout", "\"never\""),
        ("github.idle_timeout", "\"2m\""),
    ] {
        let line = shown.lines().find(|line| line.contains(key)).unwrap_or_default();
        says(line, value);
    }
}

#[test]
fn a_program_is_added_and_called_and_its_failure_is_an_answer() {
    let scene = Scene::new(with("[permissions]\nallow = [\"*\"]\n"));
    ends_with(scene.run(&["add", "-s", "user", "-t", "cli", "k", "kubectl"]), 0);
    says(&crate::stage::user_config(&scene.world), "type = \"cli\"");
    assert_eq!(scene.tools().len(), 4);
    let asked = scene.runs().len();
    assert_eq!(scene.tools().len(), 4);
    assert_eq!(scene.runs().len(), asked, "what was found is kept");

    let told = ends_with(scene.call("k__kubectl_logs", &json!({ "name": "-x" })), 1);
    let told = json(&told);
    assert_eq!(told["isError"], json!(true));
    let expected = json!({ "exitCode": 1, "stdout": "logs\n--\n-x\n", "stderr": "no such pod\n" });
    assert_eq!(told["structuredContent"], expected);
    let row = crate::stage::row(&json(&scene.run(&["list", "--json", "--refresh"])), "name", "k");
    assert_eq!(
        (&row["transport"], &row["state"], &row["tools"]),
        (&json!("cli"), &json!("connected"), &json!(4))
    );
}

#[test]
fn a_list_of_tools_replaces_what_would_be_found() {
    let tools = r#"tools = [{ name = "pods", args = ["get", "pods"], description = "Lists pods", input_schema = { properties = { namespace = { type = "string" } } } }]"#;
    let scene = Scene::new(with(&format!(
        "[permissions]\nallow = [\"*\"]\n\n[servers.k]\ncommand = \"kubectl\"\ncli = true\n{tools}\n"
    )));
    assert_eq!(scene.tools(), ["k__pods"]);
    assert!(scene.runs().is_empty(), "{:?}", scene.runs());
    let told = ends_with(scene.call("k__pods", &json!({ "namespace": "--token=x" })), 0);
    assert_eq!(
        json(&told)["structuredContent"]["stdout"],
        json!("get\npods\n--namespace=--token=x\n")
    );
    assert_eq!(scene.call("k__pods", &json!({ "all": true })).status, Some(2));
}

#[test]
fn what_the_configuration_says_of_a_program_must_make_sense() {
    for (keys, piece) in [
        ("cli_only = [\"get\", \"--exec\"]", "contains a word that is not a subcommand"),
        ("cli_only = [\"\"]", "contains a word that is not a subcommand"),
        ("tools = [\"get\"]", "must be a table"),
        ("tools = [{ args = [\"get\"] }]", "has no valid `name`"),
        ("tools = [{ name = \"a b\" }]", "has no valid `name`"),
        ("tools = [{ name = \"a\", argz = [] }]", "is not a known key"),
        ("tools = [{ name = \"a\" }, { name = \"a\" }]", "two tools called `a`"),
        ("tools = { a = 1 }", "must be a table"),
    ] {
        let scene = Scene::new(with(&format!(
            "[servers.k]\ntype = \"cli\"\ncommand = \"kubectl\"\n{keys}\n"
        )));
        let ended = scene.run(&["tools", "k"]);
        assert_ne!(ended.status, Some(0), "{keys}");
        says(&ended.stderr, piece);
        assert!(scene.runs().is_empty(), "{keys}");
    }
    let stdio =
        Scene::new(with("[servers.k]\ncommand = \"kubectl\"\ntools = [{ name = \"a\" }]\n"));
    says(&stdio.run(&["tools", "k"]).stderr, "has no effect for a stdio server");
}

#[test]
fn a_program_that_is_not_listed_is_never_started() {
    let scene = Scene::new(with(
        "[mcp]\nallowed_commands = [\"npx\"]\n\n[servers.k]\ntype = \"cli\"\ncommand = \"kubectl\"\n",
    ));
    let ended = scene.call("k__kubectl_get", &json!({ "type": "pods" }));
    assert_eq!(ended.status, Some(6));
    says(&failure(&ended).1, "mcp.allowed_commands");
    assert!(scene.runs().is_empty());
}

//! Logins at an authorization server that others wrote: npm oidc-provider.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use capstan_testkit::http::{exchange, request};
use capstan_testkit::process::command;
use capstan_testkit::{Capstan, Ended, World, wait_until};
use serde_json::{Value, json};

use crate::remote::{Remote, use_it};
use crate::{LIMIT, installed};

/// A server behind the authorization server, and a home in which nobody is logged in yet.
struct Scene {
    world: World,
    server: Remote,
}

// === impl Scene ===

impl Scene {
    /// Access tokens are valid for this many seconds.
    #[track_caller]
    fn new(lifetime: u32) -> Self {
        let world = World::new();
        let mut node = command(installed("node"));
        node.arg(script("server.mjs")).arg(lifetime.to_string());
        node.env("CAPSTAN_DEV_DIR", std::env::var_os("CAPSTAN_DEV_DIR").unwrap_or_default());
        let server = Remote::start(&world, &mut node);
        use_it(&world, &server.url, "");
        Self { world, server }
    }

    /// A command of a person whose browser logs in by itself.
    fn capstan(&self, arguments: &[&str]) -> Capstan {
        let browser = format!("{} {}", installed("node"), script("browser.mjs").display());
        let capstan = self.world.capstan(arguments).limit(LIMIT);
        capstan.env("BROWSER", browser).env("CAPSTAN_KEYRING", "off")
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.capstan(arguments).run()
    }

    /// Makes all access tokens invalid that were issued until now.
    fn expire(&self) {
        self.ask("POST", "/expire");
    }

    fn count(&self, what: &str) -> u64 {
        self.ask("GET", "/counts")[what].as_u64().unwrap()
    }

    fn ask(&self, method: &str, path: &str) -> Value {
        let address = self.server.url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap();
        let answer = exchange(address, request(method, path).with("connection", "close"));
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap_or_default()
    }

    fn vault(&self) -> PathBuf {
        self.world.data().join("capstan/mcp-tokens.json")
    }

    /// Checks that no file but the vault has a secret, and no output.
    #[track_caller]
    fn finds_no_secret_in(&self, outputs: &[String]) {
        let secrets = self.ask("GET", "/secrets");
        let secrets: Vec<&str> =
            secrets.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(secrets.len() >= 4, "code, verifier and two tokens: {}", secrets.len());
        let vault = fs::read_to_string(self.vault()).unwrap();
        assert!(secrets.iter().any(|secret| vault.contains(secret)), "the vault has the token");
        let mut files = Vec::new();
        walk(self.world.home(), &mut files);
        assert!(files.len() > 3, "{files:?}");
        for secret in secrets {
            for file in files.iter().filter(|file| **file != self.vault()) {
                let text = fs::read(file).unwrap_or_default();
                let found = text.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!found, "a secret is in {}", file.display());
            }
            assert!(outputs.iter().all(|output| !output.contains(secret)), "a secret was printed");
        }
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/oidc-provider").join(name)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// C08 and C09 with a real authorization server.
#[test]
fn c09_a_person_logs_in_once_and_calls_work_over_expiries_and_processes() {
    let scene = Scene::new(3600);
    let before = scene.run(&["call", "it__echo", "n=0"]);
    assert_eq!(before.status, Some(5), "{}", before.stderr);
    assert!(before.stderr.contains("login it`"), "{}", before.stderr);
    let login = scene.run(&["login", "it"]);
    assert_eq!(login.status, Some(0), "{}", login.stderr);
    assert!(login.stderr.contains("scopes: tools"), "{}", login.stderr);
    let mode = fs::metadata(scene.vault()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for round in 0..4 {
        if round > 0 {
            scene.expire();
        }
        thread::scope(|scope| {
            for process in 0..2 {
                let scene = &scene;
                scope.spawn(move || {
                    for call in 0..13 - process {
                        let called = scene.run(&["call", "it__echo", &format!("n={call}")]);
                        assert_eq!(
                            called.stdout.trim(),
                            format!("echo {call}"),
                            "{}",
                            called.stderr
                        );
                    }
                });
            }
        });
    }
    assert_eq!(scene.count("calls"), 100);
    assert_eq!((scene.count("logins"), scene.count("rejected")), (1, 0));
    assert_eq!(scene.count("refreshes"), 3, "one for each expiry");
}

#[test]
fn a_gateway_notices_a_login_and_keeps_it_over_expiries() {
    let scene = Scene::new(3600);
    let mut command = scene.capstan(&["serve", "--http", ":0"]).into_command();
    let gateway = Remote::start(&scene.world, &mut command);
    let call = |n: u32| {
        let call = json!({
            "jsonrpc": "2.0", "id": n, "method": "tools/call",
            "params": { "name": "it__echo", "arguments": { "n": n }, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {} } },
        });
        let address = gateway.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let post = capstan_testkit::http::post("/mcp", &call.to_string())
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", "tools/call")
            .with("mcp-name", "it__echo")
            .with("accept", "application/json, text/event-stream")
            .with("connection", "close");
        exchange(address, post)
    };
    let refused = call(0);
    assert!(refused.contains("auth_failure") && refused.contains("capstan login it"), "{refused}");
    assert_eq!(scene.run(&["login", "it"]).status, Some(0));
    let answer = call(1);
    assert!(answer.contains("echo 1"), "without a restart: {answer}");
    for round in 0..4 {
        if round > 0 {
            scene.expire();
        }
        thread::scope(|scope| {
            scope.spawn(|| (0..20).for_each(|n| assert!(call(n).contains(&format!("echo {n}")))));
            scope.spawn(|| {
                for n in 0..5 {
                    let called = scene.run(&["--no-attach", "call", "it__echo", &format!("n={n}")]);
                    assert_eq!(called.status, Some(0), "{}", called.stderr);
                }
            });
        });
    }
    assert_eq!(scene.count("calls"), 101);
    assert_eq!((scene.count("logins"), scene.count("rejected")), (1, 0));
    assert_eq!(scene.count("refreshes"), 3);
}

#[test]
fn a_login_with_chromium_ends_on_our_page() {
    let scene = Scene::new(3600);
    let picture = scene.world.home().join("page.png");
    let browser =
        format!("{} {} {}", installed("node"), script("chromium.mjs").display(), picture.display());
    let login = scene.capstan(&["login", "it"]).env("BROWSER", browser).run();
    assert_eq!(login.status, Some(0), "{}", login.stderr);
    let called = scene.run(&["call", "it__echo", "n=1"]);
    assert_eq!(called.stdout.trim(), "echo 1", "{}", called.stderr);
    // The browser goes on without us: it draws the last page, and ends.
    assert!(wait_until(|| picture.exists(), LIMIT), "no picture of the last page");
    assert!(fs::read(picture).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn nothing_that_a_login_writes_or_prints_has_a_secret() {
    let scene = Scene::new(3600);
    let mut outputs = Vec::new();
    let mut keep = |ended: Ended| outputs.push(format!("{}{}", ended.stdout, ended.stderr));
    keep(scene.run(&["--debug", "call", "it__echo", "n=0"]));
    keep(scene.run(&["--debug", "login", "it"]));
    keep(scene.run(&["--debug", "call", "it__echo", "n=1"]));
    scene.expire();
    for arguments in [
        &["--debug", "call", "it__echo", "n=2"][..],
        &["--json", "login", "--status"],
        &["login", "--status"],
        &["--json", "list", "--refresh"],
        &["get", "it", "--refresh"],
        &["doctor", "it"],
        &["--json", "audit"],
        &["config", "show"],
    ] {
        keep(scene.run(arguments));
    }
    assert_eq!(scene.count("refreshes"), 1);
    scene.finds_no_secret_in(&outputs);
    let last = scene.run(&["logout", "it", "--revoke"]);
    assert_eq!(last.status, Some(0), "{}", last.stderr);
    assert_eq!(scene.run(&["call", "it__echo", "n=3"]).status, Some(5));
}

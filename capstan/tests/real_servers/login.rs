//! Logins at an authorization server that others wrote: npm oidc-provider.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use capstan_testkit::http::{exchange, request};
use capstan_testkit::process::command;
use capstan_testkit::{Capstan, Ended, World, wait_until};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
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
        let mut node = authorization_server();
        let server = Remote::start(&world, node.arg(lifetime.to_string()));
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

fn authorization_server() -> Command {
    let mut node = command(installed("node"));
    node.arg(script("server.mjs"));
    node.env("CAPSTAN_DEV_DIR", std::env::var_os("CAPSTAN_DEV_DIR").unwrap_or_default());
    node
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
fn a_gateway_with_a_public_address_is_its_own_client_where_documents_are_read() {
    let world = World::new();
    let authority = certificate(&world);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut node = authorization_server();
    node.args(["3600", "documents"]).env("NODE_EXTRA_CA_CERTS", &authority);
    let server = Remote::start(&world, &mut node);
    let (cert, key) = (world.home().join("cert.pem"), world.home().join("key.pem"));
    let gateway = format!(
        "[gateway]\nlisten = \":{port}\"\npublic_url = \"https://localhost:{port}/mcp\"\n\
         tls_cert = {cert:?}\ntls_key = {key:?}\n"
    );
    use_it(&world, &server.url, &gateway);
    let scene = Scene { world, server };
    let login = || {
        let login = scene.capstan(&["login", "it"]).env("SSL_CERT_FILE", &authority).run();
        assert_eq!(login.status, Some(0), "{}", login.stderr);
        assert_eq!(scene.run(&["call", "it__echo", "n=1"]).stdout.trim(), "echo 1");
    };
    let mut serve = scene.capstan(&["serve", "--http"]).into_command();
    let gateway = Remote::start(&scene.world, &mut serve);
    login();
    assert_eq!((scene.count("registrations"), scene.count("logins")), (0, 1));
    assert_eq!(scene.count("documents"), 1, "the authorization server has read our document");
    drop(gateway);
    assert_eq!(scene.run(&["logout", "it"]).status, Some(0));
    login();
    assert_eq!((scene.count("registrations"), scene.count("logins")), (1, 2));
    assert_eq!(scene.count("rejected"), 0);
}

/// A certificate for `localhost` in the home, and the file of its authority.
#[track_caller]
fn certificate(world: &World) -> PathBuf {
    let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Node takes a certificate with the name of its authority for one that signs itself.
    ca.distinguished_name.push(DnType::CommonName, "authority of a test");
    let authority = world.write("ca.pem", ca.self_signed(&ca_key).unwrap().pem());
    let issuer = Issuer::new(ca, ca_key);
    let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    world.write("cert.pem", own.signed_by(&key, &issuer).unwrap().pem());
    world.write("key.pem", key.serialize_pem());
    authority
}

#[test]
fn the_logins_of_another_program_are_taken_over_and_renewed() {
    let scene = Scene::new(3600);
    assert_eq!(scene.run(&["login", "it"]).status, Some(0));
    // As avelino's `mcp` has written them, from the tokens that were just granted.
    let vault: Value = serde_json::from_str(&fs::read_to_string(scene.vault()).unwrap()).unwrap();
    let tokens = vault["entries"]["tokens"].as_object().unwrap().values().next().unwrap();
    let entry: Value = serde_json::from_str(tokens["value"].as_str().unwrap()).unwrap();
    let url = &scene.server.url;
    let foreign = json!({
        "clients": { url: { "client_id": entry["client"]["id"] } },
        "tokens": {
            url: {
                "access_token": entry["access"], "refresh_token": entry["refresh"], "expires_at": 1,
            },
            "https://elsewhere.example/mcp": { "access_token": "x" },
        },
    });
    fs::remove_file(scene.vault()).unwrap();
    let none = scene.run(&["login", "--import"]);
    assert_eq!(none.status, Some(4), "{}", none.stderr);
    scene.world.write(".config/mcp/auth.json", foreign.to_string());
    let imported = scene.run(&["login", "--import"]);
    assert_eq!(imported.status, Some(0), "{}", imported.stderr);
    assert!(imported.stderr.contains("imported the login to `it`"), "{}", imported.stderr);
    assert!(imported.stderr.contains("elsewhere.example"), "{}", imported.stderr);
    let called = scene.run(&["call", "it__echo", "n=1"]);
    assert_eq!(called.stdout.trim(), "echo 1", "{}", called.stderr);
    assert_eq!((scene.count("logins"), scene.count("refreshes")), (1, 1));
    assert_eq!(scene.count("rejected"), 0);
    let again = scene.run(&["login", "--import"]);
    assert!(again.stderr.contains("already"), "{}", again.stderr);
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

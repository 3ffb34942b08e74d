//! Servers that others offer: found in a registry that speaks the real interface, added, refused.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use capstan_testkit::{Ended, World};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;

use crate::stage::{ends_with, json as read_json, ok_json, read, run, says};

/// A registry on the loopback, and what it was asked.
struct Registry {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    /// Answers each of these targets with bytes, and every other with 404.
    fn with(pages: HashMap<String, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                    request.push(byte[0]);
                }
                let request = String::from_utf8_lossy(&request);
                let target = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let page = pages.get(&target);
                heard.lock().unwrap().push(target);
                let (status, body) = match page {
                    Some(body) => ("200 OK", body.as_slice()),
                    None => ("404 Not Found", &b"{}"[..]),
                };
                let length = body.len();
                drop(write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n\
                     Content-Length: {length}\r\nConnection: close\r\n\r\n"
                ));
                drop(stream.write_all(body));
            }
        });
        Self { url, asked }
    }

    fn run(&self, world: &World, words: &str) -> Ended {
        let words = words.split_whitespace();
        world.capstan(words).env("CAPSTAN_REGISTRY", &self.url).run()
    }
}

fn weather() -> Value {
    json!({
        "name": "io.example/weather",
        "description": "Forecasts",
        "version": "1.2.0",
        "packages": [{
            "registryType": "npm",
            "identifier": "@example/weather",
            "version": "1.2.0",
            "transport": { "type": "stdio" },
            "environmentVariables": [
                { "name": "WEATHER_KEY", "isRequired": true, "isSecret": true, "description": "your key" },
            ],
        }],
        "remotes": [{ "type": "streamable-http", "url": "https://weather.example/mcp" }],
    })
}

const FIRST: &str = "/v0.1/servers?limit=100&version=latest&search=weather";

/// A registry that has the weather.
fn registry() -> Registry {
    let listed = |server: Value| json!({ "server": server, "_meta": {} });
    let other = json!({ "name": "io.example/maps", "description": "Maps with weather" });
    let first = json!({
        "servers": [listed(other), { "server": { "name": 1 } }, listed(weather())],
        "metadata": { "nextCursor": "a b", "count": 3 },
    });
    let last = json!({ "servers": [listed(weather())], "metadata": { "count": 1 } });
    let one = "/v0.1/servers/io.example%2Fweather/versions/latest";
    Registry::with(HashMap::from([
        (FIRST.to_owned(), first.to_string().into_bytes()),
        (format!("{FIRST}&cursor=a+b"), last.to_string().into_bytes()),
        (one.to_owned(), listed(weather()).to_string().into_bytes()),
    ]))
}

#[test]
fn servers_are_found_page_by_page_and_each_once_best_first() {
    let (registry, world) = (registry(), World::new());
    let found = read_json(&ends_with(registry.run(&world, "registry search weather --json"), 0));
    assert_eq!(
        found,
        json!([
            {
                "name": "io.example/weather",
                "version": "1.2.0",
                "kinds": ["npm", "streamable-http"],
                "description": "Forecasts",
            },
            {
                "name": "io.example/maps",
                "version": "",
                "kinds": [],
                "description": "Maps with weather",
            },
        ])
    );
    assert_eq!(registry.asked.lock().unwrap().len(), 2);
    let none = ends_with(registry.run(&world, "registry search weather moon"), 0);
    says(&none.stderr, "nothing was found");
}

#[test]
fn what_is_added_is_shown_first_and_takes_its_secrets_from_variables() {
    let (registry, world) = (registry(), World::new());
    let asked = ends_with(registry.run(&world, "registry add io.example/weather"), 2);
    says(&asked.stderr, "npx -y @example/weather@1.2.0");
    says(&asked.stderr, "needs ${WEATHER_KEY}: your key");
    says(&asked.stderr, "add it with `--yes`");
    assert!(!world.config().join("capstan/config.toml").exists());

    ends_with(registry.run(&world, "registry add io.example/weather --yes"), 0);
    let file = read(world.config().join("capstan/config.toml"));
    says(&file, "[servers.weather]\ncommand = \"npx\"");
    says(&file, "args = [\"-y\", \"@example/weather@1.2.0\"]");
    says(&file, "${WEATHER_KEY}");
    // Once is enough.
    let taken = ends_with(registry.run(&world, "registry add io.example/weather --yes"), 2);
    says(&taken.stderr, "choose another name with `--as NAME`");

    let words = "registry add io.example/weather --yes --as far --kind streamable-http";
    ends_with(registry.run(&world, words), 0);
    says(&read(world.config().join("capstan/config.toml")), "https://weather.example/mcp");
}

#[test]
fn a_file_is_read_without_asking_anybody() {
    let world = World::new();
    world.write("project/server.json", weather().to_string());
    ends_with(run(&world, "registry add ./server.json --yes"), 0);
    let servers = ok_json(&world, "config show");
    says(&servers.to_string(), "servers.weather.command");
    ends_with(run(&world, "registry add ./none.json --yes"), 4);
    world.write("project/server.json", r#"{"name":"--x"}"#);
    ends_with(run(&world, "registry add ./server.json --yes"), 3);
}

#[test]
fn a_registry_that_cannot_be_used_is_named_with_what_to_do() {
    let (registry, world) = (registry(), World::new());
    let unknown = ends_with(registry.run(&world, "registry add io.example/moon --yes"), 4);
    says(&unknown.stderr, "has no `io.example/moon`");
    let closed = "registry search x --registry http://127.0.0.1:9";
    says(&ends_with(run(&world, closed), 7).stderr, "the request to http://127.0.0.1:9/");
    ends_with(run(&world, "registry search x --registry ftp://h"), 2);
    let nonsense = Registry::with(HashMap::from([(FIRST.to_owned(), b"[]".to_vec())]));
    let ended = ends_with(nonsense.run(&world, "registry search weather"), 7);
    says(&ended.stderr, "does not answer like a registry");
}

/// The bytes of a bundle that starts `sh`, with this in the manifest besides.
fn bundle(arg: &str, settings: &Value) -> Vec<u8> {
    packed(&manifest(arg, settings))
}

fn manifest(arg: &str, settings: &Value) -> Value {
    json!({
        "user_config": settings,
        "manifest_version": "0.3",
        "name": "packed",
        "version": "1.0.0",
        "description": "A bundle",
        "author": { "name": "somebody" },
        "server": {
            "type": "binary",
            "entry_point": "run",
            "mcp_config": { "command": "${__dirname}/run", "args": [arg], "env": {} },
        },
    })
}

fn packed(manifest: &Value) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in [("manifest.json", manifest.to_string()), ("run", "#!/bin/sh\n".to_owned())]
    {
        zip.start_file(name, SimpleFileOptions::default().unix_permissions(0o755)).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn digest(bytes: &[u8]) -> String {
    let mut digest = String::new();
    for byte in Sha256::digest(bytes) {
        write!(digest, "{byte:02x}").unwrap();
    }
    digest
}

#[test]
fn a_secret_of_a_bundle_is_a_variable_in_the_file_and_never_itself() {
    let settings = json!({
        "api_key": { "type": "string", "sensitive": true, "required": true },
        "pin": { "type": "string", "sensitive": true },
        "mode": { "type": "string", "default": "slow" },
    });
    let added = |arg: &str, words: &str, code: i32| {
        let bytes = bundle(arg, &settings);
        let sha256 = digest(&bytes);
        let files = Registry::with(HashMap::from([("/x.mcpb".to_owned(), bytes)]));
        let world = World::new();
        let package = json!({ "registryType": "mcpb", "fileSha256": sha256,
            "identifier": format!("{}/x.mcpb", files.url) });
        let server = json!({ "name": "io.example/packed", "packages": [package] });
        world.write("project/server.json", server.to_string());
        let line = ["registry", "add", "./server.json", "--yes"].into_iter();
        let run = world.capstan(line.chain(words.split_whitespace()));
        let run = run.env("CAPSTAN_REGISTRY", &files.url);
        let ended = ends_with(run.env("CAPSTAN_PACKED__API_KEY", "s3cret-of-mine").run(), code);
        let file = world.config().join("capstan/config.toml");
        let file = if code == 0 { read(file) } else { String::new() };
        assert!(!format!("{file}{}{}", ended.stdout, ended.stderr).contains("s3cret"), "{file}");
        (file, ended.stderr)
    };
    let key = "--key=${user_config.api_key}:${user_config.mode}";
    let (file, said) = added(key, "", 0);
    says(&file, "args = [\"--key=${CAPSTAN_PACKED__API_KEY}:slow\"]");
    says(
        &said,
        "needs ${CAPSTAN_PACKED__API_KEY} (set in your environment): its setting `api_key`",
    );
    says(
        &said,
        "can use ${CAPSTAN_PACKED__PIN}: its setting `pin`; add it with `--set \
         'pin=${CAPSTAN_PACKED__PIN}'`",
    );
    let (_, said) = added(key, "--set pin=${CAPSTAN_PACKED__PIN}", 0);
    assert!(!said.contains("add it with"), "{said}");
    let (file, said) = added(key, "--set api_key=${MINE} --set mode=fast", 0);
    says(&file, "args = [\"--key=${MINE}:fast\"]");
    assert!(!said.contains("API_KEY"), "{said}");
    let (_, said) = added(key, "--set api_key=s3cret-in-clear", 2);
    says(&said, "`api_key` is a secret, which must not be written to the file");
    says(&said, "--set 'api_key=${CAPSTAN_PACKED__API_KEY}'");
    says(&added(key, "--set other=1", 2).1, "it has: api_key, pin, mode");
    says(&added(key, "--set api_key", 2).1, "write it as `--set KEY=VALUE`");
}

#[test]
fn a_bundle_that_names_a_variable_of_the_user_is_not_added() {
    for (place, value) in [
        ("/server/mcp_config/args", json!(["--key=${HOME}/${AWS_SECRET_ACCESS_KEY}"])),
        ("/server/mcp_config/env", json!({ "A": "${AWS_SECRET_ACCESS_KEY}" })),
        ("/server/mcp_config/env", json!({ "A_${AWS_SECRET_ACCESS_KEY}": "x" })),
        ("/description", json!("It is ${AWS_SECRET_ACCESS_KEY}")),
    ] {
        let mut manifest = manifest("--quiet", &json!({}));
        *manifest.pointer_mut(place).unwrap() = value;
        let bytes = packed(&manifest);
        let sha256 = digest(&bytes);
        let files = Registry::with(HashMap::from([("/x.mcpb".to_owned(), bytes)]));
        let world = World::new();
        let package = json!({ "registryType": "mcpb", "fileSha256": sha256,
            "identifier": format!("{}/x.mcpb", files.url) });
        let server = json!({ "name": "io.example/packed", "packages": [package] });
        world.write("project/server.json", server.to_string());
        let ended = ends_with(files.run(&world, "registry add ./server.json --yes"), 3);
        says(&ended.stderr, "contains a variable, which is not allowed");
        assert!(!world.config().join("capstan/config.toml").exists(), "{place}");
    }
}

#[test]
fn a_bundle_is_kept_only_if_it_is_the_one_that_was_meant() {
    let bytes = bundle("--quiet", &json!({}));
    let digest = digest(&bytes);
    let files = Registry::with(HashMap::from([("/x.mcpb".to_owned(), bytes)]));
    let world = World::new();
    let describe = |sha256: &str| {
        let package = json!({
            "registryType": "mcpb",
            "identifier": format!("{}/x.mcpb", files.url),
            "fileSha256": sha256,
        });
        let server = json!({ "name": "io.example/packed", "packages": [package] });
        world.write("project/server.json", server.to_string());
    };
    for (sha256, what) in [("", "has no digest"), ("00", "does not match the digest")] {
        describe(sha256);
        says(&ends_with(files.run(&world, "registry add ./server.json --yes"), 6).stderr, what);
        assert!(!world.data().join("capstan/bundles").exists());
    }
    describe(&digest);
    // Holes 1: a bundle comes from a public address, or from the registry that the user names.
    let elsewhere = ends_with(run(&world, "registry add ./server.json --yes"), 6);
    says(&elsewhere.stderr, "127.0.0.1 is an address of this machine");
    let asked = ends_with(files.run(&world, "registry add ./server.json"), 2);
    says(&asked.stderr, "/run --quiet");
    says(&asked.stderr, "add it with `--yes`");
    assert!(!world.config().join("capstan/config.toml").exists());
    ends_with(files.run(&world, "registry add ./server.json --yes"), 0);
    let file = read(world.config().join("capstan/config.toml"));
    says(&file, "[servers.packed]");
    says(&file, "/run\"\nargs = [\"--quiet\"]");
}

#[test]
fn what_is_sent_and_which_variables_are_set_is_shown_before_it_is_added() {
    let world = World::new();
    let token =
        json!({ "TOKEN": { "isSecret": true, "isRequired": true, "description": "your\nkey" } });
    let header = json!({ "name": "Authorization", "value": "Bearer {TOKEN}", "variables": token });
    let remote =
        json!({ "type": "sse", "url": "https://weather.example/sse", "headers": [header] });
    let server = |rest: &str, value: Value| {
        world.write("project/server.json", json!({ "name": "a/weather", rest: value }).to_string());
    };
    let add = |variable: &str| {
        let words = ["registry", "add", "./server.json"];
        ends_with(world.capstan(words).env(variable, "kept to myself").run(), 2).stderr
    };
    server("remotes", json!([remote]));
    let said = add("TOKEN");
    says(&said, "header Authorization: Bearer ${WEATHER_TOKEN}");
    says(&said, "needs ${WEATHER_TOKEN}: your key");
    says(&add("WEATHER_TOKEN"), "needs ${WEATHER_TOKEN} (set in your environment): your key");

    let own = json!([
        { "name": "GITHUB_TOKEN", "isRequired": true },
        { "name": "LEVEL", "default": "info" },
    ]);
    let package = json!({ "registryType": "npm", "identifier": "x", "environmentVariables": own });
    server("packages", json!([package]));
    let said = add("GITHUB_TOKEN");
    says(&said, "variable GITHUB_TOKEN: ${GITHUB_TOKEN}");
    says(&said, "variable LEVEL: info");
    says(&said, "needs ${GITHUB_TOKEN} (set in your environment)");
    assert!(!said.contains("kept to myself"), "{said}");
    assert!(!world.config().join("capstan/config.toml").exists());
}

/// Holes 1: what a registry says is no word of the user's.
#[test]
fn an_offer_that_leads_to_this_machine_or_into_a_network_is_not_added() {
    let world = World::new();
    for url in [
        "http://127.0.0.1:6379/mcp",
        "http://localhost:6379/mcp",
        "http://169.254.169.254/mcp",
        "http://10.0.0.1/mcp",
        "http://2130706433/mcp",
        // A variable behind the host hides it from no check, and one in it is not followed.
        "http://127.0.0.1:6380/{team}",
        "http://localhost:6380/mcp?team={team}",
        "http://10.0.0.1/{team}",
        "http:///127.0.0.1/{team}",
        "http://{team}/mcp",
        "http:///{team}/mcp",
        "http://127.0.0.1{team}/mcp",
        "http://far.example:{team}/mcp",
        "http://{team}@far.example/mcp",
    ] {
        let variables = json!({ "team": {} });
        let remote = json!({ "type": "streamable-http", "url": url, "variables": variables });
        let server = json!({ "name": "io.example/far", "remotes": [remote] });
        world.write("project/server.json", server.to_string());
        let ended = ends_with(run(&world, "registry add ./server.json --yes"), 6);
        says(&ended.stderr, "its address is refused");
        assert!(!world.config().join("capstan/config.toml").exists(), "{url}");
    }
    let (url, variables) = ("https://1.1.1.1/{team}?x={team}", json!({ "team": {} }));
    let remote = json!({ "type": "streamable-http", "url": url, "variables": variables });
    let server = json!({ "name": "io.example/far", "remotes": [remote] });
    world.write("project/server.json", server.to_string());
    ends_with(run(&world, "registry add ./server.json --yes"), 0);
}

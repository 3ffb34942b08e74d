//! Servers in a sandbox, through the command line.
//!
//! These tests need a kernel with Landlock (ABI 6), seccomp and user namespaces; without, they fail
//! with the reason that the server gives.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use capstan_testkit::World;
use serde_json::json;

use crate::stage::{ends_with, fixture, ok_json, quoted, row, run, says, with};

/// A world with a program that shows files and asks hosts, and a key in the home folder.
fn world(sandbox: &str) -> World {
    let world = World::new();
    world.write(".ssh/id_ed25519", "PRIVATE KEY");
    world.write("notes/a.txt", "a note");
    // The words of a call are the last ones.
    let tool = |name: &str, script: &str| {
        let script = quoted(&format!("for x do :; done; {script}"));
        format!(
            "{{ name = \"{name}\", args = [\"-c\", {script}, \"sh\"], description = \"{name}\", \
             input_schema = {{ type = \"object\", properties = {{ args = {{ type = \"array\", \
             items = {{ type = \"string\" }} }} }} }} }}"
        )
    };
    let tools = [
        tool("show", "cat \"$x\""),
        tool("put", "echo put > \"$x\""),
        tool("ask", "curl -sS --max-time 20 \"$x\""),
        tool("leave", "setsid true"),
    ];
    world.write_user_config(&format!(
        "[permissions]\nallow = [\"*\"]\n\n[servers.box]\ncommand = \"/bin/sh\"\ncli = true\n\
         sandbox = {sandbox}\ntools = [{}]\n",
        tools.join(", ")
    ));
    world
}

/// The output of a tool of the box, which must end with this code.
#[track_caller]
fn does(world: &World, tool: &str, x: &str, code: i32) -> String {
    let arguments = json!({ "args": [x] }).to_string();
    let ended = world.capstan(["call", &format!("box__{tool}"), &arguments]).run();
    let ended = ends_with(ended, code);
    format!("{}{}", ended.stdout, ended.stderr)
}

#[test]
fn a_confined_program_reads_and_writes_what_its_entry_lists_and_no_keys() {
    let world = world("{ read = [\"~/notes\"] }");
    let path = |name: &str| world.home().join(name).display().to_string();
    says(&does(&world, "show", &path("notes/a.txt"), 0), "a note");
    says(&does(&world, "show", &path(".ssh/id_ed25519"), 1), "Permission denied");
    does(&world, "put", &path("notes/new.txt"), 1);
    does(&world, "put", &path("new.txt"), 1);
    assert!(!world.home().join("notes/new.txt").exists());
    assert!(!world.home().join("new.txt").exists());
    does(&world, "leave", "x", 1);
    says(&does(&world, "show", "/proc/self/status", 0), "NoNewPrivs:\t1");
}

#[test]
fn a_program_without_a_sandbox_is_not_confined() {
    let world = world("false");
    let key = world.home().join(".ssh/id_ed25519");
    says(&does(&world, "show", key.to_str().unwrap(), 0), "PRIVATE KEY");
}

#[test]
fn a_confined_program_reaches_listed_hosts_through_the_proxy_and_no_others() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let length = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
            .unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let listed = world(&format!("{{ net = [\"127.0.0.1:{port}\"] }}"));
    says(&does(&listed, "ask", &format!("http://127.0.0.1:{port}/path"), 0), "hello");
    assert!(served.join().unwrap().starts_with("GET /path HTTP/1.1\r\n"));
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://127.0.0.1:{}/", other.local_addr().unwrap().port());
    let told = does(&listed, "ask", &address, 0);
    says(&told, "is not listed in `servers.box.sandbox.net`");
    says(&told, "a sandboxed server was refused a host");
    // Without a list there is no network at all.
    does(&world("true"), "ask", &address, 1);
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "a connection arrived");
}

#[test]
fn a_confined_server_speaks_mcp_and_has_folders_of_its_own() {
    let world =
        with(&format!("[permissions]\nallow = [\"*\"]\n\n{}sandbox = true\n", fixture("f", &[])));
    ends_with(run(&world, "call f__echo"), 0);
    let private: Vec<_> = fs::read_dir(world.cache().join("capstan/sandbox")).unwrap().collect();
    assert_eq!(private.len(), 1);
    let doctor = ok_json(&world, "doctor");
    assert_eq!(row(&doctor, "check", "sandbox")["status"], "ok");
}

#[test]
fn sandboxed_trust_confines_by_default() {
    let world = world("false");
    let key = world.home().join(".ssh/id_ed25519");
    let config = fs::read_to_string(world.config().join("capstan/config.toml")).unwrap();
    let trust = "trust = \"sandboxed\"\nexpose = [\"show\"]\n";
    world.write_user_config(&config.replace("sandbox = false\n", trust));
    says(&does(&world, "show", key.to_str().unwrap(), 1), "Permission denied");
}

#[test]
fn a_sandbox_that_cannot_be_set_up_stops_the_server_and_says_why() {
    let entry = fixture("f", &[]);
    // A file where the private folder belongs.
    let world = with(&format!("{entry}sandbox = true\n"));
    world.write(world.cache().join("capstan/sandbox"), "in the way");
    let ended = ends_with(run(&world, "call f__echo"), 7);
    says(&ended.stderr, "of its sandbox cannot be made");
}

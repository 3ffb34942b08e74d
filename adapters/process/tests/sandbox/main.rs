//! A program in a sandbox reaches what it was given, and nothing else.
//!
//! These tests need a kernel with Landlock (ABI 6), seccomp and user namespaces. Where one is
//! missing they fail, with the reason that the keeper gives.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use capstan_process::sandbox::Limits;

use world::World;

#[tokio::test]
async fn a_program_reads_the_system_and_what_it_was_given() {
    let mut world = World::new();
    let notes = world.file("notes/a.txt", "a note");
    world.sandbox.read.push(notes.parent().unwrap().to_owned());
    world.does(&["read", notes.to_str().unwrap()], "done a note").await;
    world.does(&["read", "/etc/hosts"], "done").await;
    world.does(&["read", "/proc/self/comm"], "done").await;
    let own = world.sandbox.private.join("home/own");
    world.does(&["write", own.to_str().unwrap()], "done").await;
    world
        .does(&["folder"], &format!("done {}", world.sandbox.private.join("home").display()))
        .await;
    let private = world.sandbox.private.join("tmp").display().to_string();
    world.does(&["environment", "TMPDIR"], &format!("done {private}")).await;
}

#[tokio::test]
async fn a_program_cannot_read_the_keys_of_the_user() {
    let world = World::new();
    let key = world.file("home/.ssh/id_ed25519", "PRIVATE");
    let other = world.file("home/notes.txt", "private");
    for path in [key.to_str().unwrap(), other.to_str().unwrap(), "/etc/shadow"] {
        if std::path::Path::new(path).exists() {
            world.does(&["read", path], "refused PermissionDenied").await;
        }
    }
    for folder in [key.parent().unwrap(), world.sandbox.home.as_path()] {
        world.does(&["list", folder.to_str().unwrap()], "refused PermissionDenied").await;
    }
    // Neither a working directory above the home folder nor a link opens it.
    let mut above = World::new();
    let key = above.file("home/.ssh/id_ed25519", "PRIVATE");
    above.cwd = Some(above.sandbox.home.clone());
    above.does(&["read", key.to_str().unwrap()], "refused PermissionDenied").await;
    let linked = above.folder.path().join("linked");
    std::os::unix::fs::symlink(&above.sandbox.home, &linked).unwrap();
    above.cwd = Some(linked);
    above.does(&["read", key.to_str().unwrap()], "refused PermissionDenied").await;
    let link = above.sandbox.private.join("home/link");
    above.does(&["link", key.to_str().unwrap(), link.to_str().unwrap()], "refused").await;
}

#[tokio::test]
async fn a_program_cannot_change_what_it_may_only_read() {
    let mut world = World::new();
    let notes = world.file("notes/a.txt", "a note");
    let drafts = world.file("drafts/b.txt", "a draft");
    world.sandbox.read.push(notes.parent().unwrap().to_owned());
    world.sandbox.write.push(drafts.parent().unwrap().to_owned());
    let outside = world.folder.path().join("outside.txt");
    for path in [&notes, &outside] {
        world.does(&["write", path.to_str().unwrap()], "refused PermissionDenied").await;
    }
    world.does(&["remove", notes.to_str().unwrap()], "refused PermissionDenied").await;
    world.does(&["write", "/tmp/capstan-probe"], "refused PermissionDenied").await;
    world.does(&["write", drafts.to_str().unwrap()], "done").await;
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "a note");
    assert_eq!(std::fs::read_to_string(&drafts).unwrap(), "written");
    assert!(!outside.exists());
}

#[tokio::test]
async fn a_program_without_hosts_reaches_no_network_not_even_this_machine() {
    let world = World::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    world.does(&["connect", &address], "refused ConnectionRefused").await;
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "a connection arrived");
    world.does(&["environment", "HTTPS_PROXY"], "done").await;
}

#[tokio::test]
async fn a_program_cannot_reach_sockets_of_other_programs() {
    let mut world = World::new();
    let path = world.folder.path().join("docker.sock");
    let listener = UnixListener::bind(&path).unwrap();
    world.sandbox.write.push(world.folder.path().to_owned());
    world.does(&["unix", path.to_str().unwrap()], "refused PermissionDenied").await;
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "a connection arrived");
}

#[tokio::test]
async fn a_program_cannot_reach_its_parent_or_leave_its_group() {
    let world = World::new();
    let hub = std::process::id().to_string();
    world.does(&["ptrace", &hub], "refused PermissionDenied").await;
    world.does(&["kill", &hub], "refused PermissionDenied").await;
    world.does(&["read", &format!("/proc/{hub}/environ")], "refused PermissionDenied").await;
    world.does(&["read", &format!("/proc/{hub}/mem")], "refused PermissionDenied").await;
    world.does(&["setsid"], "refused PermissionDenied").await;
    world.does(&["setpgid"], "refused PermissionDenied").await;
    world.does(&["unshare"], "refused PermissionDenied").await;
}

#[tokio::test]
async fn the_proxy_is_reached_by_this_program_only() {
    let mut world = World::new();
    let (proxy, socket) = world.proxy();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        let mut request = String::new();
        stream.read_to_string(&mut request).unwrap();
        stream.write_all(format!("answer to {request}").as_bytes()).unwrap();
    });
    world.does(&["proxy", "hello"], "done answer to hello").await;
    served.join().unwrap();
    assert!(!socket.exists(), "the socket still has a name");
}

#[tokio::test]
async fn resources_are_limited() {
    let mut world = World::new();
    world.sandbox.limits =
        Limits { memory: Some(64 << 20), file_size: Some(1 << 20), ..Limits::default() };
    world.does(&["memory", "1000000"], "done 1000000").await;
    world.does(&["memory", "100000000"], "refused OutOfMemory").await;
    world.does(&["grow", "1000"], "done").await;
    // The kernel ends a program that writes more.
    assert_eq!(world.run(&["grow", "2000000"]).await.0, "");
}

#[tokio::test]
async fn a_limit_that_cannot_be_enforced_refuses_the_start() {
    let mut world = World::new();
    world.sandbox.limits.processes = Some(64);
    let (said, complained) = world.run(&["read", "/etc/hosts"]).await;
    if rustix::process::getuid().is_root() {
        assert_eq!(said, "");
        assert!(complained.contains("cannot be enforced for root"), "{complained}");
    } else {
        assert!(said.starts_with("done"), "{said} {complained}");
    }
}

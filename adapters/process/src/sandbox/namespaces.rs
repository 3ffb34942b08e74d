//! The namespaces of a sandbox: a network of its own, and no shared memory with other programs.

use std::io;
use std::net::TcpListener;

use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use rustix::process::{getgid, getuid};
use std::os::fd::AsRawFd as _;

/// The message if the kernel does not allow them.
const REFUSED: &str = "this system does not let programs have a network namespace of their own; \
                       allow unprivileged user namespaces (sysctl `user.max_user_namespaces`, \
                       `kernel.unprivileged_userns_clone`, `kernel.apparmor_restrict_unprivileged_userns`)";

/// Moves this process into new namespaces. It must not have a second thread.
///
/// # Errors
/// If the kernel does not allow it.
pub(crate) fn enter() -> io::Result<()> {
    let separate = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    // Root needs no user namespace; in a container it often has not this right, and takes one.
    if unshare(separate).is_err() {
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        unshare(CloneFlags::CLONE_NEWUSER | separate)
            .map_err(|error| io::Error::other(format!("{REFUSED}: {error}")))?;
        let refused = |error| io::Error::other(format!("{REFUSED}: {error}"));
        std::fs::write("/proc/self/setgroups", "deny").map_err(refused)?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(refused)?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(refused)?;
    }
    raise_loopback()
        .map_err(|error| io::Error::other(format!("its network cannot be set up: {error}")))
}

/// Listens for connections of the sandbox to its proxy, on its own loopback.
///
/// # Errors
/// If no port can be had.
pub(crate) fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Switches the loopback interface on: a new network namespace has it, switched off.
fn raise_loopback() -> io::Result<()> {
    let routes = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    // `nlmsghdr`, then `ifinfomsg` for interface 1 with the flag `IFF_UP`.
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&NETLINK_REQUEST_ACK.to_ne_bytes());
    message.extend_from_slice(&1_u32.to_ne_bytes());
    message.extend_from_slice(&0_u32.to_ne_bytes());
    message.extend_from_slice(&[0, 0, 0, 0]);
    message.extend_from_slice(&1_i32.to_ne_bytes());
    message.extend_from_slice(&libc::IFF_UP.to_ne_bytes());
    message.extend_from_slice(&libc::IFF_UP.to_ne_bytes());
    sendto(routes.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = [0_u8; 256];
    let read = recv(routes.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    // `nlmsghdr`, then the error number, which is 0 for an acknowledgement.
    let code = answer.get(..read).and_then(|answer| answer.get(16..20));
    let code = code.and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::other("the kernel's answer about loopback is too short")),
    }
}

/// `NLM_F_REQUEST` and `NLM_F_ACK`.
const NETLINK_REQUEST_ACK: u16 = 0x1 | 0x4;

//! The system calls that a sandbox may not make, by seccomp. They fail with `EPERM`.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// System calls of other machines' number tables that this one also accepts (x32).
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// System calls that are always refused.
const REFUSED: &[i64] = &[
    // Other processes: their memory, their files.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The process group and session that the keeper supervises.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // File systems, which would get around the rules for files.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_fanotify_init,
    // Namespaces; `clone` with their flags is below.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Parts of the kernel with many weaknesses.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys of the user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Flags of `clone` that make namespaces.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The kinds of sockets that a sandbox may make. Unix sockets of other programs, such as Docker's,
/// are not among them; pairs of sockets are made by another system call.
const SOCKETS: &[i32] = &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Restricts this process, and all that it will start.
pub(super) fn apply() -> io::Result<()> {
    for filter in filters()? {
        apply_filter(&filter).map_err(|error| {
            io::Error::other(format!("this kernel cannot filter system calls (seccomp): {error}"))
        })?;
    }
    Ok(())
}

/// The filters: one for system calls that are refused, one for `clone3`, whose flags a filter
/// cannot read. Programs use `clone` where it does not exist.
fn filters() -> io::Result<Vec<BpfProgram>> {
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![compile(refused()?, libc::EPERM)?, compile(all_tables(absent), libc::ENOSYS)?])
}

fn refused() -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let flags = NAMESPACES.iter().map(|flag| {
        let bit = u64::from(flag.cast_unsigned());
        rule(vec![condition(0, SeccompCmpOp::MaskedEq(bit), bit)?])
    });
    rules.insert(libc::SYS_clone, flags.collect::<io::Result<_>>()?);
    let kinds =
        SOCKETS.iter().map(|kind| condition(0, SeccompCmpOp::Ne, u64::from(kind.cast_unsigned())));
    rules.insert(libc::SYS_socket, vec![rule(kinds.collect::<io::Result<_>>()?)?]);
    // Typing into the terminal of the person who started us.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX]
        .map(|request| rule(vec![condition(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<io::Result<_>>()?);
    Ok(all_tables(rules))
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn condition(argument: u8, compare: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)
        .map_err(io::Error::other)
}

/// Adds the same system calls by their numbers for x32 programs, and those that only x32 has.
#[cfg(target_arch = "x86_64")]
fn all_tables(mut rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    let twins: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
    rules.extend(twins);
    rules.extend((512..=547).map(|call| (call | X32, Vec::new())));
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn all_tables(rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    rules
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> io::Result<BpfProgram> {
    let machine = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        io::Error::other(format!(
            "system calls cannot be filtered on this processor ({})",
            std::env::consts::ARCH
        ))
    })?;
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)
        .and_then(BpfProgram::try_from)
        .map_err(|error| io::Error::other(format!("the filter of system calls: {error}")))
}

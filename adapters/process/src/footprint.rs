//! Memory and processor time of a server's keeper and all processes below it, from `/proc`. Systems
//! without `/proc` give no result.

use std::fs;
use std::time::Duration;

use capstan_hub::ports::Footprint;

/// The largest number of processes counted per server.
const MAX_PROCESSES: usize = 1000;

/// The ticks per second in which Linux reports processor time.
/// This is independent of the kernel's own clock.
const TICKS_A_SECOND: u64 = 100;

const KIB: u64 = 1024;

/// Sums up a process and everything below it.
pub fn of(root: u32) -> Option<Footprint> {
    let mut all = Footprint::default();
    let mut open = vec![root];
    let mut seen = 0;
    while let Some(pid) = open.pop() {
        seen += 1;
        // It may have ended meanwhile.
        let Some((memory, cpu)) = one(pid) else { continue };
        all.memory = all.memory.saturating_add(memory);
        all.cpu = all.cpu.saturating_add(cpu);
        all.processes = all.processes.saturating_add(1);
        if seen + open.len() < MAX_PROCESSES {
            open.extend(children(pid));
        }
    }
    (all.processes > 0).then_some(all)
}

fn one(pid: u32) -> Option<(u64, Duration)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some((memory_in(&status), cpu_in(&stat)?))
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| -> Vec<u32> {
        list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    lists.flat_map(numbers).collect()
}

/// The resident memory in `/proc/PID/status`; a process that has ended has none.
fn memory_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_default().saturating_mul(KIB)
}

/// The processor time in `/proc/PID/stat`: its own, and that of children that have ended. Fields
/// are counted from the last closing parenthesis, because the command's name may contain any
/// character.
fn cpu_in(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let times = rest.split_ascii_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks.saturating_mul(1000 / TICKS_A_SECOND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_are_read_whatever_the_command_is_called() {
        let stat = "7 (a) R 9 9) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 20 30 20 0 1 0 99";
        assert_eq!(cpu_in(stat), Some(Duration::from_millis(2500)));
        assert_eq!(cpu_in(""), None);
        assert_eq!(memory_in("Name:\tx\nVmRSS:\t    1234 kB\n"), 1234 * 1024);
        assert_eq!(memory_in("Name:\tx\nState:\tZ (zombie)\n"), 0);
    }

    #[test]
    fn a_process_that_is_not_there_uses_nothing() {
        assert_eq!(of(u32::MAX), None);
    }

    #[test]
    fn this_process_uses_something() {
        let own = of(std::process::id()).unwrap();
        assert!(own.memory > 0 && own.processes >= 1, "{own:?}");
    }
}

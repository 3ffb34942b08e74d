//! Plays `capstan` in the tests of this crate, as the keeper; and the program in its sandbox, which
//! tries one thing and prints how it went.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use capstan_process::keeper;
use nix::sched::{CloneFlags, unshare};
use rustix::process::Pid;

/// The longest wait for a connection, so that a test cannot hang.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == keeper::KEEPER => return keeper::run(arguments),
        Some(first) => {
            let words: Vec<String> =
                arguments.map(|word| word.to_string_lossy().into_owned()).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let line = match attempt(&first.to_string_lossy(), &words) {
                Ok(text) => format!("done {text}"),
                Err(error) => format!("refused {:?}", error.kind()),
            };
            drop(writeln!(io::stdout(), "{}", line.trim_end()));
        }
        None => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Tries one thing.
#[expect(clippy::disallowed_methods, reason = "the environment is what the tests ask for")]
fn attempt(what: &str, words: &[&str]) -> io::Result<String> {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let pid = || word(0).parse().ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput);
    match what {
        "read" => std::fs::read_to_string(word(0)),
        "list" => Ok(std::fs::read_dir(word(0))?.count().to_string()),
        "write" => std::fs::write(word(0), "written").map(|()| String::new()),
        "grow" => grow(word(0)),
        "remove" => std::fs::remove_file(word(0)).map(|()| String::new()),
        "link" => std::fs::hard_link(word(0), word(1)).map(|()| String::new()),
        "connect" => {
            let address: SocketAddr = word(0).parse().map_err(io::Error::other)?;
            TcpStream::connect_timeout(&address, PATIENCE).map(|_| String::new())
        }
        "unix" => UnixStream::connect(word(0)).map(|_| String::new()),
        "proxy" => through_proxy(word(0)),
        "ptrace" => {
            let pid = nix::unistd::Pid::from_raw(pid()?.as_raw_nonzero().get());
            nix::sys::ptrace::attach(pid)?;
            Ok(String::new())
        }
        "kill" => Ok(rustix::process::test_kill_process(pid()?).map(|()| String::new())?),
        "setsid" => Ok(rustix::process::setsid().map(|_| String::new())?),
        "setpgid" => Ok(rustix::process::setpgid(None, None).map(|()| String::new())?),
        "unshare" => Ok(unshare(CloneFlags::CLONE_NEWUSER).map(|()| String::new())?),
        "environment" => Ok(std::env::var(word(0)).unwrap_or_default()),
        "folder" => Ok(std::env::current_dir()?.display().to_string()),
        "memory" => allocate(word(0)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Asks the proxy that the environment names.
#[expect(clippy::disallowed_methods, reason = "the environment is what the tests ask for")]
fn through_proxy(request: &str) -> io::Result<String> {
    let proxy = std::env::var("HTTPS_PROXY").map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Writes a file of this many bytes.
fn grow(bytes: &str) -> io::Result<String> {
    let file = std::fs::File::create(std::env::temp_dir().join("grown"))?;
    file.set_len(bytes.parse().map_err(io::Error::other)?)?;
    Ok(String::new())
}

/// Fills this many bytes of memory.
fn allocate(bytes: &str) -> io::Result<String> {
    let mut memory: Vec<u8> = Vec::new();
    let bytes = bytes.parse().map_err(io::Error::other)?;
    memory.try_reserve_exact(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    memory.resize(bytes, 1);
    Ok(memory.len().to_string())
}

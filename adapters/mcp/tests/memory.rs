//! A server that prints without end costs time and not memory.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{Backend, Lane};
use capstan_mcp::Others;
use capstan_mcp::settings::{Elicitation, max_message};
use capstan_mcp::{Era, StdioServer, StdioSettings};
use capstan_model::{ErrorCode, Secret};
use capstan_testkit::binary;

/// How much more memory the hub may ever have needed, in KiB.
const MAX_GROWTH: u64 = 64 * 1024;

const GIB: &str = "1073741824";

const QUARTER: &str = "268435456";

/// The most memory that this process has ever had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

fn server(command: &str, args: &[&str]) -> Arc<StdioServer> {
    Arc::new(StdioServer::new(StdioSettings {
        name: "s".parse().unwrap(),
        command: command.to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        environment: [("PATH".to_owned(), Secret::new("/usr/bin:/bin".to_owned()))].into(),
        secrets: Vec::new(),
        withheld: capstan_mcp::settings::Withheld::default(),
        cwd: None,
        startup_timeout: Duration::from_mins(1),
        timeout: Duration::from_mins(1),
        max_message: max_message(0),
        era: Era::Auto,
        roots: Vec::new(),
        elicitation: Elicitation::Off,
        others: Others::default(),
        keeper: PathBuf::from(env!("CARGO_BIN_EXE_capstan-stand-in")),
        sandbox: None,
    }))
}

#[tokio::test]
async fn a_server_that_prints_a_gibibyte_without_a_newline_fails() {
    let server = server(binary("capstan-fixture").to_str().unwrap(), &["--flood", GIB]);
    let before = peak();
    // Holes 10: 16 MiB of a message, and the 256 MiB that are passed over.
    let words = "it sent something that is not MCP: it printed more than 285212672 bytes without a \
                 newline";
    let error = Arc::clone(&server).connect(Lane::ANY).await.err().unwrap();
    assert_eq!((error.code(), error.retryable()), (ErrorCode::ServerError, false), "{error}");
    let growth = peak() - before;
    assert!(growth < MAX_GROWTH, "{growth} KiB");
    let state = server.state();
    assert_eq!((state.name().as_str(), state.reason()), ("failed", Some(words)));
    server.close().await;
}

#[tokio::test]
async fn a_server_that_complains_without_a_newline_is_served() {
    let script = format!("head -c {QUARTER} /dev/zero >&2; exec \"$0\"");
    let fixture = binary("capstan-fixture");
    let server = server("sh", &["-c", &script, fixture.to_str().unwrap()]);
    let before = peak();
    Arc::clone(&server).connect(Lane::ANY).await.unwrap();
    let growth = peak() - before;
    assert!(growth < MAX_GROWTH, "{growth} KiB");
    assert_eq!(server.stderr().len(), 1);
    server.close().await;
}

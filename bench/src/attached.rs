//! One call from the command line that a running gateway makes: `capstan call` against a client that
//! does nothing but write one line to the gateway's socket and read what comes back.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use capstan_testkit::{World, wait_until};
use serde_json::json;

use crate::oneshot::{OneShot, built, median, timed};

/// How often each of the two runs, after one run that is not counted.
const RUNS: u32 = 101;

/// The ratio should not be above this.
const GOAL: f64 = 2.0;

/// How long the gateway may take to be there.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway that ends with the measurement.
struct Gateway(Child);

/// Measures both in turns.
pub(crate) fn measure() -> anyhow::Result<OneShot> {
    let world = World::new();
    let fixture = json!(built("capstan-fixture")?);
    world.write_user_config(&format!(
        "[servers.instant]\ncommand = {fixture}\n\n[permissions]\nallow = [\"*\"]\n"
    ));
    let gateway = Gateway::start(&world)?;
    let words = ["call", "instant__echo", "message=hi"];
    let mut capstan = world.program(built("capstan")?, words).into_command();
    let typed: Vec<&str> = ["capstan"].into_iter().chain(words).collect();
    let order =
        json!({ "words": typed, "here": world.project(), "terminal": false, "person": false });
    let socket = gateway.socket(&world);
    let socket = socket.to_str().context("a path is not UTF-8")?;
    let thin = ["--socket", socket, &order.to_string()];
    let mut thin = world.program(built("capstan-thinclient")?, thin).into_command();
    let (mut of_capstan, mut of_thin) = (Vec::new(), Vec::new());
    timed(&mut capstan)?;
    timed(&mut thin)?;
    for _ in 0..RUNS {
        of_capstan.push(timed(&mut capstan)?);
        of_thin.push(timed(&mut thin)?);
    }
    let (capstan_ms, smallest_client_ms) = (median(of_capstan), median(of_thin));
    let ratio = capstan_ms / smallest_client_ms;
    let (server, runs, goal) = ("instant, in a gateway", RUNS, GOAL);
    Ok(OneShot { server, runs, capstan_ms, smallest_client_ms, ratio, goal, met: ratio <= goal })
}

// === impl Gateway ===

impl Gateway {
    fn start(world: &World) -> anyhow::Result<Self> {
        let serve = ["serve", "--http", ":0"];
        let mut command = world.program(built("capstan")?, serve).into_command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let gateway = Self(command.spawn().context("cannot start the gateway")?);
        let socket = gateway.socket(world);
        ensure!(wait_until(|| Path::exists(&socket), PATIENCE), "the gateway has no socket");
        Ok(gateway)
    }

    fn socket(&self, world: &World) -> std::path::PathBuf {
        world.runtime().join(format!("capstan/gateway-{}.sock", self.0.id()))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

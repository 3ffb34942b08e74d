//! `./dev/bench auth`: what the authentication of callers adds to a call at the gateway.
//!
//! The gateway runs under valgrind, which counts its instructions; the server is a process of its
//! own and does not count.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::SystemTime;

use anyhow::{Context, anyhow, ensure};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use capstan_testkit::World;
use serde::Serialize;
use serde_json::{Value, json};

use crate::count::{COUNTING, collected};
use crate::oneshot::built;
use crate::peer::Gateway;
use crate::table::Table;

/// Calls of the shorter run, after which nothing is done for the first time any more.
const FEW: u64 = 200;

/// Calls of the longer run.
const MANY: u64 = 2200;

/// How often each run is made. The start and watching files cost more in some runs; the fewest
/// instructions count.
const RUNS: u32 = 3;

/// Authentication may make a call cost so many times as many instructions.
const MAX_RATIO: f64 = 1.03;

/// The measurements of all providers.
#[derive(Serialize)]
pub(crate) struct Report {
    max_ratio: f64,
    providers: Vec<Measured>,
    met: bool,
}

/// The cost of a call with one provider.
#[derive(Serialize)]
struct Measured {
    provider: &'static str,
    instructions: u64,
    /// Relative to a gateway that authenticates nobody.
    ratio: f64,
    met: bool,
}

/// A provider: its part of the configuration, and the token of the caller.
struct Way {
    provider: &'static str,
    config: String,
    token: Option<String>,
}

// === impl Report ===

impl Report {
    pub(crate) fn measure() -> anyhow::Result<Self> {
        let open = none().instructions()?;
        let mut providers = vec![Measured::new("none", open, open)];
        for way in [bearer(), jwt()?] {
            providers.push(Measured::new(way.provider, way.instructions()?, open));
        }
        let met = providers.iter().all(|one| one.met);
        Ok(Self { max_ratio: MAX_RATIO, providers, met })
    }

    pub(crate) fn print_table(&self) -> anyhow::Result<ExitCode> {
        let mut table = Table::new(["provider", "instructions per call", "ratio", "goal", "met"]);
        for one in &self.providers {
            table.row([
                one.provider.to_owned(),
                one.instructions.to_string(),
                format!("{:.4}", one.ratio),
                format!("≤ {MAX_RATIO}"),
                (if one.met { "yes" } else { "no" }).to_owned(),
            ]);
        }
        write!(io::stdout(), "{table}")?;
        Ok(self.exit())
    }

    pub(crate) fn print_json(&self) -> anyhow::Result<ExitCode> {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(self)?)?;
        Ok(self.exit())
    }

    fn exit(&self) -> ExitCode {
        if self.met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

// === impl Measured ===

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "a ratio of two counts")]
    fn new(provider: &'static str, instructions: u64, open: u64) -> Self {
        let ratio = instructions as f64 / open as f64;
        Self { provider, instructions, ratio, met: ratio <= MAX_RATIO }
    }
}

// === impl Way ===

impl Way {
    /// Instructions of one call: of two runs of different length, so that starting cancels out.
    fn instructions(&self) -> anyhow::Result<u64> {
        let (few, many) = (self.fewest(FEW)?, self.fewest(MANY)?);
        Ok(many.saturating_sub(few) / (MANY - FEW))
    }

    /// The fewest instructions of several runs of so many calls.
    fn fewest(&self, calls: u64) -> anyhow::Result<u64> {
        let counts: Vec<u64> = (0..RUNS).map(|_| self.count(calls)).collect::<Result<_, _>>()?;
        counts.into_iter().min().context("no run")
    }

    /// Instructions of a gateway that answers so many calls.
    fn count(&self, calls: u64) -> anyhow::Result<u64> {
        let world = World::new();
        let fixture = built("capstan-fixture")?;
        let fixture = serde_json::to_string(fixture.to_str().context("a path is not UTF-8")?)?;
        let config = &self.config;
        // The audit log is written from time to time, whatever the number of calls.
        world.write_user_config(&format!(
            "[permissions]\nallow = [\"*\"]\n\n[audit]\nenabled = false\n\n{config}\n\
             [servers.f]\ncommand = {fixture}\nidle_timeout = \"never\"\n"
        ));
        let said = world.home().join("valgrind");
        let mut command = world.program("valgrind", COUNTING).into_command();
        command.arg(format!("--log-file={}", said.display()));
        command.arg(built("capstan")?).args(["serve", "--http", "127.0.0.1:0"]);
        let gateway = Gateway::spawn(command)?;
        if self.token.is_some() {
            let refused = gateway.client()?.works("f__echo").is_err();
            ensure!(refused, "a call without a token is not refused");
        }
        let header = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let mut client = gateway.client_with(header.unwrap_or_default())?;
        for _ in 0..calls {
            ensure!(client.works("f__echo")?, "a call fails with `{}`", self.provider);
        }
        gateway.stop()?;
        let said = fs::read_to_string(said)?;
        collected(&said).with_context(|| format!("valgrind does not say what it counted: {said}"))
    }
}

fn none() -> Way {
    Way { provider: "none", config: String::new(), token: None }
}

fn bearer() -> Way {
    let token = "t".repeat(43);
    let config = format!(
        "[gateway.auth]\nproviders = [\"bearer\"]\n\n[gateway.auth.bearer.tokens]\n{token} = \"ann\"\n"
    );
    Way { provider: "bearer", config, token: Some(token) }
}

/// A token of an issuer whose keys a thread serves: verified by the first call, known to the others.
fn jwt() -> anyhow::Result<Way> {
    let failed = |_| anyhow!("no key can be made");
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref())?;
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    // One byte says that both coordinates follow.
    let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
    let (x, y) = point.split_at_checked(32).context("a key is too short")?;
    let keys = json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "a",
        "x": encode(x), "y": encode(y),
    }] });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let issuer = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            drop(serve(stream, &keys));
        }
    });
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let head = json!({ "alg": "ES256", "typ": "at+jwt", "kid": "a" });
    let claims = json!({ "iss": issuer, "aud": "bench", "sub": "ann", "exp": now + 3600 });
    let text = [head, claims].map(|part| encode(part.to_string().as_bytes())).join(".");
    let signature = pair.sign(&random, text.as_bytes()).map_err(failed)?;
    let token = format!("{text}.{}", encode(signature.as_ref()));
    let config = format!(
        "[gateway.auth]\nproviders = [\"jwt\"]\n\n[gateway.auth.jwt]\nissuer = \"{issuer}\"\n\
         jwks_url = \"{issuer}/keys\"\naudience = [\"bench\"]\n"
    );
    Ok(Way { provider: "jwt, known", config, token: Some(token) })
}

/// Answers one request, whatever it asks for.
fn serve(stream: TcpStream, keys: &Value) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > "\r\n".len() {
        line.clear();
    }
    let body = keys.to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    reader.into_inner().write_all(answer.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_that_is_missed_is_a_failure() {
        let report = |instructions| {
            let providers = vec![Measured::new("bearer", instructions, 100_000)];
            let met = providers.iter().all(|one| one.met);
            Report { max_ratio: MAX_RATIO, providers, met }.exit()
        };
        assert_eq!(report(103_000), ExitCode::SUCCESS);
        assert_eq!(report(103_100), ExitCode::FAILURE);
    }

    #[test]
    fn a_token_is_of_three_parts_and_of_the_issuer_of_the_configuration() {
        let way = jwt().unwrap();
        let token = way.token.unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        assert_eq!(parts.len(), 3, "{token}");
        let claims = BASE64_URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        let issuer = claims["iss"].as_str().unwrap();
        assert!(way.config.contains(&format!("issuer = \"{issuer}\"\n")), "{}", way.config);
    }
}

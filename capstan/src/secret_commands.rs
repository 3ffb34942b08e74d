//! Runs programs that print secrets, such as `op read` and `pass show`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_app::{Environment, SecretCommands};
use capstan_hub::ports::BoxFuture;
use capstan_model::Secret;
use capstan_process::once::{End, Limits, Program};
use capstan_safety::clean::clean;
use capstan_safety::environment;
use capstan_safety::mask::mask_prose;

/// Limits of one run. A program may have to ask for a password or a fingerprint.
const LIMITS: Limits = Limits { time: Duration::from_secs(30), output: 64 * 1024 };

/// Longest part of an error message of a program that is shown.
const MAX_SHOWN: usize = 200;

/// Variables that the usual programs need beside the harmless ones: where the vault is, how to
/// unlock it, and how to ask.
const VARIABLES: [&str; 9] = [
    "BW_SESSION",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GNUPGHOME",
    "GPG_TTY",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Prefixes of such variables.
const PREFIXES: [&str; 3] = ["OP_", "PASSWORD_STORE_", "VAULT_"];

/// Runs programs on this machine.
pub(crate) struct LocalCommands(pub(crate) Arc<Environment>);

// === impl LocalCommands ===

impl LocalCommands {
    fn environment(&self, variables: BTreeMap<String, String>) -> BTreeMap<String, Secret<String>> {
        let ours = self.0.variables.iter().filter(|(name, value)| passes(name, value));
        let ours = ours.map(|(name, value)| (name.clone(), value.clone()));
        ours.chain(variables).map(|(name, value)| (name, Secret::new(value))).collect()
    }
}

impl SecretCommands for LocalCommands {
    fn run(
        &self,
        words: Vec<String>,
        variables: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<Secret<String>, String>> {
        let environment = self.environment(variables);
        let keeper = self.0.program.clone();
        Box::pin(async move {
            let mut words = words.into_iter();
            let command = words.next().ok_or("has no name")?;
            let args: Vec<String> = words.collect();
            let keeper = keeper.map_err(|error| format!("cannot be started: {error}"))?;
            let program = Program {
                command,
                environment,
                secrets: Vec::new(),
                cwd: None,
                keeper,
                sandbox: None,
            };
            let output = program.run(&args, LIMITS, &mut |_| {}).await;
            let output = output.map_err(|error| format!("cannot be started: {error}"))?;
            match output.end {
                End::Code(0) if output.stdout.cut > 0 => {
                    Err(format!("printed more than {} bytes", LIMITS.output))
                }
                End::Code(0) => String::from_utf8(output.stdout.bytes)
                    .map(Secret::new)
                    .map_err(|_| "printed something that is not UTF-8".to_owned()),
                End::Code(code) => {
                    Err(format!("failed with exit code {code}{}", said(&output.stderr.bytes)))
                }
                End::Killed => Err("was killed".to_owned()),
                End::TimedOut => Err(format!("took longer than {} s", LIMITS.time.as_secs())),
            }
        })
    }
}

fn passes(name: &str, value: &str) -> bool {
    let is_needed =
        VARIABLES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    (is_needed || environment::passes(name, value)) && !environment::hijacks(name)
}

/// The first line of an error message, with everything in it that looks like a secret masked.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let Some(line) = text.lines().find(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    let line: String = mask_prose(&clean(line.trim())).chars().take(MAX_SHOWN).collect();
    format!(": {line}")
}

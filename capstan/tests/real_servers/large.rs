//! Answers whose length is not known beforehand: complete below the limit, an error above it, and the
//! client's session goes on.

use capstan_testkit::World;
use capstan_testkit::process::command;
use serde_json::Value;

use crate::remote::{Remote, beside};
use crate::{ALLOW, LIMIT, installed};

/// The limit of the gateway (`1MiB`), in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// The answers to calls with these lengths, and to a small one in the same session.
#[track_caller]
fn answers(world: &World, era: &str, url: &str, sizes: [usize; 2]) -> Value {
    let script = beside("large_peer.py").display().to_string();
    let sizes = sizes.map(|size| size.to_string());
    let words = [script.as_str(), era, url, &sizes[0], &sizes[1]];
    let said = world.program(installed("python"), words).limit(LIMIT).run().ok();
    serde_json::from_str(&said).unwrap()
}

#[test]
fn an_answer_that_turns_out_too_large_is_an_error_and_the_session_goes_on() {
    for form in ["json", "events"] {
        let world = World::new();
        let mut server = command(installed("python"));
        let remote = Remote::start(&world, server.arg(beside("python_large.py")).arg(form));
        let entry = format!("[servers.it]\nurl = {:?}\nstartup_timeout = \"80s\"\n", remote.url);
        let limit = "[screen]\nmax_answer = \"1MiB\"\n";
        world.write_user_config(&format!("{ALLOW}{limit}{entry}"));
        let mut gateway = world.capstan(["serve", "--http", ":0"]).into_command();
        let gateway = Remote::start(&world, &mut gateway);
        let url = gateway.url.replace("/mcp", "/servers/it/mcp");
        for era in ["legacy", "2026-07-28"] {
            let (below, above) = (MAX_ANSWER / 4, 3 * MAX_ANSWER);
            let seen = answers(&world, era, &url, [below, above]);
            assert_eq!((&seen[0][0], &seen[0][1]), (&false.into(), &below.into()), "{form} {era}");
            assert_eq!(seen[1][0], true, "{form} {era}: {seen}");
            let why = seen[1][2].as_str().unwrap();
            assert!(why.contains("max_answer"), "{form} {era}: {why}");
            assert_eq!((&seen[2][0], &seen[2][2]), (&false.into(), &"fine".into()), "{form} {era}");
        }
    }
}

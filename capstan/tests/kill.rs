//! Kill -9 of `capstan` at any moment of an edit leaves the old file or the new one, whole.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use capstan_testkit::World;

const ROUNDS: u32 = 500;

/// No edit is waited for longer than this, so that all rounds end in time on a slow machine.
const MAX_TIME: Duration = Duration::from_millis(120);

/// What is killed, in turn. On a file where one of them has nothing to do it leaves the file alone.
const EDITS: [&str; 5] =
    ["disable kept", "add new -- npx -y package", "enable kept", "remove new", "remove nobody"];

/// The file before the first edit.
const TEXT: &str = "# Kept.\n[servers.kept] # stays\ncommand = 'npx'\nargs = [\n  '-y', # yes\n]\n";

/// What each edit makes of each text, found out in a world of its own, undisturbed.
struct Known {
    world: World,
    path: PathBuf,
    after: HashMap<(String, &'static str), String>,
}

#[test]
fn every_kill_of_an_edit_leaves_the_old_text_or_the_new_one_whole() {
    let (world, path) = project();
    let mut known = Known::new();
    let usual = known.usual_time();
    let (mut old, mut new) = (0, 0);
    for (round, edit) in (0..ROUNDS).zip(EDITS.iter().cycle()) {
        let before = fs::read_to_string(&path).unwrap();
        let after = known.after(&before, edit);
        // A prime stride visits all moments of an edit in an order that is the same every time.
        kill_one(&world, edit, usual * ((round * 7919) % 1009) / 1009);
        let found = fs::read_to_string(&path).unwrap();
        assert!(found == before || found == after, "round {round}, `{edit}`:\n{found}");
        match (found == before, before == after) {
            (_, true) => {}
            (true, false) => old += 1,
            (false, false) => new += 1,
        }
    }
    assert!(old > 20 && new > 20, "the kills missed: {old} before the edit, {new} after it");
    still_works(&world, &path);
}

/// A client's file with two servers.
const CLAUDE: &str = "{\n  \"numStartups\": 1,\n  \"mcpServers\": {\n    \"one\": {\"command\": \"npx\"},\n    \"two\": {\"command\": \"uvx\"}\n  }\n}\n";

/// Rounds of two kills each.
const MOVES: u32 = 60;

/// The two files that a move changes.
#[derive(Clone, PartialEq)]
struct Both {
    client: String,
    config: String,
}

#[test]
fn every_kill_of_a_move_leaves_the_old_texts_or_the_new_ones_and_it_can_be_undone() {
    let world = World::new();
    let client = world.write(world.home().join(".claude.json"), CLAUDE);
    let config = world.write_user_config(TEXT);
    let both = || Both {
        client: fs::read_to_string(&client).unwrap(),
        config: fs::read_to_string(&config).unwrap(),
    };
    let run = |words: &str| world.capstan(words.split(' ')).run();
    let (to, back) = ("adopt claude-code --yes", "adopt claude-code --undo");
    let old = both();
    let begun = Instant::now();
    run(to).ok();
    let usual = (begun.elapsed() * 3 / 2).min(MAX_TIME);
    let new = both();
    run(back).ok();
    assert!(both() == old && new.client != old.client && new.config != old.config);
    let (mut half, mut whole) = (0, 0);
    for round in 0..MOVES {
        for (at, edit) in [(round * 2, to), (round * 2 + 1, back)] {
            kill_one(&world, edit, usual * ((at * 7919) % 1009) / 1009);
            let found = both();
            assert!([&old.client, &new.client].contains(&&found.client), "{}", found.client);
            assert!([&old.config, &new.config].contains(&&found.config), "{}", found.config);
            // The client never has Capstan in place of servers that Capstan does not have.
            assert!(found.client == old.client || found.config == new.config, "round {round}");
            if found == old || found == new {
                whole += 1;
            } else {
                half += 1;
            }
            // The same command ends what was begun.
            if edit == to && round % 2 == 0 {
                run(to).ok();
                assert!(both() == new, "round {round}: {}", both().config);
            }
        }
        let undone = run(back);
        assert!(matches!(undone.status, Some(0 | 4)), "{}", undone.stderr);
        assert!(both() == old, "round {round}: {}\n{}", both().client, both().config);
    }
    assert!(whole > 20, "the kills missed: {half} between the files, {whole} before or after");
}

/// After all that nothing is locked, nothing is left lying about, and approvals can be read.
fn still_works(world: &World, path: &Path) {
    for words in [&["trust", "--yes"][..], &["disable", "kept"], &["trust", "--yes"]] {
        world.capstan(words).run().ok();
    }
    let listed = world.capstan(["list", "--json"]).run().ok();
    assert!(listed.contains("\"disabled\""), "{listed}");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with("# Kept.\n[servers.kept] # stays\n"), "{text}");
    for folder in [path.parent().unwrap(), &world.state().join("capstan")] {
        let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let names: Vec<_> = names.filter(|name| name.to_string_lossy().contains("tmp")).collect();
        assert!(names.is_empty(), "{names:?} in {}", folder.display());
    }
}

/// A project whose file is approved.
fn project() -> (World, PathBuf) {
    let world = World::new();
    let path = world.write_project_config(TEXT);
    world.capstan(["trust", "--yes"]).run().ok();
    (world, path)
}

/// Starts an edit and kills it at this moment of its life.
fn kill_one(world: &World, edit: &str, moment: Duration) {
    let mut command = world.capstan(edit.split(' ')).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    while begun.elapsed() < moment {
        thread::yield_now();
    }
    // It may have ended already.
    drop(child.kill());
    child.wait().unwrap();
}

// === impl Known ===

impl Known {
    fn new() -> Self {
        let (world, path) = project();
        Self { world, path, after: HashMap::new() }
    }

    fn after(&mut self, before: &str, edit: &'static str) -> String {
        let made = || {
            fs::write(&self.path, before).unwrap();
            self.world.capstan(edit.split(' ')).run();
            fs::read_to_string(&self.path).unwrap()
        };
        self.after.entry((before.to_owned(), edit)).or_insert_with(made).clone()
    }

    /// How long an edit usually takes on this machine, and half as much again.
    fn usual_time(&self) -> Duration {
        let time = |words: &str| {
            let mut command = self.world.capstan(words.split(' ')).into_command();
            let begun = Instant::now();
            command.output().unwrap();
            begun.elapsed()
        };
        let mut times: Vec<_> = (0..7).map(|_| time("enable kept")).collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        (median * 3 / 2).min(MAX_TIME)
    }
}

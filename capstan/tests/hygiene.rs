//! However `capstan` ends, nothing that it has started outlives it.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod leftovers;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use capstan_testkit::{World, alive, binary, descendants, wait_until};
use leftovers::{running_in, wait_until_empty};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long anything may take on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(50);

/// A server that is hard to get rid of.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Has a child in its own process group and one in a session of its own.
    Family,
    /// The same, in the background of a shell that waits for it.
    BehindShell,
    /// The same, below a shell that goes on when the server has ended; none of them heeds SIGTERM.
    Stubborn,
}

/// What goes on when the end comes.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The server has been asked who it is and says nothing.
    Start,
    /// The server has listed its tools; nobody wants anything from it.
    Idle,
    /// The server works on a call that will never be answered.
    Call,
}

/// How the end comes.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Ctrl-C: SIGINT for the whole process group.
    CtrlC,
    /// The terminal is closed: SIGHUP for the whole process group.
    HangUp,
    /// `kill`.
    Term,
    /// `kill -9`.
    Kill,
}

/// A running `capstan` with servers below it.
struct Scene {
    world: World,
    capstan: Child,
}

const FORMS: [Form; 3] = [Form::Family, Form::BehindShell, Form::Stubborn];
const MOMENTS: [Moment; 3] = [Moment::Start, Moment::Idle, Moment::Call];

// === impl Form ===

impl Form {
    /// The server `name` in the configuration; `options` are the fixture's.
    fn entry(self, world: &World, name: &str, options: &[&str]) -> String {
        let fixture = binary("capstan-fixture").display().to_string();
        let pids = pids(world, name).display().to_string();
        let trace = trace(world, name).display().to_string();
        let mut words = vec![fixture.as_str(), "--spawn", &pids, "--trace", &trace];
        words.extend(options);
        match self {
            Self::Family => {}
            Self::Stubborn => {
                words.push("--ignore-term");
                let line = r#"trap "" TERM; "$@"; while :; do sleep 600; done"#;
                words.splice(0..0, ["sh", "-c", line, "sh"]);
            }
            Self::BehindShell => {
                // A shell gives /dev/null to what it runs in the background, unless told otherwise.
                let line = r#"exec 3<&0; "$@" <&3 3<&- & exec 3<&-; wait"#;
                words.splice(0..0, ["sh", "-c", line, "sh"]);
            }
        }
        entry(name, &words)
    }
}

/// A server in the configuration that may take its time.
fn entry(name: &str, words: &[&str]) -> String {
    let (command, args) = words.split_first().unwrap();
    format!(
        "[servers.{name}]\ncommand = {command:?}\nargs = {args:?}\n\
         startup_timeout = \"5m\"\ntimeout = \"5m\"\n"
    )
}

/// Where a fixture writes whom it has started.
fn pids(world: &World, name: &str) -> PathBuf {
    world.home().join(format!("{name}.pids"))
}

/// Where a fixture writes what it has received.
fn trace(world: &World, name: &str) -> PathBuf {
    world.home().join(format!("{name}.trace"))
}

// === impl End ===

impl End {
    fn come_to(self, capstan: &Child) {
        let pid = Pid::from_child(capstan);
        match self {
            Self::CtrlC => kill_process_group(pid, Signal::INT),
            Self::HangUp => kill_process_group(pid, Signal::HUP),
            Self::Term => kill_process(pid, Signal::TERM),
            Self::Kill => kill_process(pid, Signal::KILL),
        }
        .unwrap();
    }
}

// === impl Scene ===

impl Scene {
    fn start(world: World, config: &str, arguments: &[&str]) -> Self {
        world.write_user_config(&format!("[permissions]\nallow = [\"*\"]\n{config}"));
        let mut command = world.capstan(arguments).into_command();
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let capstan = command.spawn().unwrap();
        Self { world, capstan }
    }

    /// One server of this form at this moment.
    fn at(form: Form, moment: Moment) -> Self {
        let world = World::new();
        let (options, arguments, received): (&[&str], &[&str], &str) = match moment {
            Moment::Start => (&["--silent"], &["tools", "--wait", "5m"], "\"server/discover\""),
            Moment::Idle => (&[], &["tools", "--wait", "5m"], "\"tools/list\""),
            Moment::Call => (&[], &["call", "it__hang"], "\"hang\""),
        };
        let mut config = form.entry(&world, "it", options);
        if matches!(moment, Moment::Idle) {
            // Somebody else keeps the command waiting.
            let fixture = binary("capstan-fixture").display().to_string();
            config += &entry("other", &[&fixture, "--start-delay-ms", "600000"]);
        }
        let scene = Self::start(world, &config, arguments);
        scene.wait_for("it", received);
        scene
    }

    /// Waits until the server `name` has received something.
    #[track_caller]
    fn wait_for(&self, name: &str, received: &str) {
        let trace = trace(&self.world, name);
        let has = || fs::read_to_string(&trace).is_ok_and(|lines| lines.contains(received));
        assert!(wait_until(has, LIMIT), "`{name}` has not received {received}");
    }

    /// Everything below `capstan`, which includes what the servers have started.
    #[track_caller]
    fn below(&self, servers: &[&str]) -> Vec<u32> {
        let below = descendants(self.capstan.id());
        for name in servers {
            let children = fs::read_to_string(pids(&self.world, name)).unwrap();
            let children: Vec<u32> = children.lines().map(|pid| pid.parse().unwrap()).collect();
            assert_eq!(children.len(), 2);
            assert!(children.iter().all(|child| below.contains(child)), "{below:?}");
        }
        // Between its birth and its first breath a process cannot be told to be of this world.
        let all = || running_in(&self.world).len() > below.len();
        assert!(wait_until(all, LIMIT), "not all of {below:?}: {:#?}", running_in(&self.world));
        below
    }

    /// Lets the end come and sees to it that nobody is left.
    #[track_caller]
    fn end(mut self, end: End, servers: &[&str]) {
        let below = self.below(servers);
        end.come_to(&self.capstan);
        let mut status = None;
        let ended = || {
            status = self.capstan.try_wait().unwrap();
            status.is_some()
        };
        assert!(wait_until(ended, LIMIT), "capstan has not ended");
        let code = status.unwrap().code();
        match end {
            // Whoever waits for an orderly end waits for the servers too.
            End::CtrlC | End::Term => {
                assert_eq!((code, running_in(&self.world)), (Some(130), vec![]));
            }
            End::HangUp | End::Kill => wait_until_empty(&self.world),
        }
        // A keeper ends a moment after what it kept.
        assert!(wait_until(|| !below.iter().copied().any(alive), LIMIT));
    }
}

impl Drop for Scene {
    /// A test that has failed leaves nothing running either.
    fn drop(&mut self) {
        drop(self.capstan.kill());
        drop(self.capstan.wait());
    }
}

/// Every form at every moment, the forms side by side.
fn check(end: End) {
    for moment in MOMENTS {
        thread::scope(|scope| {
            for form in FORMS {
                let name = format!("{form:?} {moment:?} {end:?}");
                let run = move || Scene::at(form, moment).end(end, &["it"]);
                thread::Builder::new().name(name).spawn_scoped(scope, run).unwrap();
            }
        });
    }
}

#[test]
fn nothing_outlives_ctrl_c() {
    check(End::CtrlC);
}

#[test]
fn nothing_outlives_a_terminal_that_is_closed() {
    check(End::HangUp);
}

#[test]
fn nothing_outlives_kill() {
    check(End::Term);
}

#[test]
fn nothing_outlives_kill_9() {
    check(End::Kill);
}

#[test]
fn nothing_outlives_a_command_that_has_done_its_work() {
    let commands: [&[&str]; 4] = [
        &["call", "it__add", "a=2", "b=40"],
        &["tools", "--wait", "50s"],
        &["list", "--wait", "50s"],
        &["doctor", "it"],
    ];
    for form in FORMS {
        let world = World::new();
        let allow = "[permissions]\nallow = [\"*\"]\n";
        world.write_user_config(&format!("{allow}{}", form.entry(&world, "it", &[])));
        for arguments in commands {
            world.capstan(arguments).run().ok();
            assert_eq!(running_in(&world), [""; 0], "{form:?} {arguments:?}");
            fs::remove_file(pids(&world, "it")).unwrap();
        }
    }
}

#[test]
fn nothing_outlives_a_command_that_has_failed() {
    let world = World::new();
    let silent = Form::Family.entry(&world, "silent", &["--silent"]).replace("5m", "2s");
    let crashing = Form::BehindShell.entry(&world, "crashing", &[]);
    world.write_user_config(&format!("[permissions]\nallow = [\"*\"]\n{silent}{crashing}"));
    for (tool, code) in [("silent__x", 7), ("crashing__crash", 7), ("crashing__nothing", 4)] {
        let ended = world.capstan(["call", tool]).run();
        assert_eq!((ended.status, running_in(&world)), (Some(code), vec![]), "{}", ended.stderr);
    }
}

/// Five at once: one that does not come up, and four that have nothing to do.
fn five() -> Scene {
    let world = World::new();
    let mut config = String::new();
    for (form, name) in FORMS.into_iter().zip(["family", "shell", "stubborn"]) {
        let _ = write!(config, "{}", form.entry(&world, name, &[]));
    }
    config += &Form::Family.entry(&world, "silent", &["--silent"]);
    config += &Form::Family.entry(&world, "garbage", &["--garbage", "--stderr", "500"]);
    let scene = Scene::start(world, &config, &["list", "--wait", "5m"]);
    for name in ["family", "shell", "stubborn", "garbage"] {
        scene.wait_for(name, "\"tools/list\"");
    }
    scene.wait_for("silent", "\"server/discover\"");
    scene
}

#[test]
fn nothing_outlives_a_hub_of_five_servers() {
    let servers = ["family", "shell", "stubborn", "silent", "garbage"];
    for end in [End::CtrlC, End::HangUp, End::Term, End::Kill] {
        five().end(end, &servers);
    }
}

//! `capstan edit` in a terminal: the editor has it, and mistakes can be corrected.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::World;

use crate::Terminal;

const CONFIG: &str = "# Mine.\n[servers.f]\ncommand = \"sh\" # it\n";

/// Starts `capstan edit f` with a script as the editor, which makes a mistake when it runs first and
/// corrects it when it runs again.
fn edit(world: &World) -> Terminal {
    let again = world.home().join("again").display().to_string();
    let script = format!(
        "#!/bin/sh\n\
         test -t 0 && test -t 1 && test -t 2 || exit 9\n\
         if test -e '{again}'; then sed -i 's/timeot/timeout/' \"$1\"\n\
         else echo 'timeot = \"5s\"' >> \"$1\"; fi\n\
         touch '{again}'\n"
    );
    let editor = world.write("editor.sh", script);
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let editor = editor.display().to_string();
    let variables = [("TERM", "xterm-256color"), ("VISUAL", editor.as_str())];
    Terminal::start_with(world, "edit f", &variables)
}

fn start() -> (World, Terminal) {
    let world = World::new();
    world.write_user_config(CONFIG);
    let terminal = edit(&world);
    terminal.wait_for("Edit again?");
    let screen = terminal.screen();
    assert!(screen.contains("did you mean `timeout`?"), "{screen}");
    assert!(screen.contains("f (your text):4:1"), "{screen}");
    (world, terminal)
}

fn config(world: &World) -> String {
    fs::read_to_string(world.config().join("capstan/config.toml")).unwrap()
}

#[test]
fn a_mistake_is_shown_and_the_same_text_is_edited_again() {
    let (world, mut terminal) = start();
    terminal.press("\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert!(terminal.screen().contains("changed `f` in "), "{}", terminal.screen());
    assert_eq!(config(&world), format!("{CONFIG}timeout = \"5s\"\n"));
}

#[test]
fn a_text_that_is_given_up_is_kept_and_changes_nothing() {
    let (world, mut terminal) = start();
    terminal.press("n\r");
    assert_eq!(terminal.end(), 3, "{}", terminal.screen());
    assert!(terminal.screen().contains("your text is kept in "), "{}", terminal.screen());
    assert_eq!(config(&world), CONFIG);
    let kept = fs::read_to_string(world.state().join("capstan/drafts/f.toml")).unwrap();
    assert!(kept.ends_with("timeot = \"5s\"\n"), "{kept}");
}

#[test]
fn ctrl_c_at_the_question_ends_the_command_and_changes_nothing() {
    let (world, mut terminal) = start();
    terminal.press("\u{3}");
    let code = terminal.end();
    assert!(matches!(code, 3 | 130), "{code}: {}", terminal.screen());
    assert_eq!(config(&world), CONFIG);
}

//! What a server inherits from us, and what is kept and shown of what it says.

use std::io;
use std::sync::{Arc, Mutex};

use capstan_hub::ports::Backend;
use capstan_mcp::StdioSettings;
use capstan_model::Secret;
use capstan_wire::{compose, object};
use tracing_subscriber::EnvFilter;

use crate::scene::{Scene, fixture, json, shell, until};

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

#[tokio::test]
async fn a_server_has_the_declared_environment_its_own_folder_and_nothing_of_ours() {
    let mut settings = fixture(&[]);
    settings.environment.insert("GREETING".to_owned(), secret("hällo $HOME"));
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let scene = Scene::of(StdioSettings { cwd: Some(cwd.clone()), ..settings });
    let told = json(&scene.text("env", "{}").await);
    let variables = object::get(&told, "env").unwrap();
    let cwd_json = compose::string(&cwd.display().to_string());
    assert_eq!(
        variables.to_string(),
        format!(r#"{{"GREETING":"hällo $HOME","PATH":"/usr/bin:/bin","PWD":{cwd_json}}}"#)
    );
    assert_eq!(object::get_string(&told, "cwd").unwrap(), cwd.display().to_string());
    // We have more than that.
    assert!(std::env::vars_os().count() > 2);
}

/// Holes 13.
#[tokio::test]
async fn the_variable_pwd_names_the_folder_of_the_server_whatever_was_declared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    let roundabout = folder.join(".");
    for (cwd, expected) in [(Some(roundabout), folder.clone()), (None, here)] {
        let mut settings = fixture(&[]);
        settings.environment.insert("PWD".to_owned(), secret("/elsewhere"));
        let scene = Scene::of(StdioSettings { cwd, ..settings });
        let told = json(&scene.text("env", "{}").await);
        let variables = object::get(&told, "env").unwrap();
        let pwd = object::get_string(&variables, "PWD").unwrap();
        assert_eq!(pwd, expected.display().to_string());
        assert_eq!(object::get_string(&told, "cwd").unwrap(), pwd);
    }
}

#[tokio::test]
async fn the_arguments_of_a_server_are_passed_as_they_are() {
    let odd = ["--instructions", "$HOME `x` \"y\" 'z'\n*"];
    let scene = Scene::new(&odd);
    let told = json(&scene.text("env", "{}").await);
    let arguments: Vec<String> = object::get(&told, "args").unwrap().read().unwrap();
    assert_eq!(arguments.get(..2).unwrap(), odd);
}

#[tokio::test]
async fn only_the_last_lines_of_stderr_are_kept_and_secrets_are_masked() {
    let secrets = vec![secret("ine 499")];
    let scene = Scene::of(StdioSettings { secrets, ..fixture(&["--stderr", "500"]) });
    scene.about().await.unwrap();
    until(|| scene.server.stderr().last().is_some_and(|line| line.contains("500 of"))).await;
    let lines = scene.server.stderr();
    assert_eq!(lines.len(), 200);
    assert_eq!(lines.first().unwrap(), "fixture: line 301 of 500");
    let end: Vec<_> = lines.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(end, ["fixture: line 500 of 500", "fixture: l*** of 500"]);
}

#[tokio::test]
async fn stderr_without_a_newline_harms_nobody() {
    let arms = r#"
    *'"tools/list"'*) answer "$TOOLS" ;;
    *'"tools/call"'*) head -c 3000000 /dev/zero | tr '\0' x >&2 && answer '{"content":[]}' ;;"#;
    let scene = Scene::of(shell(arms));
    for _ in 0..3 {
        scene.call("do", "{}").await.unwrap();
    }
    assert_eq!(scene.server.stderr().iter().map(String::len).collect::<Vec<_>>(), [4096]);
}

/// What was logged.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls a tool of `s` and of `t` while this is logged.
async fn logged(filter: &str) -> String {
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let logging = tracing::subscriber::set_default(subscriber);
    let settings =
        || StdioSettings { secrets: vec![secret("hunter22")], ..fixture(&["--stderr", "1"]) };
    let one = Scene::of(settings());
    let two = Scene::of(StdioSettings { name: "t".parse().unwrap(), ..settings() });
    one.call("echo", r#"{"x":"hunter22"}"#).await.unwrap();
    two.about().await.unwrap();
    for scene in [&one, &two] {
        until(|| !scene.server.stderr().is_empty()).await;
        scene.server.close().await;
    }
    drop(logging);
    let bytes = written.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn what_is_logged_about_one_server_can_be_had_alone_and_without_secrets() {
    let log = logged("[server{name=s}]=debug").await;
    for part in ["→ ", "← ", "connected", r#""method":"tools/call""#, "line 1 of 1", "***"] {
        assert!(log.contains(part), "{part} is missing in {log}");
    }
    for line in log.lines() {
        assert!(line.contains("server{name=s}") && !line.contains("hunter22"), "{line}");
    }
}

#[tokio::test]
async fn without_that_every_server_is_logged_and_named() {
    let log = logged("capstan::wire=debug").await;
    assert!(log.contains("server=s") && log.contains("server=t"), "{log}");
    assert_eq!(logged("warn").await, "");
}

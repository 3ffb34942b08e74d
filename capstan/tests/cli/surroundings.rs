//! What a server's process gets: command, arguments, folder and variables, and nothing else.

use capstan_testkit::{World, binary};
use serde_json::json;

use crate::stage::{
    ends_with, failure, fixture, quoted, row, run, says, surroundings, with, with_project,
};

#[test]
fn c76_a_variable_of_the_shell_reaches_a_server_only_when_it_is_declared() {
    let world = with(&format!(
        "{}env = {{ DECLARED = \"yes\", RENAMED = \"${{SHELL_ONLY}}\" }}\n\
         env_passthrough = [\"PASSED\", \"NOT_SET\"]\n",
        fixture("f", &[])
    ));
    let told = world
        .capstan(["call", "f__env", "--json"])
        .env("SHELL_ONLY", "from the shell")
        .env("PASSED", "passed on")
        .env("LANG", "C.UTF-8");
    let told = surroundings(told.run());
    let env = told["env"].as_object().unwrap();
    assert_eq!(env["DECLARED"], "yes");
    assert_eq!(env["RENAMED"], "from the shell");
    assert_eq!(env["PASSED"], "passed on");
    assert_eq!(env["LANG"], "C.UTF-8");
    assert_eq!((env.get("SHELL_ONLY"), env.get("NOT_SET")), (None, None));
}

#[test]
fn c43_secrets_and_functions_of_the_shell_stay_there() {
    let world = with(&fixture("f", &[]));
    let told = world
        .capstan(["call", "f__env", "--json"])
        .env("GITHUB_TOKEN", "ghp_canary")
        .env("BASH_FUNC_x%%", "() { echo canary; }")
        .env("NODE_OPTIONS", "--require canary")
        .env("SSL_CERT_FILE", "/canary")
        .env("SSL_CERT_DIR", "/canary")
        .env("PWD", "/canary")
        .env("CAPSTAN_LOG", "warn");
    let ended = told.run();
    assert!(!ended.stdout.contains("canary"), "{}", ended.stdout);
    let told = surroundings(ended);
    let mut names: Vec<&String> = told["env"].as_object().unwrap().keys().collect();
    names.sort_unstable();
    let xdg = ["CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "RUNTIME_DIR", "STATE_HOME"];
    let mut expected = ["HOME", "PATH", "PWD"].map(str::to_owned).to_vec();
    expected.extend(xdg.map(|name| format!("XDG_{name}")));
    assert_eq!(names, expected.iter().collect::<Vec<_>>());
    assert_eq!(told["env"]["PWD"], told["cwd"]);
}

/// Holes 13.
#[test]
fn variables_that_name_certificates_are_passed_on_where_they_are_declared() {
    for line in [
        "env_passthrough = [\"SSL_CERT_FILE\", \"SSL_CERT_DIR\"]",
        "env = { SSL_CERT_FILE = \"${SSL_CERT_FILE}\", SSL_CERT_DIR = \"${SSL_CERT_DIR}\" }",
    ] {
        let world = with(&format!("{}{line}\n", fixture("f", &[])));
        let told = world.capstan(["call", "f__env", "--json"]);
        let told = told.env("SSL_CERT_FILE", "/a.pem").env("SSL_CERT_DIR", "/certs");
        let told = surroundings(told.run());
        assert_eq!(told["env"]["SSL_CERT_FILE"], "/a.pem", "{line}");
        assert_eq!(told["env"]["SSL_CERT_DIR"], "/certs", "{line}");
    }
}

#[test]
fn c43_variables_that_hijack_a_program_are_refused_however_they_are_given() {
    for line in [
        "env = { LD_PRELOAD = \"/x.so\" }",
        "env = { \"BASH_FUNC_x%%\" = \"() { :; }\" }",
        "env = { NODE_OPTIONS = \"--require x\" }",
        "env_passthrough = [\"DYLD_INSERT_LIBRARIES\"]",
        "env_passthrough = [\"ld_preload\"]",
    ] {
        let world = with(&format!("{}{line}\n", fixture("f", &[])));
        let ended = ends_with(run(&world, "call f__env --json"), 7);
        let (code, message, _) = failure(&ended);
        assert_eq!(code, "transient");
        says(&message, "can make the program run something else");
    }
}

#[test]
fn c04_transport_is_type_and_defaults_and_a_relative_folder_work() {
    let world = with(&format!(
        "{}transport = \"stdio\"\ncwd = \"sub/folder\"\n\
         env = {{ A = \"${{NOT_SET:-d}}\", B = \"x${{NOT_SET:-}}y\", C = \"${{SET:-d}}\" }}\n",
        fixture("f", &["--instructions", "${NOT_SET:-an argument}"])
    ));
    world.write("project/sub/folder/file", "");
    let told = surroundings(world.capstan(["call", "f__env", "--json"]).env("SET", "s").run());
    let env = &told["env"];
    assert_eq!(json!([env["A"], env["B"], env["C"]]), json!(["d", "xy", "s"]));
    assert_eq!(told["cwd"], world.project().join("sub/folder").to_str().unwrap());
    assert_eq!(told["args"][1], "an argument");
}

#[test]
fn c04_a_folder_that_is_not_there_is_named() {
    let world = with(&format!("{}cwd = \"nowhere\"\n", fixture("f", &[])));
    let ended = ends_with(run(&world, "call f__env --json"), 7);
    let (_, message, _) = failure(&ended);
    says(&message, "nowhere` does not exist; correct `cwd` under `[servers.f]`");
}

#[test]
fn c01_an_unset_variable_fails_only_the_server_that_needs_it() {
    let needy = format!("{}env = {{ KEY = \"${{MISSING_KEY}}\" }}\n", fixture("needy", &[]));
    let world = with(&format!("{needy}\n{}", fixture("fine", &[])));
    let ended = ends_with(run(&world, "list --json"), 0);
    let listed = crate::stage::json(&ended);
    assert_eq!(row(&listed, "name", "fine")["state"], "connected");
    let failed = row(&listed, "name", "needy");
    assert_eq!(failed["state"], "failed");
    let error = failed["error"].as_str().unwrap();
    says(error, "`servers.needy.env.KEY` needs the environment variable `MISSING_KEY`");
    says(error, "capstan/config.toml:4:15");
    // The list has the error, so it is not printed a second time beside it.
    assert_eq!(ended.stderr, "");
    ends_with(run(&world, "call fine__echo"), 0);
}

#[cfg(unix)]
#[test]
fn c06_the_root_of_the_workspace_is_known_without_being_set() {
    let world = with_project();
    let bin = world.write("project/bin/readme", "");
    std::os::unix::fs::symlink(binary("capstan-fixture"), bin.with_file_name("s")).unwrap();
    world.write("project/deep/below/file", "");
    for variable in ["CLAUDE_PROJECT_DIR", "CAPSTAN_PROJECT_DIR"] {
        let root = format!("${{{variable}}}");
        world.write_user_config(&format!(
            "[servers.s]\ncommand = {}\nargs = [\"--instructions\", \"{root}/x\"]\n\
             env = {{ ROOT = \"{root}\" }}\ncwd = \"{root}/deep\"\n",
            quoted(&format!("{root}/bin/s"))
        ));
        let below = world.project().join("deep/below");
        let told = world.capstan(["call", "s__env", "--json"]).within(below);
        let told = surroundings(told.run());
        let project = world.project();
        let project = project.to_str().unwrap();
        assert_eq!(told["env"]["ROOT"], project);
        assert_eq!(told["args"][1], format!("{project}/x"));
        assert_eq!(told["cwd"], format!("{project}/deep"));
    }
}

#[test]
fn roots_are_the_workspace_and_what_is_configured() {
    let world = with_project();
    let entry = format!("{}roots = [\"docs\", \"/srv/a b\"]\n", crate::stage::legacy("f"));
    world.write_user_config(&entry);
    let ended = ends_with(run(&world, "call f__roots"), 0);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let project = format!("file://{}", world.project().display());
    let uris = crate::stage::column(&told["roots"], "uri");
    assert_eq!(uris, [project.clone(), format!("{project}/docs"), "file:///srv/a%20b".to_owned()]);
}

#[test]
fn outside_a_project_a_server_keeps_the_folders_that_it_was_given() {
    let roots = |more: &str| {
        let world = World::new();
        world.write_user_config(&format!("{}{more}", crate::stage::legacy("f")));
        world.write("elsewhere/file", "");
        let elsewhere = world.home().join("elsewhere");
        let ended = ends_with(world.capstan(["call", "f__roots"]).within(elsewhere).run(), 0);
        let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        crate::stage::column(&told["roots"], "uri")
    };
    assert_eq!(roots(""), [""; 0]);
    assert_eq!(roots("roots = [\"/srv/a\"]\n"), ["file:///srv/a"]);
}

/// Issue "First hour" 12: Zeph answers with the working directory, in a project or not.
#[test]
fn c47_outside_a_project_a_server_of_zeph_has_the_working_directory_as_its_root() {
    let world = World::new();
    let command = quoted(binary("capstan-fixture").to_str().unwrap());
    let file = world.home().join("zeph.toml");
    let config = format!("zeph:{}", file.display());
    let elsewhere = world.home().join("elsewhere");
    world.write("elsewhere/file", "");
    let roots = |more: &str| {
        let args = "args = [\"--era\", \"legacy\"]";
        let text = format!("[[mcp.servers]]\nid = \"f\"\ncommand = {command}\n{args}\n{more}");
        world.write(&file, text);
        let words = ["--config", &config, "call", "f__roots"];
        let ended = ends_with(world.capstan(words).within(elsewhere.clone()).run(), 0);
        let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        crate::stage::column(&told["roots"], "uri")
    };
    let here = format!("file://{}", elsewhere.display());
    assert_eq!(roots(""), [here.as_str()]);
    assert_eq!(roots("roots = [{ uri = \"file:///srv/a\" }]\n"), [here.as_str(), "file:///srv/a"]);
}

#[test]
fn only_commands_that_are_listed_are_started() {
    let entry = fixture("f", &[]);
    let command = quoted(binary("capstan-fixture").to_str().unwrap());
    let allow = |list: &str| with(&format!("[mcp]\nallowed_commands = [{list}]\n\n{entry}"));
    let ended = ends_with(run(&allow("\"npx\", \"capstan-fixture\""), "call f__echo --json"), 6);
    says(&failure(&ended).1, "mcp.allowed_commands");
    ends_with(run(&allow(&command), "call f__echo"), 0);
}

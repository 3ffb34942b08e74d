//! Holes 1: the networks that a server may be reached in, and ports that are doubted.

use capstan_config::NativeFiles;
use capstan_config::{Loaded, Scope, SourceFile, Surroundings, load};

fn load_files(files: &[SourceFile]) -> Loaded {
    load(files, &Surroundings { variable: &|_| None, project_dir: "/project" }, &NativeFiles)
}

fn load_text(text: &str) -> Loaded {
    load_files(&[SourceFile::new("config.toml", Scope::User, text)])
}

#[test]
fn networks_are_addresses_or_blocks_and_a_mistake_names_key_and_value() {
    let text = |list: &str| format!("[servers.x]\nurl = \"https://h\"\nnetworks = [{list}]");
    let loaded = load_text(&text("\"10.0.0.0/8\", \"fd00::1\""));
    let server = loaded.config.servers[0].status.as_ref().unwrap();
    let networks: Vec<String> = server.networks.iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["10.0.0.0/8", "fd00::1"]);
    for bad in ["\"10.0.0.0/33\"", "\"10.0.0.1/8\"", "\"intranet\"", "\"\"", "10"] {
        assert!(load_text(&text(bad)).config.servers[0].status.is_err(), "{bad}");
    }
    let program = "[servers.x]\ncommand = \"run\"\nnetworks = [\"10.0.0.0/8\"]";
    assert!(load_text(program).config.servers[0].status.is_err(), "a program has no address");
    let loaded = load_text(&text("\"10.0.0.1/8\""));
    let problem = loaded.config.servers[0].status.as_ref().unwrap_err();
    assert_eq!(
        problem.message,
        "in `servers.x.networks`, `10.0.0.1/8` has bits behind the prefix; the network is 10.0.0.0/8"
    );
}

#[test]
fn a_port_of_another_protocol_is_a_warning() {
    for entry in [
        "url = \"https://example.com:25/\"",
        "url = \"https://example.com:6379/\"",
        "openapi = \"https://example.com:11211/a.json\"",
        "openapi = { document = \"a.json\", base_url = \"https://example.com:2375/\" }",
    ] {
        let loaded = load_text(&format!("[servers.x]\n{entry}"));
        assert!(loaded.config.servers[0].status.is_ok(), "{entry}");
        let [problem] = loaded.problems.as_slice() else { panic!("{:?}", loaded.problems) };
        assert!(problem.message.contains("which belongs to another protocol"), "{problem}");
    }
}

#[test]
fn a_project_adds_no_network_and_no_trust_to_a_server_of_the_user() {
    let reached = |user: &str, project: &str| {
        let url = "[servers.x]\nurl = \"https://h/\"\n";
        let user = SourceFile::new("user", Scope::User, format!("{url}{user}"));
        let project = SourceFile::new("project", Scope::Project, format!("{url}{project}"));
        let loaded = load_files(&[user, project]);
        let server = loaded.config.servers.values().next().unwrap().status.as_ref().unwrap();
        let networks: Vec<String> = server.networks.iter().map(ToString::to_string).collect();
        let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        (networks.join(" "), server.trust == capstan_model::Trust::Trusted, problems.join("\n"))
    };
    let list = "networks = [\"10.1.0.0/16\", \"169.254.169.254\"]";
    for (user, project, expected) in [
        ("networks = [\"10.0.0.0/8\"]", list, ("10.1.0.0/16", false)),
        ("trust = \"trusted\"", list, ("10.1.0.0/16 169.254.169.254", false)),
        ("trust = \"trusted\"", "trust = \"trusted\"", ("", true)),
        ("", list, ("", false)),
        ("networks = [\"10.1.0.0/24\"]", list, ("10.1.0.0/24", false)),
        ("networks = [\"10.0.0.1\"]", "networks = [\"10.0.0.0/8\"]", ("10.0.0.1", false)),
        (
            "networks = [\"10.0.0.1\", \"11.0.0.0/8\", \"fd00::1\"]",
            "networks = [\"10.0.0.0/8\", \"10.0.0.1\", \"11.1.0.0/16\", \"fc00::/7\"]",
            ("10.0.0.1 11.1.0.0/16 fd00::1", false),
        ),
        ("networks = [\"10.2.0.0/16\"]", list, ("", false)),
        ("networks = [\"::/0\"]", list, ("", false)),
        ("", "trust = \"trusted\"", ("", false)),
        ("networks = [\"10.0.0.0/8\"]", "trust = \"trusted\"", ("", false)),
        ("trust = \"sandboxed\"\nexpose = []", "trust = \"trusted\"", ("", false)),
    ] {
        let (networks, trusted, _) = reached(user, project);
        assert_eq!((networks.as_str(), trusted), expected, "{user} / {project}");
    }
    let (.., told) = reached("networks = [\"10.0.0.0/8\"]", list);
    assert_eq!(
        told,
        "server `x` (project:1) is reached in `169.254.169.254` only as far as your own entry \
         (user:1) allows it"
    );
    let (.., told) = reached("networks = [\"10.0.0.1\"]", "networks = [\"10.0.0.0/8\"]");
    assert!(told.contains("in `10.0.0.0/8` only as far as"), "{told}");
    for user in ["trust = \"trusted\"", list] {
        assert_eq!(reached(user, list).2, "", "{user}");
    }
}

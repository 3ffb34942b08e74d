//! The `[gateway]` table: who says where the gateway listens, and what is refused.

use std::time::Duration;

use capstan_config::NativeFiles;
use capstan_config::{
    Confirm, Gateway, GatewayLimits, Loaded, Scope, Severity, SourceFile, Surroundings,
};

const ALL: &str = r#"
[gateway]
listen = "0.0.0.0:9090"
metrics_listen = ":9091"
public_url = "https://mcp.example.com"
allowed_hosts = ["mcp.example.com"]
allowed_origins = ["https://app.example.com"]
tls_cert = "cert.pem"
tls_key = "key.pem"
validate_arguments = true
first_list_wait = "20s"
approval_wait = "0s"
save_approvals = true
confirm = "client"
[gateway.limits]
max_body = "1MiB"
max_connections = 10
max_sessions = 20
session_idle = "5m"
"#;

fn load(files: &[(Scope, &str)]) -> Loaded {
    let source = |(index, (scope, text)): (usize, &(Scope, &str))| {
        SourceFile::new(format!("{index}.toml"), *scope, *text)
    };
    let files: Vec<SourceFile> = files.iter().enumerate().map(source).collect();
    capstan_config::load(
        &files,
        &Surroundings { variable: &|_| None, project_dir: "" },
        &NativeFiles,
    )
}

#[test]
fn every_key_is_read() {
    let loaded = load(&[(Scope::User, ALL)]);
    assert_eq!(loaded.problems, []);
    let text = |text: &str| Some(text.to_owned());
    let expected = Gateway {
        clients: Vec::new(),
        expose: capstan_model::Expose::All,
        expose_tokens: 20_000,
        listen: "0.0.0.0:9090".to_owned(),
        metrics_listen: text(":9091"),
        public_url: text("https://mcp.example.com"),
        allowed_hosts: vec!["mcp.example.com".to_owned()],
        allowed_origins: vec!["https://app.example.com".to_owned()],
        tls_cert: text("cert.pem"),
        tls_key: text("key.pem"),
        validate_arguments: true,
        first_list_wait: Duration::from_secs(20),
        approval_wait: Duration::ZERO,
        save_approvals: true,
        confirm: Confirm::Client,
        limits: GatewayLimits {
            max_body: 1 << 20,
            max_connections: 10,
            max_sessions: 20,
            session_idle: Duration::from_mins(5),
        },
        auth: None,
    };
    assert_eq!(loaded.config.gateway, expected);
    let shown = capstan_config::show(&loaded);
    let listen = shown.iter().find(|shown| shown.key == "gateway.listen").unwrap();
    assert_eq!((listen.value.as_str(), listen.origin.as_str()), (r#""0.0.0.0:9090""#, "0.toml:3"));
}

#[test]
fn a_project_is_checked_and_has_no_say() {
    let loaded = load(&[(Scope::Project, ALL)]);
    assert_eq!(loaded.config.gateway, Gateway::default());
    let warned: Vec<_> = loaded.problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(warned, [Severity::Warning]);
    assert!(load(&[(Scope::Project, "[gateway]\nlisten = 1")]).fatal().count() > 0);
}

#[test]
fn of_two_files_the_one_that_comes_first_counts() {
    let managed = "[gateway]\nlisten = \":1\"";
    let user = "[gateway]\nlisten = \":2\"\nallowed_hosts = [\"h\"]";
    let gateway = load(&[(Scope::User, user), (Scope::Managed, managed)]).config.gateway;
    assert_eq!(gateway.listen, ":1");
    assert_eq!(gateway.allowed_hosts, ["h"]);
}

#[test]
fn what_cannot_be_honoured_or_read_stops_everything() {
    for text in [
        "auth = { providers = [\"bearer\"] }",
        "auth = \"bearer\"",
        "expose = \"none\"",
        "expose = true",
        "clients.x = { expose = \"some\" }",
        "clients.x = \"search\"",
        "clients.x = { tools = 1 }",
        "listen = 8080",
        "allowed_hosts = \"h\"",
        "tls_cert = \"c.pem\"",
        "tls_key = \"k.pem\"",
        "limits = { max_body = 5 }",
        "limits = { max_body = \"0B\" }",
        "limits = { sessions = 5 }",
        "port = 8080",
    ] {
        let loaded = load(&[(Scope::User, &format!("[gateway]\n{text}"))]);
        assert_eq!(loaded.fatal().count(), 1, "{text}: {:?}", loaded.problems);
    }
}

#[test]
fn tools_that_clients_get_are_chosen_for_all_and_for_single_clients() {
    use capstan_model::{CallTools, Expose};
    let managed = "[gateway.clients.\"claude*\"]\nexpose = \"all\"";
    let user = "[gateway]\nexpose = \"auto\"\nexpose_tokens = 5000\n\
                clients.cursor.expose = \"search-by-effect\"";
    let gateway = load(&[(Scope::User, user), (Scope::Managed, managed)]).config.gateway;
    assert_eq!((gateway.expose, gateway.expose_tokens), (Expose::Auto(CallTools::One), 5000));
    let clients = gateway.clients.iter().map(|client| (client.client.as_str(), client.expose));
    let expected = [("claude*", Expose::All), ("cursor", Expose::Search(CallTools::ByEffect))];
    assert_eq!(clients.collect::<Vec<_>>(), expected);
    assert_eq!(load(&[(Scope::Project, user)]).config.gateway.expose, Expose::All);
}

#[test]
fn what_asks_for_nothing_is_accepted() {
    for text in ["", "auth = \"none\"", "expose = \"all\"", "[gateway.limits]"] {
        let loaded = load(&[(Scope::User, &format!("[gateway]\n{text}"))]);
        assert_eq!(loaded.problems, [], "{text}");
    }
}

#[test]
fn our_metadata_document_is_below_the_public_address_if_that_is_encrypted() {
    for (url, expected) in [
        ("https://h.example", Some("https://h.example/oauth/client.json")),
        ("https://h.example/", Some("https://h.example/oauth/client.json")),
        ("https://h.example/mcp", Some("https://h.example/oauth/client.json")),
        ("HTTPS://h.example:8443/mcp/", Some("HTTPS://h.example:8443/oauth/client.json")),
        ("https://h.example/capstan/mcp", Some("https://h.example/capstan/oauth/client.json")),
        ("http://h.example", None),
        ("http://127.0.0.1:8080/mcp", None),
    ] {
        let loaded = load(&[(Scope::User, &format!("[gateway]\npublic_url = {url:?}\n"))]);
        assert_eq!(loaded.config.gateway.client_document().as_deref(), expected, "{url}");
    }
    assert_eq!(load(&[]).config.gateway.client_document(), None);
}

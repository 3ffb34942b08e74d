//! The keys of a login.

use capstan_config::{
    ClientAuth, Grant, Loaded, NativeFiles, OAuth, Scope, Server, SourceFile, Surroundings, load,
};

fn load_text(text: &str) -> Loaded {
    let source = SourceFile::new("config.toml", Scope::User, text);
    let around = Surroundings { variable: &|_| None, project_dir: "/p" };
    load(&[source], &around, &NativeFiles)
}

fn read(keys: &str) -> Result<Server, String> {
    let loaded = load_text(&format!("[servers.x]\nurl = \"https://h.example/mcp\"\n{keys}"));
    let entry = loaded.config.servers.values().next().ok_or("there is no server")?;
    entry.status.clone().map_err(|problem| problem.message)
}

#[test]
fn a_login_is_automatic_unless_the_file_says_otherwise() {
    assert_eq!(read("").unwrap().oauth, OAuth::Auto);
    assert_eq!(read("oauth = \"auto\"").unwrap().oauth, OAuth::Auto);
    assert_eq!(read("oauth = \"off\"").unwrap().oauth, OAuth::Off);
    for bad in ["oauth = \"on\"", "oauth = true", "oauth = \"Manual\""] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_settings_of_a_login_are_read() {
    let server = read(
        "login = \"work\"\n[servers.x.oauth_config]\nclient_id = \"c\"\nclient_secret = \"s3cret\"\n\
         client_auth = \"post\"\ngrant = \"device\"\naudience = \"a\"\nresource = \"https://r\"\n\
         callback_port = 8765\nredirect_uri = \"http://localhost:7777/cb\"\nissuer = \"https://i.example\"",
    )
    .unwrap();
    assert_eq!(server.login.as_deref(), Some("work"));
    let config = server.oauth_config.unwrap();
    assert_eq!((config.grant, config.client_auth), (Grant::Device, Some(ClientAuth::Post)));
    assert_eq!((config.audience, config.callback_port), (vec!["a".to_owned()], Some(8765)));
    assert_eq!(config.redirect_uri.as_deref(), Some("http://localhost:7777/cb"));
    assert!(!format!("{:?}", config.client_secret).contains("s3cret"));
}

/// C07.
#[test]
fn a_manual_login_needs_its_client_and_its_endpoints() {
    let whole = "oauth = \"manual\"\noauth_config = { client_id = \"c\", auth_url = \"https://a/\", \
                 token_url = \"https://t/\" }";
    assert_eq!(read(whole).unwrap().oauth, OAuth::Manual);
    for (keys, missing) in [
        ("oauth = \"manual\"", "oauth_config"),
        ("oauth = \"manual\"\noauth_config = { client_id = \"c\" }", "`auth_url`, `token_url`"),
        (
            "oauth = \"manual\"\noauth_config = { auth_url = \"https://a/\", token_url = \"https://t/\" }",
            "`client_id`",
        ),
    ] {
        let problem = read(keys).unwrap_err();
        assert!(problem.contains(missing), "{keys}: {problem}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for (keys, named) in [
        ("oauth_config = { grant = \"client_credentials\", client_id = \"c\" }", "client_secret"),
        ("oauth_config = { grant = \"enterprise\", client_id = \"c\" }", "idp_token_url"),
        ("oauth_config = { callback_port = 70000 }", "port"),
        ("oauth_config = { redirect_uri = \"https://evil.example/cb\" }", "callback"),
        ("oauth_config = { redirect_uri = \"http://127.0.0.1/cb\" }", "callback"),
        ("oauth_config = { token_url = \"ftp://t/\" }", "token_url"),
        ("oauth_config = { token_parameter = \"t\" }", "asks for the token"),
        ("oauth_config = { clientid = \"c\" }", "clientid"),
        ("oauth = \"off\"\noauth_config = { client_id = \"c\" }", "off"),
    ] {
        let problem = read(keys).unwrap_err();
        assert!(problem.contains(named), "{keys}: {problem}");
    }
}

#[test]
fn a_program_has_no_login() {
    let program = |keys: &str| {
        let loaded = load_text(&format!("[servers.x]\ncommand = \"run\"\n{keys}"));
        loaded.config.servers.values().any(|entry| entry.status.is_ok())
    };
    assert!(program("") && program("oauth = \"off\""));
    for keys in ["oauth = \"auto\"", "login = \"work\"", "oauth_config = { client_id = \"c\" }"] {
        assert!(!program(keys), "{keys}");
    }
}

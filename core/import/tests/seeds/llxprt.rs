//! LLxprt Code.

use capstan_config::{Fallback, Kind, ProviderKind, Reach, Scope, Severity, SourceFile};

use crate::{Ask, NO_STRINGS, llxprt, load_files};

#[test]
fn c53_c54_servers_of_llxprt_by_transport() {
    let loaded = llxprt(
        r#"{
"mcpServers": {
"my-server": {
"command": "npx",
"args": ["-y", "@example/mcp-server"],
"env": {
"API_KEY": "your-key"
}
},
"my-remote": {
"url": "https://mcp.example.com/sse"
},
"my-http": {
"url": "https://mcp.example.com/mcp",
"transport": "streamable-http"
}
}
}"#,
    );
    assert_eq!(loaded.problems, []);
    assert_eq!(loaded.program("my-server").env["API_KEY"].reveal(), "your-key");
    let (kind, remote) = loaded.remote("my-remote");
    assert_eq!((kind, remote.fallback), ("sse", Fallback::OtherTransport));
    let (kind, remote) = loaded.remote("my-http");
    assert_eq!((kind, remote.fallback), ("http", Fallback::Never));
}

#[test]
fn c55_an_http_server_of_llxprt_with_headers_and_a_time_for_connecting_and_calling() {
    let loaded = llxprt(
        r#"{
"mcpServers": {
"httpServerWithAuth": {
"httpUrl": "http://localhost:3000/mcp",
"headers": {
"Authorization": "Bearer your-api-token",
"X-Custom-Header": "custom-value",
"Content-Type": "application/json"
},
"timeout": 5000
}
}
}"#,
    );
    assert_eq!(loaded.problems, []);
    let (kind, remote) = loaded.remote("httpserverwithauth");
    assert_eq!((kind, remote.fallback, remote.headers.len()), ("http", Fallback::Never, 3));
    let server = loaded.entry("httpserverwithauth").status.as_ref().unwrap();
    assert_eq!((server.timeout.as_secs(), server.startup_timeout.as_secs()), (5, 5));
}

#[test]
fn c56_c66_comments_and_trailing_commas() {
    let loaded = llxprt(
        r#"{
"mcpServers": {
"filteredServer": {
"command": "python",
"args": ["-m", "my_mcp_server"],
"includeTools": ["safe_tool", "file_reader", "data_processor"],
// "excludeTools": ["dangerous_tool", "file_deleter"],
"timeout": 30000
},
"nodeServer": {
"command": "node",
"args": ["filename.ts"],
}
}
}"#,
    );
    assert_eq!(loaded.problems, []);
    let server = loaded.entry("filteredserver").status.as_ref().unwrap();
    assert_eq!(server.expose.as_deref().unwrap(), ["safe_tool", "file_reader", "data_processor"]);
    assert_eq!(server.hide, NO_STRINGS);
    assert_eq!(loaded.program("nodeserver").args, ["filename.ts"]);
}

#[test]
fn c73_the_flat_keys_of_a_login_are_used() {
    let loaded = llxprt(
        r#"{
"mcpServers": {
"myIapProtectedServer": {
"url": "https://my-iap-service.run.app/sse",
"authProviderType": "service_account_impersonation",
"targetAudience": "YOUR_IAP_CLIENT_ID.apps.googleusercontent.com",
"targetServiceAccount": "your-sa@your-project.iam.gserviceaccount.com"
},
"my-oauth-server": {
"url": "https://mcp.example.com/sse",
"oauthClientId": "your-client-id",
"oauthAuthorizationUrl": "https://auth.example.com/authorize",
"oauthTokenUrl": "https://auth.example.com/token",
"oauthScopes": ["read", "write"]
},
"plain": { "url": "https://mcp.example.com/sse", "authProviderType": "dynamic_discovery" }
}
}"#,
    );
    let config = loaded.entry("my-oauth-server").status.as_ref().unwrap().oauth_config.clone();
    let config = config.unwrap();
    assert_eq!(config.client_id.as_deref(), Some("your-client-id"));
    assert_eq!(config.auth_url.as_deref(), Some("https://auth.example.com/authorize"));
    assert_eq!(config.token_url.as_deref(), Some("https://auth.example.com/token"));
    assert_eq!(config.scopes.unwrap(), ["read", "write"]);
    assert!(loaded.entry("plain").usable().is_some());
    assert_eq!(loaded.fatal().count(), 0);
}

#[test]
fn c57_tokens_of_a_service_account_are_configured() {
    let loaded = llxprt(
        r#"{
"mcpServers": {
"myIapProtectedServer": {
"url": "https://my-iap-service.run.app/sse",
"authProviderType": "service_account_impersonation",
"targetAudience": "YOUR_IAP_CLIENT_ID.apps.googleusercontent.com",
"targetServiceAccount": "your-sa@your-project.iam.gserviceaccount.com"
},
"google": { "url": "https://a.googleapis.com/mcp", "authProviderType": "google_credentials" },
"unknown": { "url": "https://a.example.com/mcp", "authProviderType": "other" },
"incomplete": {
"url": "https://a.run.app/mcp",
"authProviderType": "service_account_impersonation"
}
}
}"#,
    );
    let provider = |name: &str| match &loaded.entry(name).status.as_ref().unwrap().kind {
        Kind::Http(remote) | Kind::Sse(remote) => remote.auth_provider.clone().unwrap(),
        other @ (Kind::Stdio(_) | Kind::Cli(_) | Kind::OpenApi(_)) => panic!("{other:?}"),
    };
    let iap = provider("myiapprotectedserver");
    assert_eq!(iap.kind, ProviderKind::ServiceAccountImpersonation);
    let audience = "YOUR_IAP_CLIENT_ID.apps.googleusercontent.com";
    assert_eq!(iap.target_audience.as_deref(), Some(audience));
    let account = "your-sa@your-project.iam.gserviceaccount.com";
    assert_eq!(iap.target_service_account.as_deref(), Some(account));
    assert_eq!(provider("google").kind, ProviderKind::GoogleCredentials);
    assert!(loaded.entry("unknown").status.is_err());
    assert!(loaded.entry("incomplete").status.is_err());
}

#[test]
fn c73_no_browser_is_opened_where_the_settings_say_so() {
    let browser = |text: &str| llxprt(text).config.mcp.login_browser;
    assert!(!browser(
        r#"{ "auth": { "noBrowser": true }, "mcpServers": { "a": { "command": "x" } } }"#
    ));
    assert!(browser(
        r#"{ "auth": { "noBrowser": false }, "mcpServers": { "a": { "command": "x" } } }"#
    ));
    assert!(browser(r#"{ "mcpServers": { "a": { "command": "x" } } }"#));
}

#[test]
fn c61_trust_lifts_the_default_for_its_own_server_and_only_in_an_approved_file() {
    let text = r#"{ "mcpServers": { "my server": { "command": "x", "trust": true } } }"#;
    let mut file = SourceFile::new(".llxprt/settings.json", Scope::Project, text);
    let allowed = |file: &SourceFile| {
        let loaded = load_files(std::slice::from_ref(file));
        let rules = &loaded.config.permissions.rules.allow;
        rules.iter().map(|rule| rule.pattern.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(allowed(&file), ["my-server__*"]);
    let loaded = load_files(std::slice::from_ref(&file));
    let rule = &loaded.config.permissions.rules.allow[0];
    let own = Reach::Server { file: file.path.clone(), name: "my-server".parse().unwrap() };
    assert_eq!(rule.reach, own, "no tool of another server gets it");
    file.approved = false;
    assert_eq!(allowed(&file), NO_STRINGS);
    file.text = text.replace("true", "\"yes\"");
    assert_eq!(load_files(&[file]).of(Severity::Error).len(), 1);
}

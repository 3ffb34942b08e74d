//! The `mcp` program of avelino.

use std::time::Duration;

use capstan_config::{AuthProvider, Fallback, IdlePolicy, Kind, Severity};
use capstan_policy::access::{AccessTo, Says, Strictness};

use crate::{Ask, avelino};

#[test]
fn c22_c23_the_kind_of_a_server_of_avelino_follows_from_its_keys() {
    let loaded = avelino(
        r#"{
  "mcpServers": {
    "wrapped": { "command": "kubectl", "cli": true, "cli_only": [] },
    "stdio": { "command": "npx", "args": ["-y", "package-name"], "env": { "KEY": "value" } },
    "http": { "url": "https://example.com/mcp" },
    "both": { "command": "npx", "url": "https://example.com/mcp" }
  }
}"#,
    );
    let kind = |name| loaded.entry(name).status.as_ref().unwrap().kind.as_str();
    assert_eq!(["wrapped", "stdio", "http", "both"].map(kind), ["cli", "stdio", "http", "stdio"]);
    assert_eq!(loaded.remote("http").1.fallback, Fallback::OtherTransport);
    let [warning] = loaded.problems.as_slice() else { panic!("{:?}", loaded.problems) };
    assert!(warning.message.contains("`command`") && warning.message.contains("`url`"));
    assert_eq!(warning.severity, Severity::Warning);
    let Kind::Cli(cli) = &loaded.entry("wrapped").status.as_ref().unwrap().kind else { panic!() };
    assert_eq!((cli.help.as_str(), cli.depth, &cli.only), ("--help", 2, &None));
}

#[test]
fn c25_c26_idle_times_of_avelino_are_seconds_unless_they_say_otherwise() {
    for (text, seconds) in [("3m", 180), ("30s", 30), ("1h", 3600), ("90", 90)] {
        let text = format!(
            "{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"idle_timeout\": \"{text}\"}}}}}}"
        );
        let loaded = avelino(&text);
        let idle = loaded.entry("a").status.as_ref().unwrap().idle;
        assert_eq!(idle.policy, IdlePolicy::After(Duration::from_secs(seconds)), "{text}");
        assert_eq!((idle.min, idle.max), (Duration::from_mins(1), Duration::from_mins(5)));
    }
}

#[test]
fn c31_what_is_not_set_is_empty_in_files_of_avelino_and_breaks_no_other_server() {
    let loaded = avelino(
        r#"{ "mcpServers": {
            "a": { "url": "https://${HOST}/mcp" },
            "b": { "url": "https://h/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }
        } }"#,
    );
    assert_eq!(loaded.of(Severity::Warning).len(), 2);
    assert!(loaded.entry("a").status.is_err());
    assert!(loaded.remote("b").1.headers.is_empty(), "an empty bearer is not sent");
    assert_eq!(loaded.fatal().count(), 0);
}

#[test]
fn c32_a_reserved_name_warns_and_works() {
    for name in ["search", "add", "remove", "list", "help", "version"] {
        let loaded =
            avelino(&format!("{{\"mcpServers\": {{\"{name}\": {{\"command\": \"x\"}}}}}}"));
        assert_eq!(loaded.of(Severity::Warning).len(), 1, "{name}");
        assert!(loaded.entry(name).usable().is_some(), "{name}");
    }
}

#[test]
fn c33_c38_mistakes_in_the_auth_of_avelino_stop_everything() {
    let with = |more: &str| avelino(&format!("{{\"mcpServers\": {{}}, {more}}}"));
    for harmless in [
        r#""serverAuth": {}"#,
        r#""serverAuth": { "providers": [] }"#,
        r#""serverAuth": { "providers": ["none"] }"#,
    ] {
        let loaded = with(harmless);
        assert_eq!((loaded.problems.len(), loaded.gateway.len()), (0, 0), "{harmless}");
    }
    for wrong in [
        r#""serverAuth": { "providers": ["bearer"] }"#,
        r#""serverAuth": { "providers": ["oauth_as"] }"#,
        r#""serverAuth": { "providers": ["beerer"] }"#,
        r#""serverAuth": { "provider": "bearer", "bearer": { "tokens": {} } }"#,
        r#""serverAuth": { "bearer": { "token": {} } }"#,
        r#""serverAuth": { "acl": {} }, "acl": {}"#,
        r#""acl": { "rules": [], "roles": {} }"#,
        r#""acl": { "defualt": "deny" }"#,
        r#""acl": { "default": "ask" }"#,
        r#""acl": { "roles": { "dev": [{ "server": 1, "access": "read" }] } }"#,
        r#""acl": { "roles": { "dev": [{ "server": "*", "access": "all" }] } }"#,
        r#""acl": { "roles": { "dev": [{ "server": "*" }] } }"#,
        r#""acl": { "roles": { "dev": [{ "access": "read" }] } }"#,
        r#""acl": { "roles": { "dev": [{ "server": [], "access": "read" }] } }"#,
        r#""acl": { "roles": { "dev": [{ "server": "*", "access": "read", "tool": ["x"] }] } }"#,
        r#""acl": { "roles": { "dev": { "server": "*", "access": "read" } } }"#,
        r#""acl": { "roles": { "dev": ["*"] } }"#,
        r#""acl": { "roles": [] }"#,
        r#""acl": { "subjects": { "bob": { "roles": ["dev"] } } }"#,
        r#""acl": { "subjects": { "bob": ["dev"] } }"#,
        r#""acl": { "subjects": { "bob": { "role": [] } } }"#,
        r#""acl": { "rules": [{ "tools": ["*"] }] }"#,
        r#""acl": { "rules": [{ "policy": "deny" }] }"#,
        r#""acl": { "rules": [{ "tools": ["*"], "policy": "ask" }] }"#,
        r#""acl": { "rules": [{ "tools": ["*"], "policy": "deny", "users": ["bob"] }] }"#,
        r#""acl": { "rules": {} }"#,
        r#""acl": { "strict": true }"#,
        r#""acl": { "strictClassification": "yes" }"#,
        r#""acl": []"#,
    ] {
        assert!(with(wrong).fatal().count() > 0, "{wrong} was accepted");
    }
}

#[test]
fn c34_c35_the_tokens_and_headers_of_avelino_are_read_unchanged() {
    let loaded = avelino(
        r#"{"mcpServers": {}, "serverAuth": {
            "providers": ["bearer", "forwarded"],
            "bearer": { "tokens": {
                "secret-abc": "alice", "secret-def": { "subject": "bob", "roles": ["dev", "oncall"] } } },
            "forwarded": { "header": "x-user", "groups_header": "x-groups" }
        }}"#,
    );
    assert_eq!((loaded.problems.len(), loaded.gateway.len()), (0, 0), "{:?}", loaded.problems);
    let auth = loaded.config.gateway.auth.as_ref().unwrap();
    let [alice, bob] = auth.bearer.as_slice() else { panic!("{auth:?}") };
    assert_eq!((alice.token.reveal().as_str(), alice.subject.as_str()), ("secret-abc", "alice"));
    assert_eq!((bob.subject.as_str(), bob.roles.join(" ").as_str()), ("bob", "dev oncall"));
    assert_eq!(
        (auth.forwarded.header.as_str(), auth.forwarded.groups_header.as_str()),
        ("x-user", "x-groups")
    );
    let trusted: Vec<String> =
        auth.forwarded.trusted_source_cidrs.iter().map(ToString::to_string).collect();
    assert_eq!(trusted, ["127.0.0.0/8", "::1"], "loopback unless told otherwise");
    let loaded = avelino(r#"{"mcpServers": {}, "serverAuth": { "providers": ["forwarded"] }}"#);
    assert_eq!(loaded.config.gateway.auth.as_ref().unwrap().providers, [AuthProvider::Forwarded]);
}

#[test]
fn c36_the_authorization_server_of_avelino_is_read_with_its_defaults() {
    let with = |more: &str| {
        avelino(&format!(
            r#"{{"mcpServers": {{}}, "serverAuth": {{ "providers": ["oauth_as"], "oauthAs": {{
            "issuerUrl": "https://mcp.example.com", "scopesSupported": ["mcp"], "injectedRoles": ["via_oauth"],
            "redirectUriAllowlist": ["https://claude.ai/api/mcp/auth_callback",
                "https://chat.openai.com/aip/*/oauth/callback"]{more} }} }}}}"#
        ))
    };
    let secret = r#", "jwtSecret": "0123456789abcdef0123456789abcdef""#;
    let networks = r#", "trustedSourceCidrs": ["127.0.0.1/32"]"#;
    let loaded = with(&format!("{secret}{networks}"));
    assert_eq!((loaded.problems.len(), loaded.gateway.len()), (0, 0), "{:?}", loaded.problems);
    let server = loaded.config.gateway.auth.as_ref().unwrap().oauth_as.clone().unwrap();
    let seconds = |time: Duration| time.as_secs();
    assert_eq!(seconds(server.access_token_ttl), 3600);
    assert_eq!(seconds(server.refresh_token_ttl), 2_592_000);
    assert_eq!(seconds(server.authorization_code_ttl), 60);
    assert_eq!(server.issuer_url.as_deref(), Some("https://mcp.example.com"));
    assert_eq!((server.injected_roles.len(), server.redirect_uri_allowlist.len()), (1, 2));
    let loaded = with(&format!(r#"{secret}{networks}, "accessTokenTtlSeconds": 90"#));
    let server = loaded.config.gateway.auth.as_ref().unwrap().oauth_as.clone().unwrap();
    assert_eq!(seconds(server.access_token_ttl), 90);
    for wrong in [
        networks.to_owned(),
        secret.to_owned(),
        format!(r#"{secret}, "trustedSourceCidrs": []"#),
        format!(r#", "jwtSecret": "0123456789abcdef0123456789abcde"{networks}"#),
        format!(r#"{secret}{networks}, "accessTokenTtlSeconds": 0"#),
        format!(r#"{secret}{networks}, "accessTokenTtl": 60"#),
    ] {
        assert!(with(&wrong).fatal().count() > 0, "{wrong} was accepted");
    }
}

/// Row C37: the roles of the page, at the top or in `serverAuth`.
#[test]
fn c37_the_roles_of_avelino_are_read_wherever_they_stand() {
    let acl = r#""acl": {
        "default": "deny", "strictClassification": true,
        "roles": {
            "admin": [{ "server": "*", "access": "*" }],
            "dev": [
                { "server": ["grafana", "sentry"], "access": "*", "tools": [], "prompts": [] },
                { "server": "grafana", "access": "write", "tools": ["delete_*"], "deny": true }
            ],
            "readonly": [{ "server": "*", "access": "read", "tools": ["get_*"], "resources": ["*"] }]
        },
        "subjects": {
            "alice": { "roles": ["admin"] },
            "bob": { "roles": ["dev"], "extra": [{ "server": "db", "access": "read" }] },
            "charlie": { "roles": ["readonly"] }
        }
    }"#;
    for text in [
        format!("{{\"mcpServers\": {{}}, {acl}}}"),
        format!("{{\"mcpServers\": {{}}, \"serverAuth\": {{ {acl} }}}}"),
    ] {
        let loaded = avelino(&text);
        assert_eq!((loaded.problems.as_slice(), loaded.gateway.len()), (&[][..], 0), "{text}");
        let [access] = loaded.config.access.as_slice() else { panic!("{text}") };
        let table = &access.table;
        assert_eq!((table.default, table.strictness), (Says::Deny, Strictness::Strict));
        let roles: Vec<(&str, usize)> =
            table.roles.iter().map(|(name, grants)| (name.as_str(), grants.len())).collect();
        assert_eq!(roles, [("admin", 1), ("dev", 2), ("readonly", 1)]);
        let dev = &table.roles[1].1;
        assert_eq!((dev[0].servers.len(), dev[0].access), (2, AccessTo::All));
        assert!(
            dev[0].tools.is_none() && dev[0].prompts.is_none(),
            "an empty list narrows nothing"
        );
        assert_eq!((dev[0].says, dev[1].says), (Says::Allow, Says::Deny));
        assert_eq!(dev[1].tools.as_ref().unwrap()[0].as_str(), "delete_*");
        let (bob, subject) = &table.subjects[1];
        assert_eq!(
            (bob.as_str(), &subject.roles[..], subject.extra.len()),
            ("bob", &["dev".to_owned()][..], 1)
        );
    }
}

/// Row C38: the older form.
#[test]
fn c38_the_older_rules_of_avelino_are_read_in_their_order() {
    let loaded = avelino(
        r#"{"mcpServers": {}, "serverAuth": { "acl": { "rules": [
            { "subjects": ["bob"], "roles": ["viewer"], "tools": ["sentry__*"], "policy": "deny" },
            { "tools": ["*"], "policy": "allow" }
        ] } }}"#,
    );
    assert_eq!((loaded.problems.as_slice(), loaded.gateway.len()), (&[][..], 0));
    let table = &loaded.config.access[0].table;
    assert_eq!(table.default, Says::Allow);
    let said: Vec<(Says, usize)> = table.rules.iter().map(|it| (it.says, it.roles.len())).collect();
    assert_eq!(said, [(Says::Deny, 1), (Says::Allow, 0)]);
    assert!(avelino(r#"{"mcpServers": {}}"#).config.access.is_empty(), "neither binds nobody");
}

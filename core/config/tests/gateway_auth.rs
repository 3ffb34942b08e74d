//! The `[gateway.auth]` table: who may connect, and which mistakes stop the gateway.

use std::time::Duration;

use capstan_config::{
    Auth, AuthProvider, JwtAlgorithm, Loaded, NativeFiles, Scope, Severity, SourceFile,
    Surroundings,
};

/// A file with all providers.
const ALL: &str = r#"
[gateway]
public_url = "https://mcp.example.com"
[gateway.auth]
providers = ["bearer", "tokens", "forwarded", "jwt", "oauth_as"]
[gateway.auth.bearer.tokens]
"plum-one" = "alice"
"${SECOND}" = { subject = "bob", roles = ["dev", "oncall"] }
[gateway.auth.forwarded]
header = "x-user"
trusted_source_cidrs = ["10.0.0.0/8"]
[gateway.auth.jwt]
issuer = "https://login.example.com/realms/acme"
audience = ["capstan"]
algorithms = ["RS256", "EdDSA"]
roles_claim = "realm_access.roles"
required_claims = { azp = "capstan" }
[gateway.auth.oauth_as]
jwt_secret = "0123456789abcdef0123456789abcdef"
redirect_uri_allowlist = ["https://claude.ai/api/mcp/auth_callback"]
"#;

/// Mistakes in the table, each with a part of its message and of its remedy.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "providers = [\"bearer\"]",
        "`bearer` needs `gateway.auth.bearer`, which is missing",
        "add `gateway.auth.bearer`",
    ),
    ("providers = [\"jwt\"]", "`jwt` needs `gateway.auth.jwt`", "remove `jwt`"),
    ("providers = [\"oauth_as\"]", "`oauth_as` needs `gateway.auth.oauth_as`", "remove `oauth_as`"),
    ("providers = [\"beerer\"]", "the unknown provider \"beerer\"", "did you mean \"bearer\"?"),
    ("providers = [\"tokens\", \"tokens\"]", "names `tokens` twice", "keep one"),
    ("providers = \"bearer\"", "must be a list of strings", "write `providers = "),
    ("provider = \"bearer\"", "would leave the gateway open", "write `providers = [\"bearer\"]`"),
    (
        "bearer = { tokens = { t = \"a\" } }",
        "does not name `bearer`",
        "add `bearer` to `providers`",
    ),
    ("providers = [\"bearer\"]\nbearer = {}", "has no token", "one entry per token"),
    ("providers = [\"bearer\"]\nbearer = { tokens = {} }", "has no token", "one entry per token"),
    (
        "providers = [\"bearer\"]\nbearer = { tokens = { t = 7 } }",
        "must be a subject or a table",
        "one entry",
    ),
    (
        "providers = [\"bearer\"]\nbearer = { tokens = { t = { roles = [] } } }",
        "has no `subject`",
        "add `subject`",
    ),
    (
        "providers = [\"bearer\"]\nbearer = { tokens = { t = { subject = \"a\", role = [] } } }",
        "is not a known key",
        "did you mean `roles`?",
    ),
    (
        "providers = [\"bearer\"]\nbearer = { tokens = { t = \"operator\" } }",
        "which is reserved",
        "choose another",
    ),
    (
        "providers = [\"bearer\"]\nbearer = { tokens = { \"\" = \"a\" } }",
        "has an empty value",
        "fill it in",
    ),
    (
        "providers = [\"bearer\"]\nbearer = { tokens = { t = \" \" } }",
        "has an empty value",
        "fill it in",
    ),
    (
        "providers = [\"bearer\"]\nbearer = { tokens = { plum-two = \"a\", \"${SECOND}\" = \"b\" } }",
        "two tokens",
        "one subject",
    ),
    (
        "providers = [\"forwarded\"]\nforwarded = { header = \"x y\" }",
        "is not the name of a header",
        "x-forwarded-user",
    ),
    (
        "providers = [\"forwarded\"]\nforwarded = { trusted_source_cidrs = [] }",
        "no proxy is trusted",
        "write the networks",
    ),
    (
        "providers = [\"forwarded\"]\nforwarded = { trusted_source_cidrs = [\"10\"] }",
        "trusted_source_cidrs",
        "10.0.0.0/8",
    ),
    ("providers = [\"jwt\"]\njwt = { audience = [\"a\"] }", "has no `issuer`", "add the issuer"),
    (
        "providers = [\"jwt\"]\njwt = { issuer = \"http://login.example.com\", audience = [\"a\"] }",
        "must be an `https://` address",
        "loopback",
    ),
    (
        "providers = [\"jwt\"]\njwt = { issuer = \"https://a\", audience = [] }",
        "which could mean all or none",
        "public_url",
    ),
    (
        "providers = [\"jwt\"]\njwt = { issuer = \"https://a\", audience = [\"a\"], algorithms = [\"HS256\"] }",
        "cannot be \"HS256\"",
        "RS256",
    ),
    (
        "providers = [\"jwt\"]\njwt = { issuer = \"https://a\", audience = [\"a\"], algorithms = [\"none\"] }",
        "cannot be \"none\"",
        "RS256",
    ),
    (
        "providers = [\"jwt\"]\njwt = { issuer = \"https://a\", audience = [\"a\"], algorithms = [] }",
        "no token could be accepted",
        "RS256",
    ),
    (
        "providers = [\"jwt\"]\njwt = { issuer = \"https://a\", audience = [\"a\"], leeway = \"1h\" }",
        "longer than five minutes",
        "clocks",
    ),
];

fn variable(name: &str) -> Option<String> {
    match name {
        "SECOND" => Some("plum-two".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn load(files: &[(Scope, &str)]) -> Loaded {
    let source = |(index, (scope, text)): (usize, &(Scope, &str))| {
        SourceFile::new(format!("{index}.toml"), *scope, *text)
    };
    let files: Vec<SourceFile> = files.iter().enumerate().map(source).collect();
    let around = Surroundings { variable: &variable, project_dir: "" };
    capstan_config::load(&files, &around, &NativeFiles)
}

fn auth(text: &str) -> Loaded {
    load(&[(Scope::User, text)])
}

#[test]
fn every_provider_has_its_settings() {
    let loaded = auth(ALL);
    assert_eq!((&loaded.problems, &loaded.gateway), (&vec![], &vec![]));
    let auth = loaded.config.gateway.auth.clone().unwrap();
    let words: Vec<&str> = auth.providers.iter().map(|provider| provider.as_str()).collect();
    assert_eq!(words, ["bearer", "tokens", "forwarded", "jwt", "oauth_as"]);
    let tokens: Vec<_> = auth
        .bearer
        .iter()
        .map(|one| (one.token.reveal().as_str(), one.subject.as_str(), one.roles.len()))
        .collect();
    assert_eq!(tokens, [("plum-one", "alice", 0), ("plum-two", "bob", 2)]);
    assert_eq!(
        (auth.forwarded.header.as_str(), auth.forwarded.groups_header.as_str()),
        ("x-user", "x-forwarded-groups")
    );
    let jwt = auth.jwt.as_ref().unwrap();
    assert_eq!(jwt.algorithms, [JwtAlgorithm::Rs256, JwtAlgorithm::EdDsa]);
    assert_eq!(
        (jwt.subject_claim.as_str(), jwt.roles_claim.as_str()),
        ("sub", "realm_access.roles")
    );
    let server = auth.oauth_as.as_ref().unwrap();
    assert_eq!(server.access_token_ttl, Duration::from_hours(1));
    assert_eq!(server.refresh_token_ttl, Duration::from_hours(30 * 24));
    assert_eq!(server.authorization_code_ttl, Duration::from_mins(1));
    let shown = capstan_config::show(&loaded);
    let shown: Vec<String> = shown.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
    let shown = shown.join("\n");
    assert!(shown.contains("gateway.auth.bearer.tokens=\"*** for alice, bob\""), "{shown}");
    assert!(shown.contains("gateway.auth.jwt.issuer=\"https://login"), "{shown}");
    assert!(!shown.contains("plum-") && !shown.contains("0123456789abcdef"), "{shown}");
}

#[test]
fn c33_no_provider_and_none_mean_that_everyone_may_connect() {
    assert_eq!(auth("").config.gateway.auth, None);
    for open in [
        "[gateway.auth]",
        "[gateway.auth]\nproviders = []",
        "[gateway.auth]\nproviders = [\"none\"]",
    ] {
        let loaded = auth(open);
        assert_eq!((&loaded.problems, &loaded.gateway), (&vec![], &vec![]), "{open}");
        assert!(loaded.config.gateway.auth.is_none_or(|auth| auth.is_open()), "{open}");
    }
    assert!(!Auth { providers: vec![AuthProvider::Tokens], ..Auth::default() }.is_open());
    let both =
        Auth { providers: vec![AuthProvider::Tokens, AuthProvider::None], ..Auth::default() };
    assert!(both.is_open(), "a chain that ends with none");
}

#[test]
fn c33_a_mistake_in_the_chain_is_an_error_with_its_remedy() {
    for (text, message, help) in MISTAKES {
        let loaded = auth(&format!("[gateway.auth]\n{text}\n"));
        let fits = |problem: &&capstan_config::Problem| {
            problem.message.contains(message)
                && problem.help.as_ref().is_some_and(|given| given.contains(help))
        };
        assert!(loaded.fatal().any(|one| fits(&one)), "{text}: {:?}", loaded.problems);
    }
}

#[test]
fn c36_the_settings_of_the_authorization_server_are_checked() {
    let with = |more: &str| {
        auth(&format!(
            "[gateway]\npublic_url = \"https://a\"\n[gateway.auth]\nproviders = [\"oauth_as\"]\n[gateway.auth.oauth_as]\n{more}\n"
        ))
    };
    let good = "redirect_uri_allowlist = [\"https://chat.openai.com/aip/*/oauth/callback\"]";
    assert_eq!(with(good).problems, []);
    for (wrong, message) in [
        ("", "names no address"),
        ("redirect_uri_allowlist = [\"https://*/cb\"]", "is not safe"),
        ("redirect_uri_allowlist = []", "names no address"),
        (&format!("{good}\njwt_secret = \"0123456789abcdef0123456789abcde\""), "shorter than 32"),
        (&format!("{good}\ntrusted_source_cidrs = []"), "no proxy is trusted"),
        (&format!("{good}\ntrusted_user_header = \"\""), "has an empty value"),
        (&format!("{good}\nissuer_url = \"ftp://a\""), "is not an `http` or `https` address"),
        (&format!("{good}\naccess_token_ttl = \"0s\""), "must not be zero"),
        (&format!("{good}\nscopes_supported = [\"\"]"), "has an empty value"),
        (&format!("{good}\ninjected_roles = [\" \"]"), "has an empty value"),
    ] {
        let loaded = with(wrong);
        assert!(
            loaded.fatal().any(|one| one.message.contains(message)),
            "{wrong}: {:?}",
            loaded.problems
        );
    }
}

#[test]
fn the_provider_at_which_users_sign_in_is_checked() {
    let with = |upstream: &str| {
        auth(&format!(
            "[gateway]\npublic_url = \"https://a\"\n[gateway.auth]\nproviders = [\"oauth_as\"]\n\
             [gateway.auth.oauth_as]\nredirect_uri_allowlist = [\"https://a/cb\"]\n{upstream}\n"
        ))
    };
    let good = "upstream = { issuer = \"https://login.example.com\", client_id = \"c\" }";
    let loaded = with(good);
    assert_eq!(loaded.problems, []);
    let server = loaded.config.gateway.auth.and_then(|auth| auth.oauth_as).unwrap();
    assert_eq!(server.upstream.unwrap().scopes, ["openid", "profile"]);
    for (wrong, message) in [
        ("upstream = { client_id = \"c\" }", "has no `issuer`"),
        ("upstream = { issuer = \"https://l\" }", "has no `client_id`"),
        (
            "upstream = { issuer = \"http://l.example\", client_id = \"c\" }",
            "must be an `https://`",
        ),
        (
            "upstream = { issuer = \"https://l\", client_id = \"c\", scopes = [\"email\"] }",
            "has no `openid`",
        ),
        (
            "trusted_source_cidrs = [\"127.0.0.1\"]\nupstream = { issuer = \"https://l\", client_id = \"c\" }",
            "are two ways to sign in",
        ),
        (
            "upstream = { issuer = \"https://l\", client_id = \"c\", typo = 1 }",
            "is not a known key",
        ),
    ] {
        let loaded = with(wrong);
        assert!(
            loaded.fatal().any(|one| one.message.contains(message)),
            "{wrong}: {:?}",
            loaded.problems
        );
    }
}

#[test]
fn a_value_that_is_unset_or_empty_stops_the_gateway_and_no_other_command() {
    for (text, message) in [
        ("bearer = { tokens = { \"${UNSET}\" = \"a\" } }", "`UNSET`, which is not set"),
        ("bearer = { tokens = { \"${EMPTY}\" = \"a\" } }", "variable that is empty"),
        ("bearer = { tokens = { t = \"${UNSET}\" } }", "`UNSET`, which is not set"),
        ("bearer = { tokens = { t = { subject = \"${EMPTY}\" } } }", "variable that is empty"),
        (
            "bearer = { tokens = { t = { subject = \"a\", roles = [\"${EMPTY}\"] } } }",
            "variable that is empty",
        ),
    ] {
        for missing in ["", "[mcp]\nmissing_env = \"empty\"\n"] {
            let loaded =
                auth(&format!("{missing}[gateway.auth]\nproviders = [\"bearer\"]\n{text}\n"));
            assert_eq!(loaded.fatal().count(), 0, "{text}: {:?}", loaded.problems);
            let [problem] = loaded.gateway.as_slice() else {
                panic!("{text}: {:?}", loaded.gateway)
            };
            assert!(problem.message.contains(message), "{text}: {}", problem.message);
            let warned = loaded.problems.iter().find(|one| one.message.contains(message)).unwrap();
            assert_eq!(warned.severity, Severity::Warning);
        }
    }
}

#[test]
fn a_project_and_a_second_file_cannot_decide_who_may_connect() {
    let tokens = "[gateway.auth]\nproviders = [\"tokens\"]\n";
    let open = "[gateway.auth]\nproviders = []\n";
    let loaded = load(&[(Scope::Project, tokens)]);
    assert_eq!(loaded.config.gateway.auth, None);
    assert!(loaded.gateway.iter().any(|one| one.message.contains("is in a project file")));
    let loaded = load(&[(Scope::User, tokens), (Scope::User, open)]);
    assert!(
        loaded.gateway.iter().any(|one| one.message.contains("is also in 1.toml")),
        "{:?}",
        loaded.gateway
    );
    assert_eq!(load(&[(Scope::User, tokens), (Scope::User, "")]).gateway, []);
}

#[test]
fn tokens_and_the_authorization_server_need_an_address_or_an_audience() {
    let jwt = "[gateway.auth]\nproviders = [\"jwt\"]\njwt = { issuer = \"https://a\" }\n";
    let server = "[gateway.auth]\nproviders = [\"oauth_as\"]\noauth_as = { redirect_uri_allowlist = [\"https://a/b\"] }\n";
    for text in [jwt, server] {
        assert_eq!(auth(text).gateway.len(), 1, "{text}");
        let public = format!("[gateway]\npublic_url = \"https://mcp.example.com\"\n{text}");
        assert_eq!(auth(&public).gateway, [], "{text}");
    }
}

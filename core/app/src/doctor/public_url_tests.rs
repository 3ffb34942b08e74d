//! Tests of the checks of a public address.

use futures::FutureExt;
use futures::future::ready;

use capstan_hub::ports::BoxFuture;
use serde_json::{Value, json};

use super::Check;
use super::public_url::*;
use crate::CheckStatus;

/// A gateway whose answers a test can change.
struct Site(fn(&ProbeRequest, ProbeAnswer) -> Result<ProbeAnswer, String>);

impl PublicProbe for Site {
    fn send(&self, request: ProbeRequest) -> BoxFuture<'_, Result<ProbeAnswer, String>> {
        let good = good(&request);
        ready((self.0)(&request, good)).boxed()
    }
}

/// The answer of a gateway where all is well.
fn good(request: &ProbeRequest) -> ProbeAnswer {
    let origin = "https://mcp.example.com";
    let header = |name: &str, value: String| vec![(name.to_owned(), value)];
    let json =
        |value: Value| ProbeAnswer { status: 200, body: value.to_string(), ..Default::default() };
    let path = request.url.strip_prefix(origin).unwrap();
    let resource =
        json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] });
    match path {
        "/mcp" => {
            let error = if request.headers.iter().any(|(name, _)| *name == "authorization") {
                ", error=\"invalid_token\""
            } else {
                ""
            };
            let at = format!("{origin}/.well-known/oauth-protected-resource/mcp");
            let value = format!("Bearer resource_metadata=\"{at}\"{error}");
            ProbeAnswer {
                status: 401,
                headers: header("www-authenticate", value),
                ..Default::default()
            }
        }
        "/.well-known/oauth-protected-resource" | "/.well-known/oauth-protected-resource/mcp" => {
            json(resource)
        }
        "/.well-known/oauth-authorization-server" => json(json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
        })),
        "/register" => {
            let body = format!(
                r#"{{"error":"invalid_redirect_uri","error_description":"`{REFUSED}` no"}}"#
            );
            ProbeAnswer { status: 400, body, ..Default::default() }
        }
        "/authorize" => {
            let policy = "default-src 'none'; frame-ancestors 'none'".to_owned();
            ProbeAnswer {
                status: 400,
                headers: header("content-security-policy", policy),
                ..Default::default()
            }
        }
        _ => ProbeAnswer { status: 200, ..Default::default() },
    }
}

type Change = fn(&ProbeRequest, ProbeAnswer) -> Result<ProbeAnswer, String>;

async fn checked(change: Change) -> Vec<Check> {
    check_public_url(&Site(change), "https://mcp.example.com/mcp").await
}

#[tokio::test]
async fn a_gateway_that_apps_can_use_has_no_problem() {
    let checks = checked(|_, answer| Ok(answer)).await;
    assert!(checks.iter().all(|check| check.status == CheckStatus::Ok), "{checks:#?}");
    assert_eq!(checks.len(), 14, "{checks:#?}");
}

/// Changes of the gateway, each with the need that is then not met.
fn at_the_gateway() -> [(&'static str, Change); 6] {
    [
        ("tls", |_, _| Err("the certificate has expired".to_owned())),
        ("refusal without a token", |request, answer| {
            let open = ProbeAnswer { status: 200, ..Default::default() };
            Ok(if request.url.ends_with("/mcp") && request.headers.len() == 1 {
                open
            } else {
                answer
            })
        }),
        ("refusal without a token", |request, mut answer| {
            if request.method == "POST" && request.url.ends_with("com/mcp") {
                answer.headers.clear();
            }
            Ok(answer)
        }),
        ("refusal without a token", |request, mut answer| {
            if request.url.ends_with("com/mcp") {
                for (_, value) in &mut answer.headers {
                    *value = value.replace("mcp.example.com", "127.0.0.1:8080");
                }
            }
            Ok(answer)
        }),
        ("header Authorization", |request, mut answer| {
            if request.url.ends_with("com/mcp") {
                for (_, value) in &mut answer.headers {
                    *value = value.replace("error=", "x=");
                }
            }
            Ok(answer)
        }),
        ("metadata of /mcp", |request, mut answer| {
            if request.url.ends_with("resource/mcp") {
                answer.status = 404;
            }
            Ok(answer)
        }),
    ]
}

/// Changes of the authorization server.
fn at_the_server() -> [(&'static str, Change); 6] {
    [
        ("metadata at the root", |request, mut answer| {
            if request.url.ends_with("resource") {
                answer.body = answer.body.replace("mcp.example.com/mcp", "other.test/mcp");
            }
            Ok(answer)
        }),
        ("authorization server", |request, mut answer| {
            if request.url.ends_with("server") {
                answer.body = answer.body.replace("S256", "plain");
            }
            Ok(answer)
        }),
        ("authorization server", |request, mut answer| {
            if request.url.ends_with("server") {
                answer.body = answer.body.replace("\"issuer\":\"https", "\"issuer\":\"http");
            }
            Ok(answer)
        }),
        ("redirect address of ChatGPT", |request, mut answer| {
            if request.body.contains("connector_platform") {
                answer.body = answer.body.replace("doctor.invalid", "chatgpt.com");
            }
            Ok(answer)
        }),
        ("sign-in page", |request, mut answer| {
            if request.url.ends_with("/authorize") {
                answer.status = 403;
            }
            Ok(answer)
        }),
        ("sign-in page", |request, mut answer| {
            if request.url.ends_with("/authorize") {
                answer.headers.clear();
            }
            Ok(answer)
        }),
    ]
}

#[tokio::test]
async fn each_need_that_is_not_met_is_a_finding_of_its_own() {
    let table = at_the_gateway().into_iter().chain(at_the_server());
    for (number, (name, change)) in table.enumerate() {
        let checks = checked(change).await;
        let bad: Vec<_> = checks.iter().filter(|check| check.status != CheckStatus::Ok).collect();
        assert!(bad.iter().any(|check| check.check == name), "{number} {name}: {bad:#?}");
        assert!(bad.iter().all(|check| check.fix.is_some()));
    }
}

#[tokio::test]
async fn an_address_that_apps_cannot_use_is_reported_before_anything_is_sent() {
    for url in
        ["http://mcp.example.com", "https://", "https://a@b", "https://h/base", "mcp.example.com"]
    {
        let checks = check_public_url(&Silent, url).await;
        assert_eq!(checks.len(), 1, "{url}: {checks:?}");
        assert_eq!(checks.first().unwrap().status, CheckStatus::Error, "{url}");
    }
    let checks = check_public_url(&Silent, "https://127.0.0.1:8443").await;
    assert_eq!(checks.first().unwrap().status, CheckStatus::Warning);
}

/// A network without an answer.
struct Silent;

impl PublicProbe for Silent {
    fn send(&self, _: ProbeRequest) -> BoxFuture<'_, Result<ProbeAnswer, String>> {
        ready(Err("nothing answers".to_owned())).boxed()
    }
}

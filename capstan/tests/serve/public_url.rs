//! `capstan doctor --public-url` against gateways over TLS on this machine.

use std::net::TcpListener;

use capstan_testkit::World;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;

use crate::stage::{Gateway, with};

/// The redirect addresses of the guide.
const ALLOWED: &str = "\"https://claude.ai/api/mcp/auth_callback\", \
    \"https://claude.com/api/mcp/auth_callback\", \
    \"https://chatgpt.com/connector_platform_oauth_redirect\", \
    \"https://chatgpt.com/connector/oauth/*\", \
    \"https://chat.openai.com/aip/*/oauth/callback\"";

/// Determines if the check knows the authority of the certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Authority {
    Known,
    Unknown,
}

/// Writes a certificate for 127.0.0.1 and its key; the file of their authority.
#[track_caller]
fn certified(world: &World) -> String {
    let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = world.write("ca.pem", ca.self_signed(&ca_key).unwrap().pem());
    let issuer = Issuer::new(ca, ca_key);
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    world.write("cert.pem", certificate.signed_by(&key, &issuer).unwrap().pem());
    world.write("key.pem", key.serialize_pem());
    authority.display().to_string()
}

/// Starts a gateway over TLS and checks it: the findings that are not fine.
#[track_caller]
fn problems(config: &str, known: Authority) -> Vec<(String, String)> {
    // The issuer is part of the configuration, so the port must be known before the start.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let world = with(&config.replace("PORT", &port.to_string()));
    let authority = certified(&world);
    let folder = std::path::Path::new(&authority).parent().unwrap().display().to_string();
    let words = format!("--http :{port} --tls-cert {folder}/cert.pem --tls-key {folder}/key.pem");
    let gateway = Gateway::start(&world, &words);
    let line = gateway.says("listening on ");
    let url = line.strip_prefix("listening on ").unwrap().to_owned();
    let doctor = world.capstan(["doctor", "--public-url", &url, "--json"]);
    let doctor =
        if known == Authority::Known { doctor.env("SSL_CERT_FILE", authority) } else { doctor };
    let checks: Value = serde_json::from_str(&doctor.run().stdout).unwrap();
    let checks = checks.as_array().unwrap();
    let bad = checks.iter().filter(|check| check["status"] != "ok");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    bad.map(|check| (text(&check["check"]), text(&check["fix"]))).collect()
}

fn own(allowed: &str) -> String {
    format!(
        "[gateway.auth]\nproviders = [\"oauth_as\"]\n\
         [gateway.auth.oauth_as]\nredirect_uri_allowlist = [{allowed}]\n\
         issuer_url = \"https://127.0.0.1:PORT\"\n"
    )
}

fn names(problems: &[(String, String)]) -> Vec<&str> {
    problems.iter().map(|(check, _)| check.as_str()).collect()
}

#[test]
fn a_gateway_that_apps_can_use_lacks_only_a_public_name() {
    assert_eq!(names(&problems(&own(ALLOWED), Authority::Known)), ["address"]);
}

#[test]
fn each_problem_of_a_gateway_is_reported_with_its_remedy() {
    let untrusted = problems(&own(ALLOWED), Authority::Unknown);
    assert_eq!(names(&untrusted), ["address", "tls"], "an unknown authority");
    let few = problems(&own("\"https://claude.ai/api/mcp/auth_callback\""), Authority::Known);
    let refused: Vec<&str> =
        names(&few).into_iter().filter(|name| name.starts_with("redirect address of ")).collect();
    assert_eq!(refused.len(), 4, "{few:?}");
    assert!(few.iter().any(|(_, fix)| fix.contains("add \"https://chatgpt.com/")), "{few:?}");
    let tokens = problems("[gateway.auth]\nproviders = [\"tokens\"]\n", Authority::Known);
    assert!(names(&tokens).contains(&"refusal without a token"), "{tokens:?}");
    assert!(tokens.iter().any(|(_, fix)| fix.contains("`oauth_as`")), "{tokens:?}");
    let open = problems("[gateway]\n", Authority::Known);
    assert!(names(&open).contains(&"refusal without a token"), "{open:?}");
    let elsewhere = "[gateway]\npublic_url = \"https://mcp.example.com\"\n".to_owned();
    let elsewhere = problems(&(elsewhere + &own(ALLOWED)), Authority::Known);
    assert!(names(&elsewhere).contains(&"refusal without a token"), "{elsewhere:?}");
    assert!(elsewhere.iter().any(|(_, fix)| fix.contains("set `public_url")), "{elsewhere:?}");
    let proxied = own(ALLOWED) + "trusted_source_cidrs = [\"10.9.9.9/32\"]\n";
    assert_eq!(names(&problems(&proxied, Authority::Known)), ["address", "sign-in page"]);
}

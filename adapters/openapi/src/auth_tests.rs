//! A document alone cannot make credentials be sent unencrypted.

use capstan_model::Credentials;
use serde_json::json;

use super::*;
use crate::settings::Source;

fn settings(auth: Vec<(&str, Credentials)>) -> OpenApiSettings {
    OpenApiSettings {
        name: "s".parse().unwrap(),
        source: Source::File("api.json".into()),
        base_url: None,
        headers: Vec::new(),
        auth: auth.into_iter().map(|(name, one)| (name.to_owned(), one)).collect(),
        secrets: Vec::new(),
        tags: None,
        only: None,
        except: Vec::new(),
        addresses: capstan_safety::address::AddressPolicy::default(),
        startup_timeout: std::time::Duration::ZERO,
        timeout: std::time::Duration::ZERO,
        answer: 0,
        cache: None,
    }
}

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

fn document() -> Document {
    let schemes = json!({
        "key": { "type": "apiKey", "in": "query", "name": "k" },
        "name": { "type": "http", "scheme": "basic" },
        "bearer": { "type": "http", "scheme": "bearer" },
        "login": { "type": "oauth2" },
    });
    let root = json!({ "openapi": "3.0.0", "components": { "securitySchemes": schemes } });
    Document::parse(&root.to_string()).unwrap()
}

#[test]
fn nothing_is_sent_in_clear_text_because_a_document_says_so() {
    let token = || Credentials::Token(secret("t"));
    let client = Credentials::Client {
        id: "me".to_owned(),
        secret: secret("s"),
        token_url: Some("https://h.example/token".to_owned()),
        scopes: Vec::new(),
    };
    let password = Credentials::Password { username: "me".to_owned(), password: secret("p") };
    let all = [("key", token()), ("name", password), ("bearer", token()), ("login", client)];
    for (name, credentials) in all {
        let settings = settings(vec![(name, credentials)]);
        let kept = |given: Option<&str>, home: &str| {
            let (document, home) = (document(), WebAddress::parse(home).unwrap());
            let base = Base::choose(&document, given, Some(&home), &settings.addresses).unwrap();
            let auth = Auth::read(&document, &settings, &base, Some(&home));
            let wanted = auth.means(&Some(vec![vec![name.to_owned()]]));
            (auth.means(&None).schemes.len() + wanted.schemes.len(), auth.problem(), wanted.lacking)
        };
        let (schemes, problem, lacking) = kept(None, "http://h.example/api.json");
        assert_eq!(schemes, 0, "{name}");
        assert!(problem.unwrap().contains("`http://h.example`, which is not encrypted"), "{name}");
        assert!(lacking.unwrap().contains("set `base_url`"), "{name}");
        for (given, home) in [
            (None, "https://h.example/api.json"),
            (None, "http://127.0.0.1:8/api.json"),
            (None, "http://localhost/api.json"),
            (Some("http://h.example/"), "http://h.example/api.json"),
        ] {
            assert_eq!(kept(given, home), (2, None, None), "{name} {home}");
        }
    }
}

//! Which client is used: our metadata document, and the clients of other programs.

use capstan_hub::ports::VaultKind;
use capstan_login::{ForeignTokens, Login, LoginError, OAuthSettings, client_document};
use capstan_model::Secret;
use serde_json::{Value, json};

use crate::flow::granting;
use crate::stage::{Answer, Seen, Stage, Visitor, call, json_answer, log_in};

const DOCUMENT: &str = "/oauth/client.json";

/// An authorization server that reads metadata documents, and a gateway that publishes `document`.
async fn reading(document: impl Fn(&str) -> Option<Value> + Send + Sync + 'static) -> Stage {
    Stage::new(move |origin, seen| match seen.path.as_str() {
        DOCUMENT => document(&format!("{origin}{DOCUMENT}")).map(|text| json_answer(200, &text)),
        "/.well-known/oauth-authorization-server/as" => reads_documents(origin, seen),
        _ => granting(origin, seen),
    })
    .await
}

fn reads_documents(origin: &str, seen: &Seen) -> Option<Answer> {
    let (_, _, body) = granting(origin, seen)?;
    let mut metadata: Value = serde_json::from_str(&body).unwrap();
    let known = metadata.as_object_mut().unwrap();
    known.insert("client_id_metadata_document_supported".to_owned(), json!(true));
    Some(json_answer(200, &metadata))
}

fn published(stage: &Stage, oauth: OAuthSettings) -> Login {
    let document = Some(format!("{}{DOCUMENT}", stage.peer.origin));
    stage.login_with(OAuthSettings { document, ..oauth })
}

#[tokio::test]
async fn our_metadata_document_is_the_client_where_both_sides_can_use_it() {
    let stage = reading(|address| Some(client_document(address, &[]))).await;
    let login = published(&stage, OAuthSettings::default());
    log_in(&login, &Visitor::willing()).await.unwrap();
    assert!(stage.peer.seen("/register").is_empty(), "nothing is registered");
    let address = format!("{}{DOCUMENT}", stage.peer.origin);
    assert_eq!(stage.peer.seen("/token")[0].field("client_id"), Some(address));
    assert_eq!(call(&stage.client(&login)).await.unwrap().status, 200);
}

#[tokio::test]
async fn without_a_usable_document_a_client_is_registered() {
    let documents: [fn(&str) -> Option<Value>; 4] = [
        |_| None,
        |_| Some(json!("no document")),
        |_| Some(client_document("https://other.example/oauth/client.json", &[])),
        |address| {
            let redirects = ["https://evil.example/callback"];
            Some(json!({ "client_id": address, "redirect_uris": redirects }))
        },
    ];
    for document in documents {
        let stage = reading(document).await;
        log_in(&published(&stage, OAuthSettings::default()), &Visitor::willing()).await.unwrap();
        assert_eq!(stage.peer.seen("/register").len(), 1);
        let id = stage.peer.seen("/token")[0].field("client_id");
        assert_eq!(id.as_deref(), Some("client-1"));
    }
    // The authorization server does not say that it reads documents.
    let stage = Stage::new(granting).await;
    log_in(&published(&stage, OAuthSettings::default()), &Visitor::willing()).await.unwrap();
    assert_eq!(stage.peer.seen("/register").len(), 1);
    assert!(stage.peer.seen(DOCUMENT).is_empty(), "nor is the document asked for");
}

#[tokio::test]
async fn a_configured_client_or_registration_endpoint_goes_before_our_document() {
    let stage = reading(|address| Some(client_document(address, &[]))).await;
    let mine = OAuthSettings { client_id: Some("mine".to_owned()), ..OAuthSettings::default() };
    log_in(&published(&stage, mine), &Visitor::willing()).await.unwrap();
    let registration_url = Some(format!("{}/register", stage.peer.origin));
    let own = OAuthSettings { registration_url, ..OAuthSettings::default() };
    log_in(&published(&stage, own), &Visitor::willing()).await.unwrap();
    let ids: Vec<_> =
        stage.peer.seen("/token").iter().map(|sent| sent.field("client_id")).collect();
    assert_eq!(ids, [Some("mine".to_owned()), Some("client-1".to_owned())]);
    assert!(stage.peer.seen(DOCUMENT).is_empty());
}

#[tokio::test]
async fn a_client_is_registered_if_our_document_is_rejected() {
    let stage = Stage::new(|origin, seen| match seen.path.as_str() {
        DOCUMENT => Some(json_answer(200, &client_document(&format!("{origin}{DOCUMENT}"), &[]))),
        "/.well-known/oauth-authorization-server/as" => reads_documents(origin, seen),
        "/token" if seen.field("client_id").is_some_and(|id| id.ends_with(DOCUMENT)) => {
            Some(json_answer(401, &json!({ "error": "invalid_client" })))
        }
        _ => granting(origin, seen),
    })
    .await;
    log_in(&published(&stage, OAuthSettings::default()), &Visitor::willing()).await.unwrap();
    assert_eq!((stage.peer.seen("/token").len(), stage.peer.seen("/register").len()), (2, 1));
}

/// Tokens of another program that have expired, with the client that can renew them.
fn foreign() -> ForeignTokens {
    ForeignTokens {
        client: Some("theirs".to_owned()),
        client_secret: Some(Secret::new("s3cret".to_owned())),
        access: Secret::new("0ld".to_owned()),
        refresh: Some(Secret::new("f0reign".to_owned())),
        expires: Some(1),
    }
}

#[tokio::test]
async fn the_login_of_another_program_is_renewed_with_its_own_client() {
    let stage = Stage::new(granting).await;
    let login = stage.login();
    let taken = login.take_over(foreign()).await.unwrap().unwrap();
    assert_eq!(taken.issuer, Some(format!("{}/as", stage.peer.origin)));
    assert!(taken.renews && !format!("{taken:?}").contains("f0reign"));
    assert_eq!(call(&stage.client(&login)).await.unwrap().status, 200);
    let sent = &stage.peer.seen("/token")[0];
    assert_eq!(sent.field("grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(sent.field("refresh_token").as_deref(), Some("f0reign"));
    assert_eq!(sent.field("client_id").as_deref(), Some("theirs"));
    assert_eq!(sent.field("client_secret").as_deref(), Some("s3cret"));
    assert!(stage.peer.seen("/register").is_empty());
}

#[tokio::test]
async fn a_login_that_is_there_is_never_replaced_by_an_imported_one() {
    let stage = Stage::new(granting).await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    let before = stage.vault.values(VaultKind::Tokens);
    assert_eq!(stage.login().take_over(foreign()).await.unwrap(), None);
    assert_eq!(stage.vault.values(VaultKind::Tokens), before);
}

#[tokio::test]
async fn a_login_that_cannot_be_used_is_not_imported() {
    let stage = Stage::new(granting).await;
    for tokens in [
        ForeignTokens { refresh: None, ..foreign() },
        // Nobody can renew it.
        ForeignTokens { client: None, ..foreign() },
        ForeignTokens { access: Secret::new("two words".to_owned()), ..foreign() },
        ForeignTokens { refresh: Some(Secret::new("a\r\nb".to_owned())), ..foreign() },
    ] {
        let error = stage.login().take_over(tokens).await.unwrap_err();
        assert!(matches!(error, LoginError::Settings(_)), "{error}");
    }
    let nobody = Stage::new(|_, _| None).await;
    let error = nobody.login().take_over(foreign()).await.unwrap_err();
    assert!(matches!(error, LoginError::NotOffered(_)), "{error}");
    for stage in [stage, nobody] {
        assert!(stage.vault.values(VaultKind::Tokens).is_empty());
        assert!(stage.peer.seen("/token").is_empty(), "no token was sent anywhere");
    }
}

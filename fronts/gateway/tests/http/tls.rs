//! Encrypted connections. The certificate is for tests alone: its key is public.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_gateway::http::{HttpError, Tls, bind};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::harness::{Harness, settings};
use capstan_testkit::http::{HttpConnection, request};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/tls").join(name)
}

#[tokio::test]
async fn a_certificate_makes_connections_encrypted() {
    let mut settings = settings();
    settings.tls = Some(Tls { cert: file("cert.pem"), key: file("key.pem") });
    let harness = Harness::with(settings).await;

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("cert.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(harness.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(HttpConnection::over(stream).ask(&request("GET", "/health")).await.head.status, 200);

    // Clear text gets no answer of ours.
    let mut clear = harness.peer().await;
    clear.send(&request("GET", "/health").text()).await;
    assert!(!clear.starts_with_http().await);
}

#[tokio::test]
async fn a_certificate_that_is_no_good_is_refused_at_once() {
    for (cert, key) in [("none.pem", "key.pem"), ("cert.pem", "none.pem")] {
        let mut settings = settings();
        settings.tls = Some(Tls { cert: file(cert), key: file(key) });
        let result = bind(settings).await;
        assert!(matches!(result, Err(HttpError::Pem { .. })), "{cert} {key}");
    }
}

#[tokio::test]
async fn a_certificate_and_a_key_that_are_swapped_are_told_by_what_is_missing() {
    let cases = [
        ("cert.pem", "cert.pem", "there is no private key in", "cert.pem`"),
        ("key.pem", "cert.pem", "there is no certificate in", "key.pem`"),
        ("key.pem", "key.pem", "there is no certificate in", "key.pem`"),
    ];
    for (cert, key, begin, end) in cases {
        let mut settings = settings();
        settings.tls = Some(Tls { cert: file(cert), key: file(key) });
        let Err(error) = bind(settings).await else { panic!("{cert} {key}") };
        let words = error.to_string();
        assert!(words.starts_with(begin) && words.ends_with(end), "{words}");
    }
}

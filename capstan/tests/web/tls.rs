//! Certificates, packed answers, and sockets in the file system.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use capstan_testkit::World;
use flate2::Compression;
use flate2::write::GzEncoder;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::peer::{Answer, Peer, Seen, Wrap, serve_socket};
use crate::stage::{done, ended, ends, legacy, parsed, run, says, world_at};

/// A server with a certificate for this name from an authority that nobody knows, and the file of
/// that authority.
#[track_caller]
pub(crate) fn private(world: &World, name: &str) -> (Peer, PathBuf) {
    private_for(world, &[name], legacy)
}

/// The same for several names, with a script.
#[track_caller]
pub(crate) fn private_for(
    world: &World,
    names: &[&str],
    script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
) -> (Peer, PathBuf) {
    let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = ca.self_signed(&ca_key).unwrap();
    let file = world.write("authority.pem", authority.pem());
    let issuer = Issuer::new(ca, ca_key);
    let certificate = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let certificate = CertificateParams::new(certificate).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let wrap: Wrap = Box::new(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        Box::new(StreamOwned::new(connection, stream))
    });
    (Peer::wrapped("https", wrap, script), file)
}

#[test]
fn a_private_authority_is_believed_when_the_variable_names_it() {
    let world = World::new();
    let (peer, authority) = private(&world, "127.0.0.1");
    world.write_user_config(&format!("[servers.s]\nurl = \"{}/mcp\"\n", peer.origin));
    let call = ["call", "s__do", "--json"];

    let refused = ends(run(&world, &call), 7);
    let message = parsed(&refused)["error"]["message"].as_str().unwrap().to_owned();
    says(&message, "no connection");
    says(&message.to_lowercase(), "certificate");
    assert!(peer.seen().is_empty(), "nothing is said to somebody unknown");

    let believed = ended(world.capstan(["call", "s__do"]).env("SSL_CERT_FILE", authority));
    assert_eq!(ends(believed, 0).stdout, "done\n");
}

#[test]
fn a_certificate_of_somebody_else_is_refused() {
    let world = World::new();
    let (peer, authority) = private(&world, "other.example");
    world.write_user_config(&format!("[servers.s]\nurl = \"{}/mcp\"\n", peer.origin));
    let call = world.capstan(["call", "s__do", "--json"]).env("SSL_CERT_FILE", authority);
    let refused = ends(ended(call), 7);
    says(&refused.stdout.to_lowercase(), "certificate");
    assert!(peer.seen().is_empty());
}

#[test]
fn a_packed_answer_is_unpacked() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(seen.result(&done()).as_bytes()).unwrap();
            Answer::json(packed.finish().unwrap()).with("content-encoding", "gzip")
        }
        _ => legacy(seen),
    });
    let world = world_at(&format!("{}/mcp", peer.origin), "");
    assert_eq!(ends(run(&world, &["call", "s__do"]), 0).stdout, "done\n");
    let call = peer.seen().into_iter().find(|seen| seen.method() == "tools/call").unwrap();
    assert_eq!(call.header("accept-encoding"), ["gzip"]);
}

#[test]
fn a_server_behind_a_socket_is_reached_through_its_path() {
    let world = World::new();
    let socket = world.home().join("mcp.sock");
    let seen = serve_socket(&socket, legacy);
    let url = format!("unix://{}:/deep/mcp", socket.display());
    world.write_user_config(&format!("[servers.s]\nurl = {url:?}\n"));
    assert_eq!(ends(run(&world, &["call", "s__do"]), 0).stdout, "done\n");
    assert!(seen.lock().unwrap().iter().all(|seen| seen.path == "/deep/mcp"));

    let nobody = world_at(&format!("unix://{}:/mcp", world.home().join("no").display()), "");
    ends(run(&nobody, &["call", "s__do"]), 7);
}

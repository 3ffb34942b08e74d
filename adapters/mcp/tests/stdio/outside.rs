//! Questions of a server outside of all calls: they go to the only client that they can mean.

use std::sync::{Arc, OnceLock};

use capstan_hub::ports::{
    Ask, Backend as _, BoxFuture, ClientSide, Lane, Listener, Listing, Notice, Reply, Unanswered,
    Wishes,
};
use capstan_hub::{BackChannel, ClientIdentity, Hub};
use capstan_mcp::{Root, StdioServer, StdioSettings};
use capstan_model::{ServerName, Trust};
use capstan_testkit::{SingleServerHub, until};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;

use crate::scene::{json, shell};

/// A server that asks for roots after it was listed, and repeats the answer on stderr.
const ASKS: &str = r#"
*'"tools/list"'*) answer "$TOOLS"
    printf '{"jsonrpc":"2.0","id":77,"method":"roots/list"}\n' ;;
*'"id":77'*) printf '%s\n' "$line" >&2 ;;
*'roots/list_changed'*) printf 'changed\n' >&2 ;;"#;

/// A client that declares these capabilities and gives this answer.
#[derive(Clone)]
struct Client {
    able: &'static str,
    answer: Result<&'static str, i64>,
}

/// Knows the only client, if there is one.
#[derive(Default)]
struct OneClient {
    hub: OnceLock<Arc<Hub>>,
    client: Option<Client>,
}

impl Listener for OneClient {
    fn list_changed(&self, _: &ServerName, _: Listing) {}

    fn list_may_differ(&self, _: &ServerName, _: Listing) {}

    fn resource_updated(&self, _: &ServerName, _: &Json) {}

    fn told(&self, _: &ServerName, _: &str, _: Option<&Json>) {}

    fn only_client(&self, server: &ServerName) -> Option<BackChannel> {
        let client = Arc::new(self.client.clone()?);
        Some(BackChannel::new(self.hub.get()?, server, client, ClientIdentity::default()))
    }
}

impl ClientSide for Client {
    fn ask(&self, _: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        let answer = self.answer.map(json);
        ready(answer.map_err(|code| Unanswered { code, message: "no".to_owned() })).boxed()
    }

    fn notice(&self, _: Notice) {}

    fn capabilities(&self) -> Option<Json> {
        Some(json(self.able))
    }

    fn wishes(&self) -> Wishes {
        Wishes::PERSON
    }

    fn outlives_answer(&self) -> bool {
        true
    }
}

/// The answer that the server gets.
async fn answered(client: Option<Client>) -> String {
    let one = Arc::new(OneClient { client, ..OneClient::default() });
    let ours = Root { uri: "file:///ours".to_owned(), name: "ours".to_owned() };
    let settings = StdioSettings { roots: vec![ours], ..shell(ASKS) };
    let server = StdioServer::heard_by(settings, Arc::clone(&one) as Arc<dyn Listener>);
    let scene = SingleServerHub::new(server, Trust::Trusted, Reply::Decline);
    assert!(one.hub.set(Arc::clone(&scene.hub)).is_ok());
    scene.listing(Listing::Tools).await.unwrap();
    until(|| !scene.server.stderr().is_empty()).await;
    let name = scene.server.name().clone();
    scene.hub.roots_changed(&name).await.unwrap();
    until(|| scene.server.stderr().len() == 2).await;
    let said = scene.server.stderr();
    assert_eq!(said.last().map(String::as_str), Some("changed"));
    assert!(Arc::clone(&scene.server).connected(Lane::ANY).is_some());
    said.concat()
}

#[tokio::test]
async fn roots_are_those_of_the_only_client_and_otherwise_the_configured_ones() {
    let theirs = r#"{"roots":[{"uri":"file:///theirs"}]}"#;
    let client = |able, answer| Some(Client { able, answer });
    for (client, expected) in [
        (client(r#"{"roots":{}}"#, Ok(theirs)), "file:///theirs"),
        (client("{}", Ok(theirs)), "file:///ours"),
        (client(r#"{"roots":{}}"#, Err(-32603)), "file:///ours"),
        (None, "file:///ours"),
    ] {
        let answered = answered(client).await;
        assert!(answered.contains(expected), "{answered}");
    }
}

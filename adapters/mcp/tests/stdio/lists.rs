//! What a server offers, in pages, from memory, and after it changed.

use std::sync::{Arc, Mutex};

use capstan_hub::BackChannel;
use capstan_hub::ports::{Backend, Lane, Listener, Listing};
use capstan_mcp::Server;
use capstan_model::{ErrorCode, ServerName};
use capstan_testkit::alive;
use capstan_wire::Json;
use futures::FutureExt;

use crate::scene::{Scene, shell, until};

/// Hears what belongs to no call.
#[derive(Default)]
struct Hears(Mutex<Vec<String>>);

impl Listener for Hears {
    fn list_changed(&self, _: &ServerName, _: Listing) {}

    fn list_may_differ(&self, _: &ServerName, _: Listing) {}

    fn resource_updated(&self, _: &ServerName, _: &Json) {}

    fn told(&self, server: &ServerName, method: &str, params: Option<&Json>) {
        let params = params.map(ToString::to_string).unwrap_or_default();
        self.0.lock().unwrap().push(format!("{server} {method} {params}"));
    }

    fn only_client(&self, _: &ServerName) -> Option<BackChannel> {
        None
    }
}

#[tokio::test]
async fn what_a_server_logs_while_nobody_calls_it_is_told_as_belonging_to_no_call() {
    let arms = r#"
*'"tools/list"'*) answer "$TOOLS"
    printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}\n' ;;"#;
    let hears = Arc::new(Hears::default());
    let hearer = Arc::clone(&hears) as Arc<dyn Listener>;
    let server = Arc::new(Server::heard_by(shell(arms), hearer));
    let connection = Arc::clone(&server).connect(Lane::ANY).await.unwrap().home;
    connection.list(Listing::Tools).await.unwrap();
    until(|| !hears.0.lock().unwrap().is_empty()).await;
    let told = hears.0.lock().unwrap().clone();
    assert_eq!(told, [r#"s notifications/message {"level":"info","data":1.0}"#]);
    server.close().await;
}

#[tokio::test]
async fn a_list_in_pages_is_read_to_its_end_in_order() {
    for era in ["legacy", "modern"] {
        let whole = Scene::new(&["--era", era, "--tools", "50"]);
        let pages = Scene::new(&["--era", era, "--tools", "50", "--pages", "7"]);
        let names = pages.names(Listing::Tools).await.unwrap();
        assert_eq!(names.len(), 68);
        assert_eq!(names, whole.names(Listing::Tools).await.unwrap(), "{era}");
        assert_eq!((whole.count("tools/list"), pages.count("tools/list")), (1, 7));
    }
}

#[tokio::test]
async fn every_kind_of_list_is_read_by_its_own_name() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era, "--no-tools"]);
        let table = [
            (Listing::Resources, vec!["fixture://greeting"]),
            (Listing::Templates, vec!["fixture://echo/{text}"]),
            (Listing::Prompts, vec!["greet"]),
            // Not offered, and so not even asked for.
            (Listing::Tools, vec![]),
        ];
        for (listing, names) in table {
            assert_eq!(scene.names(listing).await.unwrap(), names, "{era}");
        }
        assert_eq!(scene.count("tools/list"), 0);
    }
}

#[tokio::test]
async fn an_item_is_kept_as_its_server_wrote_it() {
    let scene = Scene::new(&[]);
    let items = scene.listing(Listing::Tools).await.unwrap();
    let echo = items.first().unwrap();
    assert!(echo.definition.as_str().contains(r#""x-fixture":{"z":1,"a":2}"#));
}

#[tokio::test]
async fn a_list_that_never_ends_is_refused_and_the_server_counts_as_degraded() {
    let page = r#"{"tools":[{"name":"do"}],"nextCursor":"again"}"#;
    let scene = Scene::of(shell(&format!("*'\"tools/list\"'*) answer '{page}' ;;")));
    let error = scene.names(Listing::Tools).await.unwrap_err();
    assert!(error.to_string().contains("repeats a page"), "{error}");
    assert!(scene.state().starts_with("degraded: "), "{}", scene.state());
}

#[tokio::test]
async fn a_list_of_too_many_bytes_is_refused_however_small_its_pages() {
    let arms = r#"
    *'"tools/list"'*) [ -n "$x" ] || x=$(head -c 4194304 /dev/zero | tr '\0' x)
      answer "{\"tools\":[{\"name\":\"$x\"}],\"nextCursor\":\"$id\"}" ;;"#;
    let scene = Scene::of(shell(arms));
    let error = scene.names(Listing::Tools).await.unwrap_err();
    assert!(error.to_string().contains("more than 67108864 bytes"), "{error}");
}

#[tokio::test]
async fn a_server_is_degraded_only_until_its_list_can_be_read() {
    let arms = r#"
    *'"tools/list"'*) if [ -z "$failed" ]; then failed=1
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"not yet"}}\n' "$id"
      else answer "$TOOLS"; fi ;;"#;
    let scene = Scene::of(shell(arms));
    let error = scene.names(Listing::Tools).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ServerError);
    assert_eq!(scene.state(), "degraded: server `s` answered with error -32603: not yet");
    // Another list that works says nothing about this one.
    assert_eq!(scene.names(Listing::Prompts).await.unwrap(), [""; 0]);
    assert!(scene.state().starts_with("degraded"));
    assert_eq!(scene.names(Listing::Tools).await.unwrap(), ["do"]);
    assert_eq!(scene.state(), "connected");
}

#[tokio::test]
async fn those_who_ask_at_the_same_time_share_one_start_and_one_reading() {
    let scene = Scene::new(&["--pages", "3"]);
    let ask = || scene.names(Listing::Tools);
    let (one, two, three) = tokio::join!(ask(), ask(), ask());
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(three.unwrap(), ask().await.unwrap());
    assert_eq!((scene.count("server/discover"), scene.count("tools/list")), (1, 3));
    assert_eq!(scene.count("subscriptions/listen"), 1);
}

#[tokio::test]
async fn a_list_that_nobody_waits_for_any_more_is_there_for_the_next_who_asks() {
    let scene = Scene::new(&["--pages", "3"]);
    scene.about().await.unwrap();
    assert!(scene.names(Listing::Tools).now_or_never().is_none());
    // Read to its end without anybody waiting.
    until(|| scene.count("tools/list") == 3).await;
    assert_eq!(scene.names(Listing::Tools).await.unwrap().len(), 18);
    assert_eq!(scene.count("tools/list"), 3);
}

#[tokio::test]
async fn a_list_that_has_changed_is_read_again() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era]);
        for number in 0..3 {
            let grown = format!("grown_{number}");
            assert!(!scene.names(Listing::Tools).await.unwrap().contains(&grown));
            assert_eq!(scene.text("grow", "{}").await, grown, "{era}");
            // The word of the change follows the answer.
            let end = tokio::time::Instant::now() + crate::scene::LIMIT;
            while !scene.names(Listing::Tools).await.unwrap().contains(&grown) {
                assert!(tokio::time::Instant::now() < end, "{era}: {grown} does not appear");
                tokio::task::yield_now().await;
            }
            scene.call(&grown, "{}").await.unwrap();
        }
        assert_eq!(scene.count("tools/list"), 4, "{era}: once more for every change");
        let subscriptions = usize::from(era == "modern");
        assert_eq!(scene.count("subscriptions/listen"), subscriptions, "{era}");
    }
}

#[tokio::test]
async fn a_server_that_offers_nothing_is_let_go() {
    let hello = r#"{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"version\":\"$$\"}}"#;
    let scene = Scene::of(shell(&format!(r#"*'"initialize"'*) answer "{hello}" ;;"#)));
    let pid = scene.pid().await;
    assert_eq!(scene.names(Listing::Tools).await.unwrap(), [""; 0]);
    assert_eq!(scene.state(), "idle");
    until(|| !alive(pid)).await;
    // What is known does not start it again.
    assert_eq!(scene.names(Listing::Prompts).await.unwrap(), [""; 0]);
    assert_eq!(scene.state(), "idle");
}

//! Embeddings of services and the index in a Qdrant server, against stand-ins of both.

#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

use std::path::PathBuf;
use std::time::Duration;

use capstan_hub::ports::{IndexedTools, Scores, SearchedTool, ToolIndex as _, Wanted};
use capstan_model::{Secret, Trust};
use capstan_safety::address::AddressPolicy;
use capstan_search::{EmbeddingInterface, EmbeddingService, Embeddings, QdrantServer, SearchIndex};
use capstan_testkit::embedding_api::{EMBEDDING_KEY, EmbeddingApi};
use capstan_testkit::qdrant::{QDRANT_KEY, Qdrant};
use capstan_testkit::wait_until;
use capstan_wire::Json;

const LIMIT: Duration = Duration::from_secs(30);

/// Another spelling of this machine, which only a trusted service may have.
fn elsewhere(url: &str) -> String {
    url.replace("127.0.0.1", "[::ffff:127.0.0.1]")
}

fn addresses(trust: Trust) -> AddressPolicy {
    AddressPolicy { trust, ..AddressPolicy::default() }
}

fn service(api: &EmbeddingApi, interface: EmbeddingInterface) -> EmbeddingService {
    let path = match interface {
        EmbeddingInterface::OpenAi => "/v1",
        EmbeddingInterface::Ollama => "",
    };
    EmbeddingService {
        interface,
        endpoint: format!("{}{path}", api.url()),
        model: "letters".to_owned(),
        key: Some(Secret::new(EMBEDDING_KEY.to_owned())),
        addresses: addresses(Trust::Trusted),
        timeout: LIMIT,
    }
}

fn index(service: &EmbeddingService, file: Option<PathBuf>) -> SearchIndex {
    let index = SearchIndex::new(file);
    index.configure(&Embeddings { service: Some(service.clone()), ..Embeddings::default() });
    index
}

fn shared(api: &EmbeddingApi, qdrant: &Qdrant, owner: &str) -> SearchIndex {
    let index = SearchIndex::new(None);
    index.configure(&Embeddings {
        service: Some(service(api, EmbeddingInterface::Ollama)),
        shared: Some(QdrantServer {
            endpoint: qdrant.url(),
            key: Some(Secret::new(QDRANT_KEY.to_owned())),
            addresses: addresses(Trust::Trusted),
            owner: owner.to_owned(),
            timeout: LIMIT,
        }),
        problem: None,
    });
    index
}

fn add(index: &SearchIndex, names: &[&str]) -> IndexedTools {
    let schema = &Json::empty_object();
    let tool = |name| SearchedTool { server: "s", about: "", name, description: "", schema };
    let tools: Vec<SearchedTool<'_>> = names.iter().copied().map(tool).collect();
    index.add(&tools)
}

async fn score(index: &SearchIndex, query: &str, tools: &IndexedTools) -> Scores {
    index.score(query, tools.slots(), Wanted { limit: 10, wait: LIMIT }).await
}

async fn best(index: &SearchIndex, query: &str, tools: &IndexedTools) -> usize {
    score(index, query, tools).await.best[0].position
}

#[tokio::test]
async fn both_interfaces_make_vectors_in_few_requests_with_the_key() {
    for interface in [EmbeddingInterface::OpenAi, EmbeddingInterface::Ollama] {
        let api = EmbeddingApi::start();
        let index = index(&service(&api, interface), None);
        let names: Vec<String> =
            (b'a'..=b'z').map(|c| char::from(c).to_string().repeat(9)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let tools = add(&index, &names);
        assert_eq!(api.requests().len(), 0, "nothing is sent before the first search");
        // No word of the query is in a tool: only the meaning finds it.
        assert_eq!(best(&index, "qqq", &tools).await, 16, "{interface:?}");
        assert_eq!(api.requests().len(), 2, "the query, and all tools at once");
        assert!(api.requests().iter().all(|request| {
            request.header("authorization") == Some(&format!("Bearer {EMBEDDING_KEY}"))
                && request.body["model"] == "letters"
        }));
    }
}

#[tokio::test]
async fn vectors_are_kept_by_the_model_and_the_digest_of_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors");
    let api = EmbeddingApi::start();
    let first = service(&api, EmbeddingInterface::Ollama);
    let other = EmbeddingService { model: "other".to_owned(), ..first.clone() };
    for (service, expected) in [(&first, 3), (&first, 4), (&other, 7), (&first, 8)] {
        let index = index(service, Some(file.clone()));
        let tools = add(&index, &["aaa", "bbb"]);
        assert_eq!(best(&index, "b", &tools).await, 1);
        assert_eq!(api.texts().len(), expected);
    }
    assert_eq!(api.texts()[1..3], ["s aaa:  ", "s bbb:  "]);
}

#[tokio::test]
async fn a_service_that_fails_leaves_the_words() {
    let api = EmbeddingApi::start();
    let wrong_key = EmbeddingService {
        key: Some(Secret::new("wrong".to_owned())),
        ..service(&api, EmbeddingInterface::OpenAi)
    };
    let not_trusted = EmbeddingService {
        endpoint: elsewhere(&api.url()),
        addresses: addresses(Trust::default()),
        ..service(&api, EmbeddingInterface::Ollama)
    };
    let nowhere = EmbeddingService {
        endpoint: "nowhere".to_owned(),
        ..service(&api, EmbeddingInterface::Ollama)
    };
    for service in [wrong_key, nowhere, not_trusted] {
        let before = api.requests().len();
        let index = index(&service, None);
        let tools = add(&index, &["send_mail", "list_files"]);
        for _ in 0..2 {
            let scores = score(&index, "files", &tools).await;
            assert_eq!((scores.best[0].position, scores.pending), (1, 2), "{service:?}");
        }
        assert!(api.requests().len() <= before + 1, "a service that failed is left alone");
    }
    let last = api.requests().len();
    assert_eq!(last, 1, "an address that is not public is not even asked");
}

#[tokio::test]
async fn a_broken_service_delays_no_search_and_loses_no_tool() {
    let api = EmbeddingApi::start();
    let index = index(&service(&api, EmbeddingInterface::Ollama), None);
    let first = add(&index, &["aaa"]);
    assert_eq!(score(&index, "a", &first).await.pending, 0);
    api.fail();
    let both = add(&index, &["aaa", "list_files"]);
    let scores = score(&index, "files", &both).await;
    assert_eq!(scores.best[0].position, 1, "it is found by its words: {scores:?}");
}

#[tokio::test]
async fn a_tool_that_one_gateway_has_embedded_is_embedded_by_no_other() {
    let (api, qdrant) = (EmbeddingApi::start(), Qdrant::start());
    let names = ["aaa", "bbb", "ccc"];
    let one = shared(&api, &qdrant, "one");
    let of_one = add(&one, &names);
    assert_eq!(best(&one, "b", &of_one).await, 1);
    assert_eq!(api.texts().len(), 4);
    let payloads = qdrant.payloads("capstan_tools");
    assert_eq!(payloads.len(), 3);
    for payload in &payloads {
        assert_eq!((&payload["owner"], &payload["server"]), (&"one".into(), &"s".into()));
        assert_eq!(payload["hash"].as_str().unwrap().len(), 64);
    }
    let two = shared(&api, &qdrant, "two");
    let of_two = add(&two, &["bbb", "ccc", "ddd"]);
    assert_eq!(best(&two, "c", &of_two).await, 1);
    assert_eq!(api.texts().len(), 6, "the query and the tool that is new");
    assert_eq!(qdrant.payloads("capstan_tools").len(), 6, "each owner has its own points");
    // A further run of the first stores nothing again.
    let again = shared(&api, &qdrant, "one");
    let of_again = add(&again, &names);
    assert_eq!(best(&again, "a", &of_again).await, 0);
    assert_eq!((api.texts().len(), qdrant.payloads("capstan_tools").len()), (7, 6));
    let puts = qdrant
        .requests()
        .into_iter()
        .filter(|request| request.method == "PUT" && request.path.ends_with("/points"));
    assert_eq!(puts.count(), 3, "one for each tool list that is new");
}

#[tokio::test]
async fn hits_are_tools_of_the_caller_and_removed_tools_leave_the_collection() {
    let (api, qdrant) = (EmbeddingApi::start(), Qdrant::start());
    let index = shared(&api, &qdrant, "one");
    let all = add(&index, &["aaa", "aab", "bbb"]);
    assert_eq!(best(&index, "a", &all).await, 0);
    let searched = |request: &&capstan_testkit::json_server::JsonRequest| {
        request.path.ends_with("/points/query")
    };
    let requests = qdrant.requests();
    let query = requests.iter().rev().find(searched).unwrap();
    assert_eq!(query.body["filter"]["must"][0]["has_id"].as_array().unwrap().len(), 3);
    // The best tool of the collection is not among those of this caller.
    let scores = index.score("a", &all.slots()[1..], Wanted { limit: 10, wait: LIMIT }).await;
    assert_eq!((scores.best.len(), scores.best[0].position), (2, 0));
    let fewer = add(&index, &["bbb"]);
    drop(all);
    let other = add(&index, &["ccc"]);
    assert_eq!(best(&index, "c", &other).await, 0);
    let left = || {
        let mut names: Vec<String> = qdrant
            .payloads("capstan_tools")
            .iter()
            .map(|payload| payload["tool"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert!(wait_until(|| left() == ["bbb", "ccc"], LIMIT), "{:?}", left());
    drop(fewer);
}

#[tokio::test]
async fn without_the_qdrant_server_the_process_compares_by_itself() {
    let api = EmbeddingApi::start();
    for (endpoint, key) in [("http://127.0.0.1:1", QDRANT_KEY), ("", "wrong"), ("", QDRANT_KEY)] {
        let qdrant = Qdrant::start();
        let index = SearchIndex::new(None);
        let (endpoint, trust) = match (endpoint, key) {
            ("", "wrong") => (qdrant.url(), Trust::Trusted),
            ("", _) => (elsewhere(&qdrant.url()), Trust::default()),
            (endpoint, _) => (endpoint.to_owned(), Trust::Trusted),
        };
        index.configure(&Embeddings {
            service: Some(service(&api, EmbeddingInterface::Ollama)),
            shared: Some(QdrantServer {
                endpoint,
                key: Some(Secret::new(key.to_owned())),
                addresses: addresses(trust),
                owner: "one".to_owned(),
                timeout: LIMIT,
            }),
            problem: None,
        });
        let tools = add(&index, &["aaa", "bbb"]);
        assert_eq!(best(&index, "b", &tools).await, 1);
        assert_eq!(qdrant.payloads("capstan_tools").len(), 0);
    }
}

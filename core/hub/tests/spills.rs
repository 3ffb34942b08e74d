//! Answers above the limit in tokens: their pages, who reads them, and how long they are kept.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::{
    AnswerFiles, AnswerOwner, AuditLog, BoxFuture, ListedAnswer, SavedAnswer, StoreError, Unwritten,
};
use capstan_hub::spills::{MAX_AGE, MAX_ANSWERS};
use capstan_hub::{Answer, Call, Entry, Requester, Spills};
use capstan_model::{CallError, Caller, Front, Target};
use capstan_policy::access::Says;
use capstan_policy::{Access, AccessTable};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use world::{Person, Server, World, json, policy};

/// The tokens of a page, and the first page.
const TOKENS: u32 = 4;
const FIRST: &str = "The quick brown ";

/// The text of the server's answer.
const TEXT: &str = "The quick brown fox jumps over the lazy dog.";

/// Files in memory, whose ids are numbers.
#[derive(Default)]
struct Memory {
    files: Mutex<BTreeMap<String, (ListedAnswer, Json)>>,
    began: Mutex<Option<Instant>>,
}

struct Scene {
    world: World,
    files: Arc<Memory>,
}

impl Scene {
    /// A server whose tool gives a long answer; every front gets it in pages.
    fn new() -> Self {
        let mut files = Server::new("files", &["read"]);
        let answer = format!(r#"{{"content":[{{"type":"text","text":"{TEXT}"}}]}}"#);
        files.runs = Box::new(move |_, _| ready(Ok(Answer::Whole(json(&answer)))).boxed());
        let mut world = World::new(vec![files], policy(&[], &[], &["*"]));
        let files = Arc::new(Memory::default());
        *files.began.lock().unwrap() = Some(Instant::now());
        let spills = Spills::new(Arc::<Memory>::clone(&files), Arc::clone(world.hub.clock()));
        world.change(|hub| {
            hub.spills = Some(Arc::new(spills));
            hub.limits.max_tokens = Some(TOKENS);
        });
        Self { world, files }
    }

    async fn call(&self, caller: &Caller) -> Json {
        let call = Call::new(caller.clone(), Target::tool("files__read"), None);
        self.world.call(&Arc::new(Person::nobody()), call).await.unwrap()
    }

    async fn read(&self, caller: &Caller, uri: &str) -> Result<String, CallError> {
        let call = Call::new(caller.clone(), Target::resource(uri), None);
        let page = self.world.call(&Arc::new(Person::nobody()), call).await?;
        let page: Value = page.read().unwrap();
        let text = page.pointer("/contents/0/text").and_then(Value::as_str);
        Ok(text.unwrap().to_owned())
    }

    fn ids(&self) -> Vec<String> {
        self.files.files.lock().unwrap().keys().cloned().collect()
    }
}

impl AnswerFiles for Memory {
    fn save<'a>(
        &'a self,
        about: &'a AnswerOwner,
        answer: &'a Json,
    ) -> BoxFuture<'a, Result<SavedAnswer, StoreError>> {
        let mut files = self.files.lock().unwrap();
        let last = files.keys().next_back().map_or(100, |last| last.parse().unwrap());
        let id = (last + 1).to_string();
        let saved_at = Timestamp::UNIX_EPOCH + self.began.lock().unwrap().unwrap().elapsed();
        let bytes = answer.len().try_into().unwrap();
        let listed = ListedAnswer { id: id.clone(), owner: about.clone(), bytes, saved_at };
        files.insert(id.clone(), (listed, answer.clone()));
        drop(files);
        let file = format!("/answers/{id}");
        ready(Ok(SavedAnswer { id, file })).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ListedAnswer>, StoreError>> {
        let files = self.files.lock().unwrap();
        ready(Ok(files.values().map(|(listed, _)| listed.clone()).collect())).boxed()
    }

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Json>, StoreError>> {
        let files = self.files.lock().unwrap();
        ready(Ok(files.get(id).map(|(_, answer)| answer.clone()))).boxed()
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.files.lock().unwrap().remove(id);
        ready(Ok(())).boxed()
    }
}

fn operator() -> Caller {
    Caller::operator(Front::Cli)
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_is_read_to_its_end_in_pages_and_each_read_is_recorded() {
    let scene = Scene::new();
    let first: Value = scene.call(&operator()).await.read().unwrap();
    let mut read = first["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(read, FIRST);
    for page in 2..=3 {
        read +=
            &scene.read(&operator(), &format!("capstan://answers/101?page={page}")).await.unwrap();
    }
    assert_eq!(read, TEXT);
    assert_eq!(scene.read(&operator(), "capstan://answers/101").await.unwrap(), FIRST);
    let entries = scene.world.entries();
    let seen = |at: usize| (entries[at].item.clone(), entries[at].outcome.as_str());
    assert_eq!((entries.len(), seen(0)), (4, ("read".to_owned(), "answered")));
    assert_eq!(seen(2), ("capstan://answers/101?page=3".to_owned(), "answered"));
    assert_eq!(entries[2].server.as_deref(), Some("files"));
}

/// Another caller gets exactly the answer for an id that does not exist.
#[tokio::test(start_paused = true)]
async fn nobody_but_the_caller_of_the_call_reads_its_answer() {
    let scene = Scene::new();
    let ann = Caller::remote("ann", Vec::new());
    scene.call(&ann).await;
    scene.read(&ann, "capstan://answers/101?page=2").await.unwrap();
    let same_name = Caller::named("ann", Front::Gateway);
    let here = Caller::stranger(Some([127, 0, 0, 1].into()));
    for other in [Caller::remote("bob", Vec::new()), same_name, here.clone(), operator()] {
        let refused = scene.read(&other, "capstan://answers/101?page=2").await.unwrap_err();
        let made_up = scene.read(&other, "capstan://answers/999?page=2").await.unwrap_err();
        let text = |error: &CallError| (error.to_string().replace("101", "999"), error.hint());
        assert_eq!(text(&refused), text(&made_up), "{other:?}");
        assert_eq!(refused.code(), made_up.code());
    }
    scene.call(&here).await;
    let there = Caller::stranger(Some([127, 0, 0, 2].into()));
    scene.read(&here, "capstan://answers/102").await.unwrap();
    scene.read(&there, "capstan://answers/102").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn no_other_address_reads_a_page() {
    let scene = Scene::new();
    scene.call(&operator()).await;
    for odd in
        ["101?page=0", "101?page=4", "101?page=18446744073709551616", "101?page=1&page=2", ""]
    {
        let read = scene.read(&operator(), &format!("capstan://answers/{odd}")).await;
        assert!(matches!(read, Err(CallError::Unknown { .. })), "{odd}: {read:?}");
    }
    // A caller who lost the server has lost its answers.
    let ann = Caller::remote("ann", Vec::new());
    scene.call(&ann).await;
    let mut scene = scene;
    let mut source = policy(&[], &[], &["*"]);
    let nobody = AccessTable { default: Says::Deny, ..AccessTable::default() };
    let files = "files".parse().unwrap();
    source.access = vec![Access::new(nobody, [(&files, "files")])];
    scene.world.change(|hub| hub.policy = Arc::new(source.compile()));
    scene.read(&ann, "capstan://answers/102").await.unwrap_err();
    scene.read(&operator(), "capstan://answers/101").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn answers_are_bounded_in_number_and_age() {
    let scene = Scene::new();
    for _ in 0..MAX_ANSWERS + 3 {
        scene.call(&operator()).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let ids = scene.ids();
    assert_eq!((ids.len(), ids[0].as_str()), (MAX_ANSWERS, "104"), "the oldest make room");
    tokio::time::advance(MAX_AGE).await;
    let last = format!("capstan://answers/{}", ids[MAX_ANSWERS - 1]);
    scene.read(&operator(), &last).await.unwrap_err();
    scene.world.hub.spills().unwrap().sweep().await;
    assert_eq!(scene.ids(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_front_sets_the_limit_only_where_the_operator_has_not() {
    let mut scene = Scene::new();
    let spilled = async |scene: &Scene, tokens: Option<u32>| {
        let before = scene.ids().len();
        let person = Arc::new(Person::nobody());
        let requester = Requester { max_tokens: tokens, ..person.requester() };
        let call = Call::new(operator(), Target::tool("files__read"), None);
        scene.world.hub.call(&scene.world.session, call, requester).await.unwrap();
        scene.ids().len() > before
    };
    assert!(spilled(&scene, Some(1000)).await, "the operator's limit");
    scene.world.change(|hub| hub.limits.max_tokens = None);
    assert!(spilled(&scene, Some(TOKENS)).await);
    assert!(!spilled(&scene, Some(1000)).await);
    assert!(!spilled(&scene, None).await);
}

#[tokio::test(start_paused = true)]
async fn a_page_whose_reading_could_not_be_written_down_is_not_read() {
    struct Full;
    impl AuditLog for Full {
        fn record(&self, _: Entry) {}

        fn ready(&self) -> Result<(), Unwritten> {
            Err(Unwritten("no space left".to_owned()))
        }
    }
    let mut scene = Scene::new();
    scene.call(&operator()).await;
    scene.world.change(|hub| hub.audit = Arc::new(Full));
    let read = scene.read(&operator(), "capstan://answers/101").await;
    assert!(matches!(read, Err(CallError::Unrecordable { .. })), "{read:?}");
}

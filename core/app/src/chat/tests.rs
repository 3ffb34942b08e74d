//! Conversations with a scripted model, scripted tools and a store in memory.

#![expect(clippy::wildcard_enum_match_arm, reason = "each test expects parts of one kind")]
#![expect(clippy::unnecessary_wraps, reason = "answers stand beside errors in a script")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use capstan_hub::ReadSources;
use capstan_hub::catalog::Provider;
use capstan_hub::ports::{
    BoxFuture, ChatEnd, ChatError, ChatEvent, ChatMessage, ChatModel, ChatPart, ChatRequest,
    ProviderData, Role, Stop, TokenCount, ToolCall, ToolOffer,
};
use capstan_wire::Json;
use futures::future::pending;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;

use super::*;
use crate::{AppError, ErrorKind};

/// A model that gives these answers, in this order, and remembers the requests.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<ChatEnd, ChatError>>>,
    requests: Mutex<Vec<ChatRequest>>,
}

/// Tools that answer with their arguments; `forbidden` is refused, and `never` never answers.
struct Echo;

/// Lines in memory.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Vec<String>>>);

/// Remembers the names of events.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl ChatModel for Scripted {
    fn provider(&self) -> Provider {
        Provider::Gemini
    }

    fn label(&self) -> String {
        "test/model".to_owned()
    }

    fn chat(&self, request: ChatRequest) -> BoxStream<'static, Result<ChatEvent, ChatError>> {
        self.requests.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer is left");
        stream::iter([answer.map(ChatEvent::End)]).boxed()
    }
}

impl Toolbox for Echo {
    fn sources(&self) -> ReadSources {
        ReadSources::default()
    }

    fn offer<'a>(&'a self, _: Provider, _: &'a [String]) -> BoxFuture<'a, Offer> {
        let schema = Json::empty_object();
        let tool = ToolOffer { name: "s__echo".into(), description: String::new(), schema };
        let instructions = "Instructions of the server `s`:\nBe nice.".to_owned();
        Box::pin(async { Offer { tools: vec![tool], instructions, ..Offer::default() } })
    }

    fn call<'a>(
        &'a self,
        _: Provider,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<ToolAnswer, AppError>> {
        Box::pin(async move {
            if call.name == "never" {
                return pending().await;
            }
            if call.name == "forbidden" {
                return Err(AppError::denied("a rule denies it").hint("change the rule"));
            }
            let text = Json::from_value(&call.arguments.as_str()).unwrap();
            let result = format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, text.as_str());
            let (tool, result) = ("s__echo".to_owned(), Json::parse(result).unwrap());
            Ok(ToolAnswer { tool, result, is_error: false })
        })
    }

    fn compacted(&self) {}
}

impl ConversationStore for Memory {
    fn create(&self, now: Timestamp) -> Result<String, AppError> {
        let id = format!("{now}-{}", self.0.lock().unwrap().len());
        self.0.lock().unwrap().insert(id.clone(), Vec::new());
        Ok(id)
    }

    fn append(&self, id: &str, line: &str) -> Result<(), AppError> {
        self.0.lock().unwrap().get_mut(id).unwrap().push(line.to_owned());
        Ok(())
    }

    fn lines(&self, id: &str) -> Result<Vec<String>, AppError> {
        Ok(self.0.lock().unwrap().get(id).unwrap().clone())
    }

    fn latest(&self) -> Result<Vec<String>, AppError> {
        Ok(self.0.lock().unwrap().keys().rev().cloned().collect())
    }
}

impl Watch for Seen {
    fn event(&self, event: TurnEvent) {
        let name = match event {
            TurnEvent::Text(_) => "text",
            TurnEvent::Reasoning(_) => "reasoning",
            TurnEvent::Retrying { .. } => "retrying",
            TurnEvent::Calling(_) => "calling",
            TurnEvent::Called(_) => "called",
            TurnEvent::Compacted => "compacted",
            TurnEvent::Offered(_) => "offered",
        };
        self.0.lock().unwrap().push(name.to_owned());
    }
}

fn end(parts: Vec<ChatPart>, input: u64) -> Result<ChatEnd, ChatError> {
    let message = ChatMessage { role: Role::Assistant, parts, written_by: Some(Provider::Gemini) };
    let tokens = TokenCount { input, output: 5, cached: 0 };
    Ok(ChatEnd { message, tokens, stop: Stop::Done })
}

fn text(text: &str) -> Result<ChatEnd, ChatError> {
    end(vec![ChatPart::text(text)], 10)
}

fn call(id: &str, name: &str, arguments: &str) -> ChatPart {
    let data = Json::parse(format!(r#"{{"thoughtSignature":"sig-{id}"}}"#)).unwrap();
    ChatPart::Call(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: Json::parse(arguments.to_owned()).unwrap(),
        problem: None,
        extra: Some(ProviderData { provider: Provider::Gemini, data }),
    })
}

struct Scene {
    model: Arc<Scripted>,
    chat: Chat,
    store: Arc<Memory>,
    seen: Seen,
}

fn scene(answers: impl IntoIterator<Item = Result<ChatEnd, ChatError>>) -> Scene {
    let answers = Mutex::new(answers.into_iter().collect());
    let model = Arc::new(Scripted { answers, ..Scripted::default() });
    let limits = ChatLimits { max_turns: 3, context_tokens: 10_000, max_output: None };
    let chat = Chat { model: Arc::<Scripted>::clone(&model), tools: Arc::new(Echo), limits };
    Scene { model, chat, store: Arc::default(), seen: Seen::default() }
}

impl Scene {
    fn begin(&self) -> Conversation {
        let store = Arc::<Memory>::clone(&self.store);
        Conversation::begin(store, "/project", Timestamp::UNIX_EPOCH).unwrap()
    }

    fn resume(&self) -> Result<Conversation, AppError> {
        Conversation::resume(Arc::<Memory>::clone(&self.store), "/project")
    }

    async fn say(&self, conversation: &mut Conversation, text: &str) -> Result<Outcome, AppError> {
        self.chat.run(conversation, vec![ChatMessage::user(text)], &self.seen).await
    }

    fn requests(&self) -> Vec<ChatRequest> {
        self.model.requests.lock().unwrap().clone()
    }

    fn file(&self) -> String {
        self.store.0.lock().unwrap().values().flatten().cloned().collect::<Vec<_>>().join("\n")
    }
}

#[tokio::test]
async fn calls_run_and_their_results_go_back_in_the_order_of_the_calls() {
    let calls = vec![call("1", "s__echo", r#"{"a":1}"#), call("2", "forbidden", "{}")];
    let scene = scene([end(calls, 10), text("done")]);
    let mut conversation = scene.begin();
    let outcome = scene.say(&mut conversation, "go").await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.turns), ("done", 2));
    assert_eq!((outcome.tokens.input, outcome.tokens.output), (20, 10));
    let reports: Vec<(&str, bool, bool)> = outcome
        .calls
        .iter()
        .map(|report| (report.tool.as_str(), report.is_error, report.denied))
        .collect();
    assert_eq!(reports, [("s__echo", false, false), ("forbidden", true, true)]);
    let requests = scene.requests();
    let results: Vec<(String, bool)> = requests[1].messages[2]
        .parts
        .iter()
        .map(|part| match part {
            ChatPart::Result(result) => (result.text.clone(), result.is_error),
            other => panic!("{other:?}"),
        })
        .collect();
    let refused = "The call was refused: a rule denies it".to_owned();
    assert_eq!(results, [(r#"{"a":1}"#.to_owned(), false), (refused, true)]);
    assert!(requests[0].system.ends_with("Instructions of the server `s`:\nBe nice."));
}

#[tokio::test]
async fn turns_are_limited_and_the_conversation_can_go_on() {
    let again = || end(vec![call("1", "s__echo", "{}")], 10);
    let scene = scene([again(), again(), again(), text("finally")]);
    let mut conversation = scene.begin();
    let error = scene.say(&mut conversation, "go").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Quota);
    assert_eq!(scene.say(&mut conversation, "go on").await.unwrap().text, "finally");
}

#[tokio::test]
async fn a_conversation_is_resumed_with_signatures_and_without_secrets() {
    let secret = r#"{"password":"hunter2-hunter2","path":"/a"}"#;
    let scene = scene([end(vec![call("1", "s__echo", secret)], 10), text("ok"), text("again")]);
    let mut conversation = scene.begin();
    scene
        .say(&mut conversation, "my token is ghp_0123456789abcdef0123456789abcdef0123")
        .await
        .unwrap();
    assert!(!scene.file().contains("hunter2"), "{}", scene.file());
    let read =
        Json::parse(r#"{"contents":[{"uri":"a:b","text":"password=of-a-server-1"}]}"#).unwrap();
    let parts = of_resource("@a:b", &read);
    conversation.add(ChatMessage { role: Role::User, parts, written_by: None }).unwrap();
    assert!(scene.file().contains("@a:b") && !scene.file().contains("of-a-server"));
    assert!(scene.file().contains("ghp_0123456789"), "typed by the user");
    let mut resumed = scene.resume().unwrap();
    assert_eq!(resumed.messages().len(), 5);
    assert_eq!(resumed.tokens().input, 20);
    scene.say(&mut resumed, "more").await.unwrap();
    let requests = scene.requests();
    let ChatPart::Call(sent) = &requests[2].messages[1].parts[0] else { panic!("{requests:?}") };
    let extra = sent.extra.as_ref().unwrap().of(Provider::Gemini).unwrap();
    assert_eq!(extra.as_str(), r#"{"thoughtSignature":"sig-1"}"#);
}

#[tokio::test]
async fn a_crash_at_any_line_leaves_a_conversation_that_can_be_sent() {
    let first = scene([end(vec![call("1", "s__echo", "{}")], 10), text("ok")]);
    let mut conversation = first.begin();
    first.say(&mut conversation, "go").await.unwrap();
    let whole = first.file();
    let header = whole.lines().next().unwrap().len();
    for length in (header..=whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        let scene = scene([text("resumed")]);
        let lines = whole.get(..length).unwrap().lines().map(ToOwned::to_owned).collect();
        scene.store.0.lock().unwrap().insert("x".to_owned(), lines);
        let mut conversation = scene.resume().unwrap();
        scene.say(&mut conversation, "and now?").await.unwrap();
        let requests = scene.requests();
        let messages = &requests[0].messages;
        for (at, message) in messages.iter().enumerate() {
            let open = message.calls().count();
            let next = messages.get(at + 1).map_or(0, |next| {
                next.parts.iter().filter(|part| matches!(part, ChatPart::Result(_))).count()
            });
            assert_eq!(open, next, "cut at {length}");
        }
    }
}

#[tokio::test]
async fn a_turn_that_is_given_up_leaves_a_conversation_that_can_be_sent() {
    let scene = scene([end(vec![call("1", "never", "{}")], 10), text("ok")]);
    let mut conversation = scene.begin();
    assert!(scene.say(&mut conversation, "go").now_or_never().is_none());
    scene.say(&mut conversation, "never mind").await.unwrap();
    let messages = scene.requests().pop().unwrap().messages;
    let ChatPart::Result(result) = &messages[2].parts[0] else { panic!("{messages:?}") };
    assert!(result.is_error && result.text.contains("not awaited"));
}

#[tokio::test]
async fn another_folder_has_another_conversation() {
    let scene = scene([text("a")]);
    let mut conversation = scene.begin();
    scene.say(&mut conversation, "hi").await.unwrap();
    let store = Arc::<Memory>::clone(&scene.store);
    let error = Conversation::resume(store, "/elsewhere").err().unwrap();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_conversation_is_summarized_before_the_limit() {
    let scene =
        scene([end(vec![ChatPart::text("long ago")], 9_000), text("They said hello."), text("b")]);
    let mut conversation = scene.begin();
    scene.say(&mut conversation, "hello").await.unwrap();
    scene.say(&mut conversation, "and now?").await.unwrap();
    let requests = scene.requests();
    assert!(requests[1].tools.is_empty() && requests[1].messages[0].text().contains("long ago"));
    let sent: Vec<String> = requests[2].messages.iter().map(ChatMessage::text).collect();
    assert_eq!(sent, ["Summary of the conversation so far:\nThey said hello.", "and now?"]);
    assert!(scene.seen.0.lock().unwrap().contains(&"compacted".to_owned()));
    assert_eq!(scene.resume().unwrap().messages().len(), 3);
}

#[tokio::test]
async fn large_results_of_a_long_turn_are_left_out_oldest_first() {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(20_000));
    let calls = |id| end(vec![call(id, "s__echo", &large)], 10);
    let too_long = Err(ChatError::TooLong { model: "m".to_owned(), reason: "r".to_owned() });
    let scene = scene([calls("1"), calls("2"), too_long, text("ok")]);
    let mut conversation = scene.begin();
    assert_eq!(scene.say(&mut conversation, "go").await.unwrap().text, "ok");
    let requests = scene.requests();
    let size = |message: &ChatMessage| match &message.parts[0] {
        ChatPart::Result(result) => result.text.len(),
        other => panic!("{other:?}"),
    };
    let last = &requests[3].messages;
    assert!(
        size(&last[2]) < 300 && size(&last[4]) > 20_000,
        "{} {}",
        size(&last[2]),
        size(&last[4])
    );
}

#[tokio::test]
async fn what_cannot_be_shortened_is_an_error() {
    let too_long = Err(ChatError::TooLong { model: "m".to_owned(), reason: "r".to_owned() });
    let scene = scene([too_long]);
    let error = scene.say(&mut scene.begin(), "go").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
}

//! The three wire formats against a server that replays the providers' real streaming formats.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::panic, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::wildcard_enum_match_arm, reason = "each test looks at events of one kind")]

use std::time::Duration;

use capstan_hub::catalog::Provider;
use capstan_hub::ports::{
    ChatEnd, ChatError, ChatEvent, ChatMessage, ChatModel as _, ChatPart, ChatRequest, ImagePart,
    Role, Stop, ToolOffer, ToolResult,
};
use capstan_model::Secret;
use capstan_provider::{ModelSettings, RemoteModel};
use capstan_safety::address::AddressPolicy;
use capstan_testkit::model_api::{MODEL_KEY, ModelApi, ModelStep, StepEnd};
use capstan_wire::Json;
use futures::StreamExt as _;
use serde_json::{Value, json};

const ALL: [Provider; 3] = [Provider::Anthropic, Provider::OpenAi, Provider::Gemini];

const SCHEMA: &str = r#"{"type":"object","properties":{"city":{"type":"string"}}}"#;

fn settings(provider: Provider, endpoint: String) -> ModelSettings {
    ModelSettings {
        provider,
        label: "test/model".to_owned(),
        name: "model".to_owned(),
        endpoint,
        key: Some(Secret::new(MODEL_KEY.to_owned())),
        addresses: AddressPolicy::default(),
        max_output: None,
        timeout: Duration::from_secs(30),
    }
}

fn model(provider: Provider, api: &ModelApi) -> RemoteModel {
    let path = if provider == Provider::OpenAi { "/v1" } else { "" };
    RemoteModel::new(settings(provider, format!("{}{path}", api.url()))).unwrap()
}

fn request(messages: Vec<ChatMessage>) -> ChatRequest {
    let tool = ToolOffer {
        name: "weather".to_owned(),
        description: "Tells the weather.".to_owned(),
        schema: Json::parse(SCHEMA).unwrap(),
    };
    ChatRequest { system: "Be brief.".to_owned(), messages, tools: vec![tool] }
}

/// All events of an answer.
async fn answer(
    model: &RemoteModel,
    request: ChatRequest,
) -> (Vec<ChatEvent>, Result<ChatEnd, ChatError>) {
    let mut stream = model.chat(request);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(ChatEvent::End(end)) => {
                assert!(stream.next().await.is_none(), "nothing follows the end");
                return (events, Ok(end));
            }
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return (events, Err(error));
            }
        }
    }
    panic!("the stream ended without an end: {events:?}");
}

fn texts(events: &[ChatEvent]) -> String {
    let text = |event: &ChatEvent| match event {
        ChatEvent::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn results(end: &ChatEnd, images: &[ImagePart]) -> ChatMessage {
    let result = |call: &capstan_hub::ports::ToolCall| {
        ChatPart::Result(ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            text: "sunny".to_owned(),
            images: images.to_vec(),
            is_error: false,
        })
    };
    let parts = end.message.calls().map(result).collect();
    ChatMessage { role: Role::User, parts, written_by: None }
}

#[tokio::test]
async fn a_text_arrives_in_pieces_and_as_a_whole() {
    for provider in ALL {
        let text = "Grüße aus 東京 🗼, in pieces.";
        let api = ModelApi::start([ModelStep::text(text)]);
        let (events, end) =
            answer(&model(provider, &api), request(vec![ChatMessage::user("hi")])).await;
        let end = end.unwrap();
        assert_eq!(texts(&events), text, "{provider:?}");
        assert_eq!(end.message.text(), text, "{provider:?}");
        assert_eq!(end.stop, Stop::Done);
        assert_eq!((end.tokens.input, end.tokens.output, end.tokens.cached), (17, 20, 5));
        assert!(events.len() > 3, "{events:?}");
    }
}

#[tokio::test]
async fn parallel_calls_split_over_chunks_are_put_together_and_their_results_accepted() {
    for provider in ALL {
        let calls = [("weather", json!({"city": "Köln \"am\" Rhein"})), ("weather", json!({}))];
        let first = ModelStep {
            reasoning: Some("They want two places.".to_owned()),
            text: "Let me look.".to_owned(),
            ..ModelStep::calls(calls)
        };
        let api = ModelApi::start([first, ModelStep::text("Sunny.")]);
        let model = model(provider, &api);
        let question = ChatMessage::user("weather?");
        let (events, end) = answer(&model, request(vec![question.clone()])).await;
        let end = end.unwrap();
        assert_eq!(end.stop, Stop::Calls, "{provider:?}");
        let found: Vec<(&str, Value)> =
            end.message.calls().map(|call| (&*call.name, call.arguments.read().unwrap())).collect();
        assert_eq!(
            found,
            [("weather", json!({"city": "Köln \"am\" Rhein"})), ("weather", json!({}))]
        );
        let calling =
            |event: &&ChatEvent| matches!(event, ChatEvent::Calling { name } if name == "weather");
        assert_eq!(events.iter().filter(calling).count(), 2, "{provider:?}");
        let thought = |event: &ChatEvent| match event {
            ChatEvent::Reasoning(text) => Some(text.clone()),
            _ => None,
        };
        let thoughts: String = events.iter().filter_map(thought).collect();
        assert_eq!(thoughts, "They want two places.", "{provider:?}");
        // The stand-in refuses calls without results, and reasoning without its signature. The
        // messages are written to a file and read again, as a conversation is that is resumed.
        let messages = vec![question, end.message.clone(), results(&end, &[])];
        let saved = serde_json::to_string(&messages).unwrap();
        let messages: Vec<ChatMessage> = serde_json::from_str(&saved).unwrap();
        let (_, end) = answer(&model, request(messages)).await;
        assert_eq!(end.unwrap().message.text(), "Sunny.", "{provider:?}");
    }
}

#[tokio::test]
async fn reasoning_goes_back_byte_for_byte_to_its_own_provider_only() {
    let first = ModelStep {
        reasoning: Some("Hmm.".to_owned()),
        ..ModelStep::calls([("weather", json!({}))])
    };
    let api = ModelApi::start([first.clone(), ModelStep::text("ok"), first, ModelStep::text("ok")]);
    let question = ChatMessage::user("weather?");
    let claude = model(Provider::Anthropic, &api);
    let (_, end) = answer(&claude, request(vec![question.clone()])).await;
    let end = end.unwrap();
    let messages = vec![question.clone(), end.message.clone(), results(&end, &[])];
    answer(&claude, request(messages.clone())).await.1.unwrap();
    let sent = api.requests()[1].body["messages"][1]["content"][0].clone();
    let expected =
        json!({"type": "thinking", "thinking": "Hmm.", "signature": "signature-of-thinking"});
    assert_eq!(sent, expected);
    // Gemini gets the conversation of another provider without its reasoning.
    let gemini = model(Provider::Gemini, &api);
    let (_, end) = answer(&gemini, request(messages)).await;
    let sent = api.requests()[2].body["contents"][1]["parts"].clone();
    assert_eq!(sent.as_array().unwrap().len(), 1);
    assert_eq!(sent[0]["thoughtSignature"], "skip_thought_signature_validator");
    let end = end.unwrap();
    let messages = vec![question, end.message.clone(), results(&end, &[])];
    answer(&gemini, request(messages)).await.1.unwrap();
    let sent = &api.requests()[3].body["contents"][1]["parts"][0];
    assert_eq!(sent["thoughtSignature"], "signature-of-a-call");
    assert!(sent["functionCall"].get("id").is_none(), "no id was given: {sent}");
}

#[tokio::test]
async fn images_reach_every_provider_alone_and_in_results() {
    for provider in ALL {
        let api =
            ModelApi::start([ModelStep::calls([("weather", json!({}))]), ModelStep::text("ok")]);
        let model = model(provider, &api);
        let image = ImagePart { mime: "image/png".to_owned(), data: "iVBORw0=".to_owned() };
        let parts = vec![ChatPart::text("What is this?"), ChatPart::Image(image.clone())];
        let question = ChatMessage { role: Role::User, parts, written_by: None };
        let end = answer(&model, request(vec![question.clone()])).await.1.unwrap();
        let messages = vec![question, end.message.clone(), results(&end, &[image])];
        answer(&model, request(messages)).await.1.unwrap();
        let sent = api.requests();
        assert_eq!(sent[0].body.to_string().matches("iVBORw0=").count(), 1, "{provider:?}");
        assert_eq!(sent[1].body.to_string().matches("iVBORw0=").count(), 2, "{provider:?}");
    }
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_and_reported() {
    for provider in ALL {
        let end =
            StepEnd::Status(429, vec![("retry-after-ms", "20".to_owned())], "slow".to_owned());
        let limited = ModelStep { end, ..ModelStep::default() };
        let failed = ModelStep::status(503, "down");
        let api = ModelApi::start([limited, failed, ModelStep::text("late")]);
        let (events, end) =
            answer(&model(provider, &api), request(vec![ChatMessage::user("hi")])).await;
        assert_eq!(end.unwrap().message.text(), "late", "{provider:?}");
        let retries: Vec<(u32, Duration)> = events
            .iter()
            .filter_map(|event| match event {
                ChatEvent::Retrying { attempt, wait, .. } => Some((*attempt, *wait)),
                _ => None,
            })
            .collect();
        assert_eq!(retries[0], (1, Duration::from_millis(20)));
        assert!(retries.len() == 2 && retries[1].1 >= Duration::from_secs(1), "{retries:?}");
    }
}

#[tokio::test]
async fn attempts_are_bounded_and_a_long_wait_is_not_waited() {
    let again = StepEnd::Status(429, vec![("retry-after-ms", "1".to_owned())], "slow".to_owned());
    let limited = ModelStep { end: again, ..ModelStep::default() };
    let api = ModelApi::start(vec![limited; 9]);
    let (events, end) =
        answer(&model(Provider::OpenAi, &api), request(vec![ChatMessage::user("hi")])).await;
    assert!(matches!(end, Err(ChatError::RateLimited { .. })), "{end:?}");
    assert_eq!((events.len(), api.requests().len()), (3, 4));
    let hour = StepEnd::Status(429, vec![("retry-after", "3600".to_owned())], "quota".to_owned());
    let api = ModelApi::start([ModelStep { end: hour, ..ModelStep::default() }]);
    let (events, end) =
        answer(&model(Provider::OpenAi, &api), request(vec![ChatMessage::user("hi")])).await;
    let wait = Some(Duration::from_hours(1));
    assert!(matches!(end, Err(ChatError::RateLimited { wait: w, .. }) if w == wait), "{events:?}");
    assert!(events.is_empty());
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_and_is_not_repeated() {
    for provider in ALL {
        for end in [StepEnd::Cut, StepEnd::Reported] {
            let step = ModelStep { end, ..ModelStep::text(&"many words ".repeat(20)) };
            let api = ModelApi::start([step, ModelStep::text("a second answer")]);
            let (events, end) =
                answer(&model(provider, &api), request(vec![ChatMessage::user("hi")])).await;
            assert!(end.is_err(), "{provider:?} {end:?}");
            assert!(texts(&events).starts_with("many words"), "{provider:?} {events:?}");
            assert_eq!(api.requests().len(), 1, "{provider:?}");
        }
    }
}

#[tokio::test]
async fn refusals_name_the_problem_and_never_the_key() {
    for provider in ALL {
        let api = ModelApi::start([
            ModelStep::status(400, "prompt is too long"),
            ModelStep::status(404, "no model"),
        ]);
        let url =
            if provider == Provider::OpenAi { format!("{}/v1", api.url()) } else { api.url() };
        let wrong = "wrong-key-of-somebody".to_owned();
        let key = Some(Secret::new(wrong.clone()));
        let refused = RemoteModel::new(ModelSettings { key, ..settings(provider, url) }).unwrap();
        let question = || request(vec![ChatMessage::user("hi")]);
        let error = answer(&refused, question()).await.1.unwrap_err();
        assert!(matches!(error, ChatError::Auth { .. }), "{provider:?} {error:?}");
        // The provider repeats the key in its message.
        assert!(!error.to_string().contains(&wrong), "{error}");
        let model = model(provider, &api);
        let error = answer(&model, question()).await.1.unwrap_err();
        assert!(matches!(error, ChatError::TooLong { .. }), "{provider:?} {error:?}");
        let error = answer(&model, question()).await.1.unwrap_err();
        assert!(matches!(error, ChatError::NotFound { .. }), "{provider:?} {error:?}");
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    for provider in ALL {
        let api = ModelApi::start([ModelStep { end: StepEnd::Hang, ..ModelStep::text("wait…") }]);
        let mut stream = model(provider, &api).chat(request(vec![ChatMessage::user("hi")]));
        assert!(matches!(stream.next().await, Some(Ok(ChatEvent::Text(_)))), "{provider:?}");
        drop(stream);
        let hung_up = tokio::task::spawn_blocking(move || api.wait_for_hang_up()).await.unwrap();
        assert!(hung_up, "{provider:?}");
    }
}

#[tokio::test]
async fn silence_ends_after_the_limit() {
    let api = ModelApi::start([ModelStep { end: StepEnd::Hang, ..ModelStep::text("wait…") }]);
    let timeout = Duration::from_millis(200);
    let settings = ModelSettings { timeout, ..settings(Provider::Anthropic, api.url()) };
    let model = RemoteModel::new(settings).unwrap();
    let (_, end) = answer(&model, request(vec![ChatMessage::user("hi")])).await;
    assert!(matches!(end, Err(ChatError::TimedOut { .. })), "{end:?}");
}

#[tokio::test]
async fn addresses_that_were_not_configured_are_refused() {
    for endpoint in
        ["http://169.254.169.254/v1", "http://10.0.0.1/v1", "http://127.1/v1", "http://[::]/v1"]
    {
        let model = RemoteModel::new(settings(Provider::OpenAi, endpoint.to_owned())).unwrap();
        let (_, end) = answer(&model, request(vec![ChatMessage::user("hi")])).await;
        assert!(matches!(end, Err(ChatError::Blocked { .. })), "{endpoint}: {end:?}");
    }
    for endpoint in ["", "model", "ftp://host/", "file:///etc/passwd"] {
        assert!(RemoteModel::new(settings(Provider::OpenAi, endpoint.to_owned())).is_err());
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_reported_with_the_call() {
    for provider in [Provider::Anthropic, Provider::OpenAi] {
        let calls = vec![("weather".to_owned(), "{\"city\": ".to_owned())];
        let api = ModelApi::start([ModelStep { calls, ..ModelStep::default() }]);
        let end =
            answer(&model(provider, &api), request(vec![ChatMessage::user("hi")])).await.1.unwrap();
        let call = end.message.calls().next().unwrap().clone();
        assert!(call.problem.unwrap().contains("JSON"), "{provider:?}");
        assert_eq!(call.arguments.as_str(), "{}");
    }
}

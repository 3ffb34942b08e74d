//! Capstan's own tools: a client finds, describes and calls tools that its list does not have, under
//! the same rules as a client that has all tools.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use capstan_gateway::View;
use capstan_hub::HubBuilder;
use capstan_hub::own_tools::ToolOffer;
use capstan_hub::ports::{
    Asking, BoxFuture, IndexedTools, Listener as _, Listing, Notice, Score, Scores, SearchedTool,
    Slot, ToolIndex, Wanted,
};
use capstan_model::{CallTools, Expose, Verdict};
use capstan_policy::{Glob, Pattern, Rule};
use capstan_wire::{Message, Reply, object};
use futures::FutureExt as _;
use futures::future::ready;
use tokio::time::timeout;

use crate::harness::{Harness, LIMIT, Server, allowing, follow, items, json, member};
use crate::side_requests::grant_to_readers;

/// Finds tools by the number of words of the query that their texts contain.
#[derive(Default)]
struct WordIndex(Mutex<Vec<String>>);

impl ToolIndex for WordIndex {
    fn add(&self, tools: &[SearchedTool<'_>]) -> IndexedTools {
        let mut texts = self.0.lock().unwrap();
        let slots = tools.iter().map(|tool| {
            texts
                .push(format!("{} {} {}", tool.server, tool.name, tool.description).to_lowercase());
            Slot(u32::try_from(texts.len() - 1).unwrap())
        });
        IndexedTools::new(slots.collect(), Arc::new(()))
    }

    fn score<'a>(
        &'a self,
        query: &'a str,
        among: &'a [Slot],
        wanted: Wanted,
    ) -> BoxFuture<'a, Scores> {
        let texts = self.0.lock().unwrap();
        let words: Vec<&str> = query.split_whitespace().collect();
        let mut best = Vec::new();
        for (position, slot) in among.iter().enumerate() {
            let text = texts.get(slot.0 as usize).unwrap();
            let hits = words.iter().filter(|word| text.contains(**word)).count();
            #[expect(clippy::cast_precision_loss, reason = "a few words")]
            let score = hits as f32 / words.len() as f32;
            if hits > 0 {
                best.push(Score { position, score, similarity: score });
            }
        }
        drop(texts);
        best.sort_by(|one, other| other.score.total_cmp(&one.score));
        best.truncate(wanted.limit);
        ready(Scores { best, pending: 0 }).boxed()
    }

    fn likeness(&self, _: Slot, _: Slot) -> Option<f32> {
        None
    }
}

fn offer(expose: Expose) -> ToolOffer {
    ToolOffer {
        index: Arc::new(WordIndex::default()),
        top_k: 5,
        min_similarity: 0.3,
        expose,
        clients: Vec::new(),
        budget: 100,
        always_include: ["pinned".to_owned()].into(),
        always_load: [].into(),
    }
}

const SEARCH: Expose = Expose::Search(CallTools::One);
const BY_EFFECT: Expose = Expose::Search(CallTools::ByEffect);

fn tool(name: &str, description: &str, more: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object","properties":{{"title":{{"type":"string"}},"n":{{"type":"integer"}}}},"required":["title"]}}{more}}}"#
    )
}

/// A server with tools for issues.
fn issues() -> Server {
    let tools = [
        tool("create_issue", "Creates an issue. With a title.", ""),
        tool("list_issues", "Lists issues", r#","annotations":{"readOnlyHint":true}"#),
        tool("pinned", "Is always there", ""),
    ];
    let server = Server::new("gh").listing(move |listing| {
        let tools = if listing == Listing::Tools { items(&tools) } else { Arc::from([]) };
        ready(tools).boxed()
    });
    server.running(|params, _| {
        let text = params.to_string().replace('"', "'");
        ready(Ok(json(&format!(r#"{{"content":[],"structuredContent":{{"got":"{text}"}}}}"#))))
            .boxed()
    })
}

fn harness(expose: Expose) -> Harness {
    Harness::with(vec![issues(), Server::new("other")], |hub| {
        hub.offer = Some(Arc::new(offer(expose)));
    })
}

fn names(answer: &str) -> Vec<String> {
    let tools = object::items(&json(&member(answer, "result.tools"))).unwrap();
    tools.iter().map(|tool| object::get_string(tool, "name").unwrap()).collect()
}

fn text(answer: &str) -> String {
    let content = object::items(&json(&member(answer, "result.content"))).unwrap();
    object::get_string(content.first().unwrap(), "text").unwrap()
}

#[tokio::test]
async fn clients_of_both_eras_find_describe_and_call_a_tool_that_was_never_listed() {
    let harness = harness(SEARCH);
    let own = ["search_tools", "describe_tool", "call_tool", "gh__pinned"];
    let legacy = harness.legacy(View::All, "{}").await;
    for modern in [false, true] {
        let ask = |method: &'static str, params: &'static str| {
            let (harness, legacy) = (&harness, &legacy);
            async move {
                if modern {
                    harness.ask_modern(View::All, "{}", method, params).await.answer
                } else {
                    harness.ask(legacy, method, params).await.answer
                }
            }
        };
        assert_eq!(names(&ask("tools/list", "{}").await), own, "modern: {modern}");
        let found = ask(
            "tools/call",
            r#"{"name":"search_tools","arguments":{"queries":["creates issue","lists"]}}"#,
        );
        assert_eq!(
            text(&found.await),
            "gh__create_issue(title: string, n?: integer) - Creates an issue.\n\
             gh__list_issues(title: string, n?: integer) - Lists issues"
        );
        let described = ask(
            "tools/call",
            r#"{"name":"describe_tool","arguments":{"name":"gh__create_issue"}}"#,
        );
        let expected = tool("gh__create_issue", "Creates an issue. With a title.", "");
        assert_eq!(text(&described.await), expected);
        assert_eq!(harness.take_sent(), [""; 0], "no server is asked for these");
        let called = ask(
            "tools/call",
            r#"{"name":"call_tool","arguments":{"name":"gh__create_issue","arguments":{"title":"x"}}}"#,
        );
        let called = called.await;
        let got = member(&called, "result.structuredContent.got");
        assert!(got.contains("'name':'create_issue'") && got.contains("{'title':'x'}"), "{called}");
        harness.take_sent();
    }
    let entries = harness.entries();
    let items: Vec<_> = entries
        .iter()
        .map(|entry| (entry.server.clone(), entry.item.clone(), entry.verdict))
        .collect();
    let allowed = Some(Verdict::Allow);
    let one = [
        (None, "search_tools".to_owned(), allowed),
        (None, "describe_tool".to_owned(), allowed),
        (Some("gh".to_owned()), "create_issue".to_owned(), allowed),
    ];
    assert_eq!(items, [one.clone(), one].concat(), "one entry a call, of the real tool");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_searches_is_told_only_of_changes_of_its_own_list() {
    let version = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&version);
    let growing = Server::new("b").listing(move |listing| {
        // The third tool is one that is always listed.
        let name = |at: usize| if at == 3 { "pinned".to_owned() } else { format!("t{at}") };
        let tools = (1..=now.load(Ordering::Relaxed)).map(|at| tool(&name(at), "", ""));
        let tools: Vec<String> = tools.collect();
        let tools = if listing == Listing::Tools { items(&tools) } else { Arc::from([]) };
        ready(tools).boxed()
    });
    let harness = Harness::with(vec![growing], |hub| {
        let all = vec![(Glob::stars("all"), Expose::All)];
        hub.offer = Some(Arc::new(ToolOffer { clients: all, ..offer(SEARCH) }));
    });
    let all = harness.named("all", View::All, "{}").await;
    let searches = harness.named("searches", View::All, "{}").await;
    let before = harness.ask(&searches, "tools/list", "{}").await.answer;
    harness.ask(&all, "tools/list", "{}").await;
    let (mut of_all, mut of_searches) = (all.open_inbox(), searches.open_inbox());
    let change = |number| {
        version.store(number, Ordering::Relaxed);
        harness.gateway.list_changed(&"b".parse().unwrap(), Listing::Tools);
    };
    change(2);
    timeout(LIMIT, of_all.recv()).await.unwrap().unwrap();
    assert!(timeout(LIMIT, of_searches.recv()).await.is_err(), "its list is the one before");
    assert_eq!(harness.ask(&searches, "tools/list", "{}").await.answer, before);
    change(3);
    timeout(LIMIT, of_searches.recv()).await.unwrap().unwrap();
    let after = names(&harness.ask(&searches, "tools/list", "{}").await.answer);
    assert!(after.contains(&"b__pinned".to_owned()), "{after:?}");
}

#[tokio::test]
async fn whoever_has_all_tools_has_no_own_tools() {
    let harness = harness(Expose::All);
    let client = harness.legacy(View::All, "{}").await;
    let listed = names(&harness.ask(&client, "tools/list", "{}").await.answer);
    assert_eq!(listed, ["gh__create_issue", "gh__list_issues", "gh__pinned", "other__t"]);
    for name in ["search_tools", "describe_tool", "call_tool", "call_read_tool"] {
        let params =
            format!(r#"{{"name":"{name}","arguments":{{"name":"gh__pinned","queries":["x"]}}}}"#);
        let answer = harness.ask(&client, "tools/call", &params).await.answer;
        assert!(answer.contains(&format!("Unknown tool: {name}")), "{answer}");
    }
    assert_eq!(harness.take_sent(), [""; 0]);
}

#[tokio::test]
async fn the_endpoint_of_one_server_shows_its_tools_as_they_are() {
    let harness = harness(SEARCH);
    let client = harness.legacy(View::One("gh".parse().unwrap()), "{}").await;
    let listed = names(&harness.ask(&client, "tools/list", "{}").await.answer);
    assert_eq!(listed, ["create_issue", "list_issues", "pinned"]);
    let search = r#"{"name":"search_tools","arguments":{"queries":["issue"]}}"#;
    let answer = harness.ask(&client, "tools/call", search).await.answer;
    assert!(answer.contains("Unknown tool: search_tools"), "{answer}");
}

/// A rule that stops a direct call stops one through `call_tool`; a tool that is denied cannot be
/// told from one that was made up.
#[tokio::test]
async fn a_denied_tool_is_neither_found_nor_described_nor_called() {
    let deny = |hub: &mut HubBuilder| {
        let mut policy = allowing(["gh".parse().unwrap(), "other".parse().unwrap()].iter());
        let pattern = Pattern::parse("gh__create_issue").unwrap();
        policy.permissions.global.deny.push(Rule::new(pattern, "permissions.deny"));
        hub.policy = Arc::new(policy.compile());
        hub.offer = Some(Arc::new(offer(SEARCH)));
    };
    let harness = Harness::with(vec![issues(), Server::new("other")], deny);
    let client = harness.legacy(View::All, "{}").await;
    let answer = |params: String| {
        let (harness, client) = (&harness, &client);
        async move { harness.ask(client, "tools/call", &params).await.answer }
    };
    let found =
        answer(r#"{"name":"search_tools","arguments":{"queries":["creates issue"]}}"#.into());
    let found = text(&found.await);
    assert!(!found.contains("create"), "{found}");
    for own in ["describe_tool", "call_tool"] {
        let [denied, made_up] = ["gh__create_issue", "gh__made_up_one"].map(|name| {
            let params = format!(r#"{{"name":"{own}","arguments":{{"name":"{name}"}}}}"#);
            (name, answer(params))
        });
        let [denied, made_up] = [(denied.0, denied.1.await), (made_up.0, made_up.1.await)];
        assert!(denied.1.contains("Unknown tool: gh__create_issue"), "{}", denied.1);
        assert_eq!(denied.1.replace(denied.0, "x"), made_up.1.replace(made_up.0, "x"));
        let direct = answer(r#"{"name":"gh__create_issue","arguments":{}}"#.into()).await;
        assert_eq!(denied.1, direct, "as for a direct call");
    }
    assert_eq!(harness.take_sent(), [""; 0]);
}

#[tokio::test]
async fn a_role_finds_and_calls_only_what_it_may_use() {
    let harness = Harness::with(vec![issues(), Server::new("other")], |hub| {
        grant_to_readers(hub, "gh");
        hub.offer = Some(Arc::new(offer(SEARCH)));
    });
    let search = r#"{"name":"search_tools","arguments":{"queries":["issue","other"]}}"#;
    let (reader, none) = (harness.bound("reader").await, harness.bound("none").await);
    let found = text(&harness.ask(&reader, "tools/call", search).await.answer);
    assert!(found.contains("gh__create_issue") && !found.contains("other__t"), "{found}");
    let found = text(&harness.ask(&none, "tools/call", search).await.answer);
    assert!(found.starts_with("No tool fits"), "{found}");
    let call = |name: &str| format!(r#"{{"name":"call_tool","arguments":{{"name":"{name}"}}}}"#);
    for name in ["gh__create_issue", "gh__list_issues"] {
        let answer = harness.ask(&reader, "tools/call", &call(name)).await.answer;
        assert!(answer.contains("structuredContent"), "{answer}");
    }
    harness.take_sent();
    for (client, name) in [
        (&reader, "other__t"),
        (&reader, "other__made_up"),
        (&none, "gh__create_issue"),
        (&none, "gh__list_issues"),
        (&none, "gh__made_up"),
    ] {
        let answer = harness.ask(client, "tools/call", &call(name)).await.answer;
        assert!(answer.contains(&format!("Unknown tool: {name}")), "{answer}");
    }
    assert_eq!(harness.take_sent(), [""; 0]);
}

#[tokio::test]
async fn call_read_tool_calls_nothing_that_may_change_something() {
    let harness = harness(BY_EFFECT);
    let client = harness.legacy(View::All, "{}").await;
    let listed = names(&harness.ask(&client, "tools/list", "{}").await.answer);
    assert_eq!(listed[..4], ["search_tools", "describe_tool", "call_read_tool", "call_write_tool"]);
    let search = r#"{"name":"search_tools","arguments":{"queries":["issue"]}}"#;
    let found = text(&harness.ask(&client, "tools/call", search).await.answer);
    let marks: Vec<_> =
        found.lines().map(|line| (line.contains("create"), line.contains("[write]"))).collect();
    assert!(marks.contains(&(true, true)), "{found}");
    let call = |own: &str, tool: &str| {
        let params =
            format!(r#"{{"name":"{own}","arguments":{{"name":"{tool}","arguments":{{}}}}}}"#);
        let (harness, client) = (&harness, &client);
        async move { harness.ask(client, "tools/call", &params).await.answer }
    };
    let refused = call("call_read_tool", "gh__create_issue").await;
    assert!(refused.contains("call it with `call_write_tool`"), "{refused}");
    let unknown = call("call_tool", "gh__list_issues").await;
    assert!(unknown.contains("Unknown tool"), "{unknown}");
    assert_eq!(harness.take_sent(), [""; 0]);
    for (own, tool) in
        [("call_read_tool", "gh__list_issues"), ("call_write_tool", "gh__create_issue")]
    {
        let called = call(own, tool).await;
        assert!(called.contains("structuredContent"), "{called}");
    }
}

#[tokio::test]
async fn auto_means_search_only_above_the_budget_and_one_client_keeps_what_it_has() {
    let with = |budget| {
        Harness::with(vec![issues(), Server::new("other")], |hub| {
            hub.offer = Some(Arc::new(ToolOffer { budget, ..offer(Expose::Auto(CallTools::One)) }));
        })
    };
    for (budget, expected) in [(0, 4), (100, 4), (100_000, 4)] {
        let harness = with(budget);
        let client = harness.legacy(View::All, "{}").await;
        let listed = names(&harness.ask(&client, "tools/list", "{}").await.answer);
        assert_eq!(listed.len(), expected);
        assert_eq!(listed[0] == "search_tools", budget < 1000, "{budget}");
        let modern = harness.ask_modern(View::All, "{}", "tools/list", "{}").await.answer;
        assert_eq!(names(&modern), listed);
        let search = r#"{"name":"search_tools","arguments":{"queries":["issue"]}}"#;
        let answer = harness.ask(&client, "tools/call", search).await.answer;
        assert_eq!(answer.contains("Unknown tool"), budget > 1000, "{answer}");
    }
}

#[tokio::test]
async fn a_client_by_its_name_gets_what_the_configuration_says_for_it() {
    let harness = Harness::with(vec![issues()], |hub| {
        let clients = vec![(Glob::stars("big*"), Expose::All)];
        hub.offer = Some(Arc::new(ToolOffer { clients, ..offer(SEARCH) }));
    });
    for (name, first) in [("bigger", "gh__create_issue"), ("small", "search_tools")] {
        let client = harness.named(name, View::All, "{}").await;
        let listed = names(&harness.ask(&client, "tools/list", "{}").await.answer);
        assert_eq!(listed[0], first, "{name}");
    }
}

#[tokio::test]
async fn progress_and_questions_pass_through_call_tool_as_for_a_direct_call() {
    let server = Server::new("a").running(|_, back| {
        async move {
            let params = json(r#"{"progressToken":7,"progress":1}"#);
            let (server, total, message) = ("a".parse().unwrap(), None, None);
            back.notice(Notice::Progress { server, done: 1.0, total, message, params });
            let params = json(r#"{"message":"Sure?","requestedSchema":{}}"#);
            let said = back.ask(Asking::Elicit, params).await.unwrap();
            Ok(json(&format!(r#"{{"content":[],"structuredContent":{{"said":{said}}}}}"#)))
        }
        .boxed()
    });
    let harness = Harness::with(vec![server], |hub| hub.offer = Some(Arc::new(offer(SEARCH))));
    let client = harness.legacy(View::All, r#"{"elicitation":{}}"#).await;
    let meta = r#""_meta":{"progressToken":7}"#;
    let through = format!(r#"{{"name":"call_tool","arguments":{{"name":"a__t"}},{meta}}}"#);
    let direct = format!(r#"{{"name":"a__t","arguments":{{}},{meta}}}"#);
    let mut answers = Vec::new();
    for params in [through, direct] {
        let said = follow(harness.start(&client, "tools/call", &params), |message| {
            if message.contains("elicitation/create") {
                let Message::Request { id, .. } =
                    Message::parse(&message.to_owned().into()).unwrap()
                else {
                    panic!("{message}")
                };
                let reply = json(r#"{"action":"accept","content":{}}"#);
                client.take_reply(&id, Reply::Result(reply));
            }
        })
        .await;
        let [progress, question] = said.messages.as_slice() else { panic!("{said:?}") };
        assert_eq!(member(progress, "params.progressToken"), "7", "{progress}");
        assert!(question.contains("Sure?"), "{question}");
        answers.push(said.answer);
    }
    assert!(answers[0].contains(r#""action":"accept""#), "{answers:?}");
    assert_eq!(answers[0], answers[1]);
}

/// The state of a question is bound to the call: answers to it go to the tool that asked.
#[tokio::test]
async fn a_modern_client_answers_a_question_through_call_tool() {
    let server = Server::modern("a").running(|params, _| {
        let asks = object::get(&params, "inputResponses").is_none();
        let result = if asks {
            r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{}}}},"requestState":"s"}"#
        } else {
            r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#
        };
        ready(Ok(json(result))).boxed()
    });
    let harness = Harness::with(vec![server], |hub| hub.offer = Some(Arc::new(offer(SEARCH))));
    let call = r#"{"name":"call_tool","arguments":{"name":"a__t","arguments":{"x":1}}}"#;
    let able = r#"{"elicitation":{}}"#;
    let asked = harness.ask_modern(View::All, able, "tools/call", call).await.answer;
    let state = object::at_path(&json(&asked), "result.requestState").unwrap();
    let key = object::members(&json(&member(&asked, "result.inputRequests"))).unwrap();
    let responses = format!(r#"{{"{}":{{"action":"accept","content":{{}}}}}}"#, key[0].0);
    let again = object::with_member(&json(call), "requestState", &state)
        .and_then(|call| object::with_member(&call, "inputResponses", &json(&responses)));
    let again = again.unwrap().to_string();
    harness.take_sent();
    let answer = harness.ask_modern(View::All, able, "tools/call", &again).await.answer;
    assert_eq!(text(&answer), "done", "{answer}");
    let sent = harness.take_sent();
    assert!(
        sent[0].contains(r#""name":"t""#) && sent[0].contains(r#""requestState":"s""#),
        "{sent:?}"
    );
}

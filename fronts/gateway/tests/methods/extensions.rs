//! Methods of extensions: forwarded to one server, merged from all servers, and under the rules.

use std::sync::Arc;

use capstan_gateway::View;
use capstan_hub::ports::{Asking, Listener as _, Notice};
use capstan_hub::{HubBuilder, Outcome};
use capstan_model::{ErrorCode, ServerName};
use capstan_policy::{Pattern, Rule};
use capstan_wire::{Reply, RequestId, object};
use futures::FutureExt as _;
use futures::future::ready;

use crate::harness::{Harness, Server, allowing, follow, json, member};

const DECLARED: &str = r#"{"tools":{},"resources":{},"extensions":{"com.acme/search":{},"io.modelcontextprotocol/skills":{}}}"#;

fn one(server: &str) -> View {
    View::One(server.parse().unwrap())
}

/// A server with an extension of its own and one skill, `pdf`, on the second page of its list.
fn server(name: &'static str) -> Server {
    Server::modern(name).able(DECLARED).answering(move |method, params, _| {
        let skill = format!(
            r#"{{"uri":"skill://pdf/SKILL.md","frontmatter":{{"name":"pdf","by":"{name}"}},"resources":[{{"uri":"skill://pdf/SKILL.md","size":1}}]}}"#
        );
        let uri = object::get_string(&params, "uri").unwrap_or_default();
        let answer = match method {
            "skills/list" if object::get(&params, "cursor").is_none() => {
                r#"{"skills":[],"nextCursor":"2","ttlMs":60000,"cacheScope":"public","resultType":"complete"}"#.to_owned()
            }
            "skills/list" => format!(
                r#"{{"skills":[{skill}],"ttlMs":50000,"cacheScope":"public","resultType":"complete"}}"#
            ),
            "skills/get" => format!(r#"{{"skill":{skill},"x": 1.0,"asked":"{uri}"}}"#),
            "resources/directory/read" => {
                format!(r#"{{"resources":[{{"uri":"{uri}/a.md"}}],"by":"{name}"}}"#)
            }
            _ => format!(r#"{{"by":"{name}","n": 1.00}}"#),
        };
        ready(Ok(json(&answer))).boxed()
    })
}

fn denying(pattern: &str) -> impl FnOnce(&mut HubBuilder) {
    let rule = Rule::new(Pattern::parse(pattern).unwrap(), "a rule");
    move |hub| {
        let servers: Vec<ServerName> = hub.servers().cloned().collect();
        let mut source = allowing(servers.iter());
        source.permissions.global.deny.push(rule);
        hub.policy = Arc::new(source.compile());
    }
}

#[tokio::test]
async fn a_method_of_an_unknown_extension_passes_where_one_server_is_shown() {
    let harness = Harness::new(vec![server("a"), Server::modern("b").able(r#"{"tools":{}}"#)]);
    let params = r#"{"q":[1.0]}"#;
    let answer = harness.ask_modern(one("a"), "{}", "acme/search", params).await.answer;
    assert_eq!(member(&answer, "result"), r#"{"resultType":"complete","by":"a","n": 1.00}"#);
    assert_eq!(harness.take_sent(), [r#"a acme/search {"q":[1.0]}"#]);
    let entry = harness.entries().pop().unwrap();
    let seen = (entry.server.as_deref(), entry.item.as_str(), entry.method, entry.outcome);
    let method = Some("extension");
    assert_eq!(seen, (Some("a"), "method:acme/search", method, Outcome::Answered));
    // Of a server that declares none, of all servers, and of the protocol itself.
    for (view, method) in
        [(one("b"), "acme/search"), (View::All, "acme/search"), (one("a"), "tools/new")]
    {
        let answer = harness.ask_modern(view, "{}", method, "{}").await.answer;
        assert_eq!(member(&answer, "error.code"), "-32601", "{method}");
    }
    assert_eq!(harness.take_sent(), [""; 0]);
}

#[tokio::test]
async fn a_rule_that_names_a_method_denies_it() {
    for pattern in [
        "method:acme/search",
        "method:acme/*",
        "a__method:acme/search",
        "a:method:*",
        "method:acme/search:q=x",
        "method:*:deep.q=x",
    ] {
        let harness = Harness::with(vec![server("a")], denying(pattern));
        let params = r#"{"q":"x","deep":{"q":"x"}}"#;
        let answer = harness.ask_modern(one("a"), "{}", "acme/search", params).await.answer;
        assert_eq!(member(&answer, "error.code"), "-32601", "{pattern}");
        assert_eq!(harness.take_sent(), [""; 0], "{pattern}");
        let entry = harness.entries().pop().unwrap();
        assert_eq!(entry.outcome, Outcome::Failed(ErrorCode::PolicyBlocked), "{pattern}");
        let other = harness.ask_modern(one("a"), "{}", "other/method", r#"{"q":"y"}"#).await.answer;
        let passes = !["a:method:*"].contains(&pattern);
        assert_eq!(member(&other, "result.by") == r#""a""#, passes, "{pattern}");
    }
}

#[tokio::test]
async fn a_resource_that_a_rule_denies_is_not_reached_through_an_extension() {
    let harness = Harness::with(vec![server("a")], denying("secret://*"));
    for (uri, code) in [("secret://x", "-32601"), ("open://x", "")] {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        let answer = harness.ask_modern(one("a"), "{}", "resources/directory/read", &params);
        assert_eq!(member(&answer.await.answer, "error.code"), code, "{uri}");
    }
    let twice = r#"{"uri":"open://x","URI":"secret://x"}"#;
    let answer = harness.ask_modern(one("a"), "{}", "resources/directory/read", twice).await.answer;
    assert_eq!(member(&answer, "error.code"), "-32602");
    assert_eq!(harness.take_sent(), [r#"a resources/directory/read {"uri":"open://x"}"#]);
}

#[tokio::test]
async fn the_skills_of_all_servers_are_one_list_and_each_is_read_at_its_server() {
    let harness = Harness::new(vec![server("a"), server("b"), Server::modern("c")]);
    let listed = harness.ask_modern(View::All, "{}", "skills/list", "{}").await.answer;
    let skills = object::items(&object::at_path(&json(&listed), "result.skills").unwrap()).unwrap();
    let uris: Vec<_> = skills.iter().map(|it| object::get_string(it, "uri").unwrap()).collect();
    assert_eq!(uris, ["skill://pdf/SKILL.md", "skill://b.capstan/pdf/SKILL.md"]);
    assert_eq!(member(&listed, "result.ttlMs"), "50000");
    assert_eq!(member(&listed, "result.cacheScope"), r#""public""#);
    harness.take_sent();
    for (uri, by) in [("skill://pdf/SKILL.md", "a"), ("skill://b.capstan/pdf/SKILL.md", "b")] {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        let got = harness.ask_modern(View::All, "{}", "skills/get", &params).await.answer;
        assert_eq!(member(&got, "result.skill.uri"), format!(r#""{uri}""#));
        assert_eq!(member(&got, "result.skill.frontmatter.by"), format!(r#""{by}""#));
        assert_eq!(member(&got, "result.asked"), r#""skill://pdf/SKILL.md""#);
        let root = uri.strip_suffix("/SKILL.md").unwrap();
        let params = format!(r#"{{"uri":"{root}"}}"#);
        let read = harness.ask_modern(View::All, "{}", "resources/directory/read", &params);
        let read = read.await.answer;
        assert_eq!(member(&read, "result.resources"), format!(r#"[{{"uri":"{root}/a.md"}}]"#));
        assert_eq!(member(&read, "result.by"), format!(r#""{by}""#));
    }
    let unknown = r#"{"uri":"skill://nothing/SKILL.md"}"#;
    let got = harness.ask_modern(View::All, "{}", "skills/get", unknown).await.answer;
    assert_eq!(member(&got, "error.code"), "-32602");
}

#[tokio::test]
async fn a_skill_is_found_before_any_list_was_read() {
    let harness = Harness::new(vec![server("a"), Server::modern("b")]);
    let params = r#"{"uri":"skill://pdf/SKILL.md"}"#;
    let got = harness.ask_modern(View::All, "{}", "skills/get", params).await.answer;
    assert_eq!(member(&got, "result.skill.frontmatter.by"), r#""a""#);
}

#[tokio::test]
async fn extensions_that_are_not_carried_are_not_advertised() {
    let harness = Harness::new(vec![server("a"), Server::modern("b")]);
    let all = harness.ask_modern(View::All, "{}", "server/discover", "{}").await.answer;
    let extensions = member(&all, "result.capabilities.extensions");
    assert_eq!(extensions, r#"{"io.modelcontextprotocol/skills":{}}"#);
    let alone = harness.ask_modern(one("a"), "{}", "server/discover", "{}").await.answer;
    assert_eq!(member(&alone, "result.capabilities"), DECLARED);
}

#[tokio::test]
async fn notifications_of_an_extension_pass_both_ways_where_one_server_is_shown() {
    let harness =
        Harness::with(vec![server("a"), server("b")], denying("method:notifications/acme/no"));
    let client = harness.legacy(one("a"), "{}").await;
    let other = harness.legacy(one("b"), "{}").await;
    let (mut inbox, mut others) = (client.open_inbox(), other.open_inbox());
    for method in
        ["notifications/acme/no", "notifications/roots/list_changed", "notifications/acme/yes"]
    {
        harness.gateway.notification(&client, method, Some(&json(r#"{"x":1}"#)));
    }
    let sent = || async {
        loop {
            let sent = harness.take_sent();
            if !sent.is_empty() {
                return sent;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(sent().await, [r#"a notifications/acme/yes {"x":1}"#]);
    let name = "a".parse().unwrap();
    for method in ["notifications/acme/changed", "notifications/progress"] {
        harness.gateway.told(&name, method, Some(&json(r#"{"y":2}"#)));
    }
    let told = String::from_utf8(inbox.recv().await.unwrap().to_vec()).unwrap();
    assert_eq!(member(&told, "method"), r#""notifications/acme/changed""#);
    assert!(inbox.try_recv().is_err() && others.try_recv().is_err());
}

#[tokio::test]
async fn progress_questions_and_notifications_during_a_method_reach_its_client() {
    let server = Server::modern("a").able(DECLARED).answering(|_, _, to| {
        async move {
            let back = to.client().unwrap();
            let params = json(r#"{"progressToken":7,"progress":1.0}"#);
            let (server, done) = ("a".parse().unwrap(), 1.0);
            back.notice(Notice::Progress { server, done, total: None, message: None, params });
            for method in ["notifications/acme/seen", "notifications/tools/list_changed"] {
                back.notice(Notice::Other { method: method.into(), params: None });
            }
            let asked = back.ask(Asking::Roots, json("{}")).await;
            let answered = asked.is_ok();
            let code = asked.err().map_or(0, |unanswered| unanswered.code);
            Ok(json(&format!(r#"{{"answered":{answered},"code":{code}}}"#)))
        }
        .boxed()
    });
    let harness = Harness::new(vec![server]);
    let able = r#"{"roots":{}}"#;
    let params = r#"{"_meta":{"progressToken":"mine"}}"#;
    let said = harness.ask_modern(one("a"), able, "acme/search", params).await;
    let methods: Vec<_> = said.messages.iter().map(|message| member(message, "method")).collect();
    let told = ["progress", "acme/seen", "tools/list_changed"];
    assert_eq!(methods, told.map(|name| format!(r#""notifications/{name}""#)));
    assert_eq!(member(said.messages.first().unwrap(), "params.progressToken"), r#""mine""#);
    // A modern client can be asked only in the answer to a call: the server is told that this is
    // not offered.
    assert_eq!(member(&said.answer, "result.answered"), "false");
    assert_eq!(member(&said.answer, "result.code"), "-32601");

    let client = harness.legacy(one("a"), able).await;
    let _inbox = client.open_inbox();
    let exchange = harness.start(&client, "acme/search", params);
    let said = follow(exchange, |message| {
        if let Ok(id) = member(message, "id").parse() {
            let roots = Reply::Result(json(r#"{"roots":[]}"#));
            client.take_reply(&RequestId::Number(id), roots);
        }
    })
    .await;
    let methods: Vec<_> = said.messages.iter().map(|message| member(message, "method")).collect();
    // The others go to its stream for messages that belong to no request.
    assert_eq!(methods, [r#""notifications/progress""#, r#""roots/list""#]);
    assert_eq!(member(&said.answer, "result.answered"), "true");
}

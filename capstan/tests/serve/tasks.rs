//! Tasks, with real servers of both transports: those that a modern client listens to, and those of
//! each era at a server that speaks both.

use capstan_testkit::http::{HttpRequest, exchange, post};
use capstan_testkit::{Remote, binary};
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, modern, with};

const TASKS: &str = "notifications/tasks";

/// A client that knows tasks, and keeps what it is told beside its answers.
struct Client {
    gateway: Gateway,
    last_id: u64,
    told: Vec<Value>,
}

impl Client {
    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let mut params = modern(params);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let id = self.last_id;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.gateway.send(&line.to_string());
        id
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let said = self.gateway.hear();
            if said["id"] == id {
                return said["result"].clone();
            }
            self.told.push(said);
        }
    }

    /// The params of what it is told next.
    fn hear(&mut self, method: &str) -> Value {
        while self.told.is_empty() {
            let said = self.gateway.hear();
            self.told.push(said);
        }
        let said = self.told.remove(0);
        assert_eq!(said["method"], method, "{said}");
        said["params"].clone()
    }

    /// Has a server ask whether to delete something: the task that waits for an answer.
    fn begin(&mut self, server: &str) -> Value {
        let name = format!("{server}__confirm_delete");
        let call = json!({ "name": name, "arguments": { "filename": "x" } });
        let id = self.ask("tools/call", call)["taskId"].clone();
        while self.ask("tasks/get", json!({ "taskId": id }))["status"] == "working" {}
        id
    }

    /// Listens to these: the number of the subscription, and those of which it will be told.
    fn listen(&mut self, ids: &[&Value]) -> (u64, Value) {
        let number = self.send(
            "subscriptions/listen",
            json!({ "notifications": { "taskIds": ids, "promptsListChanged": true } }),
        );
        let understood = self.hear("notifications/subscriptions/acknowledged");
        (number, understood["notifications"]["taskIds"].clone())
    }
}

#[test]
fn a_client_is_told_how_its_tasks_go_until_they_are_over() {
    let remote = Remote::start("modern");
    let program = json!(binary("capstan-conformance-server").to_str().unwrap());
    let child = format!("command = {program}\nargs = [\"--stdio\", \"--era\", \"modern\"]\n");
    let far = format!("type = \"http\"\nurl = \"{}\"\n", remote.url);
    let world = with(&format!("{ALL}[servers.near]\n{child}\n[servers.far]\n{far}"));
    let gateway = Gateway::start(&world, "");
    let mut client = Client { gateway, last_id: 0, told: Vec::new() };
    let tasks = [client.begin("near"), client.begin("far")];
    let (first, understood) = client.listen(&[&tasks[0], &json!("other"), &tasks[1]]);
    // In the order of the servers' names.
    assert_eq!(understood, json!([tasks[1], tasks[0]]));

    let yes = json!({ "confirm": { "action": "accept", "content": { "confirm": true } } });
    client.ask("tasks/update", json!({ "taskId": tasks[0], "inputResponses": yes }));
    client.ask("tasks/cancel", json!({ "taskId": tasks[1] }));
    for _ in 0..3 {
        let task = client.hear(TASKS);
        assert_eq!(task["_meta"]["io.modelcontextprotocol/subscriptionId"], first);
        let mut as_asked = client.ask("tasks/get", json!({ "taskId": task["taskId"] }));
        match task["status"].as_str().unwrap() {
            "working" => assert_eq!(task["taskId"], tasks[0]),
            status => {
                assert_eq!(
                    status,
                    if task["taskId"] == tasks[0] { "completed" } else { "cancelled" }
                );
                as_asked["_meta"] = task["_meta"].clone();
                as_asked.as_object_mut().unwrap().remove("resultType");
                assert_eq!(task, as_asked);
            }
        }
    }

    // What is over changes no more; who takes a subscription back is told nothing more.
    let late = client.begin("far");
    let (second, understood) = client.listen(&[&late]);
    assert_eq!(understood, json!([late]));
    for id in [first, second] {
        let cancel = json!({ "requestId": id });
        let line =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel });
        client.gateway.send(&line.to_string());
    }
    client.ask("tasks/cancel", json!({ "taskId": late }));
    client.ask("tasks/cancel", json!({ "taskId": tasks[0] }));
    assert_eq!(client.ask("tasks/get", json!({ "taskId": late }))["status"], "cancelled");
    assert_eq!(client.told, [Value::Null; 0]);
}

/// The answer to a request of a client with a handshake, whatever it is told before.
fn ask_in_session(gateway: &mut Gateway, id: u64, method: &str, params: &Value) -> Value {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    gateway.send(&request.to_string());
    loop {
        let said = gateway.hear();
        if said["id"] == id {
            return said;
        }
    }
}

#[test]
fn a_dual_era_server_over_http_has_the_tasks_of_each_era_for_its_clients() {
    let remote = Remote::start("both");
    let far = format!("[servers.far]\ntype = \"http\"\nurl = \"{}\"\n", remote.url);
    let world = with(&format!("{ALL}{far}"));

    // The tasks of 2026-07-28, so that the gateway has a modern connection first.
    let gateway = Gateway::start(&world, "");
    let mut client = Client { gateway, last_id: 0, told: Vec::new() };
    let modern = client.begin("far");
    let asked = client.ask("tasks/get", json!({ "taskId": modern }));
    assert_eq!(asked["status"], "input_required");

    // A client with a handshake, at the same gateway and the same server.
    let gateway = &mut client.gateway;
    gateway.initialize("2025-11-25");
    let mut id = 1000;
    let mut ask = |method: &str, params: Value| {
        id += 1;
        let answer = ask_in_session(gateway, id, method, &params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    };
    let arguments = json!({ "seconds": 0, "label": "x" });
    let call = |task: bool| {
        let mut params = json!({ "name": "far__slow_compute", "arguments": arguments });
        if task {
            params["task"] = json!({ "ttl": 60_000 });
        }
        params
    };
    let direct = ask("tools/call", call(false));
    let task = ask("tools/call", call(true))["task"].clone();
    assert!(task["taskId"].is_string() && task["ttl"].is_u64(), "{task}");
    let result = ask("tasks/result", json!({ "taskId": task["taskId"] }));
    assert_eq!(result["content"], direct["content"]);
    let got = ask("tasks/get", json!({ "taskId": task["taskId"] }));
    assert_eq!((&got["status"], &got["taskId"]), (&json!("completed"), &task["taskId"]));
    let listed = ask("tasks/list", json!({}));
    assert_eq!(listed["tasks"], json!([got]), "the modern task belongs to another client");

    // One that waits for nobody is cancelled.
    let long = json!({ "name": "far__slow_compute", "arguments": { "seconds": 60 }, "task": {} });
    let waiting = ask("tools/call", long)["task"]["taskId"].clone();
    let cancelled = ask("tasks/cancel", json!({ "taskId": waiting }));
    assert_eq!(cancelled["status"], "cancelled");
    let refused = ask_in_session(gateway, 2000, "tasks/get", &json!({ "taskId": modern }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

/// The body of the answer to a request, and its session.
fn exchanged(address: &str, request: HttpRequest) -> (Value, String) {
    let answer = exchange(address, request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let body = body.lines().find(|line| line.starts_with('{')).unwrap();
    (serde_json::from_str(body).unwrap(), session.unwrap_or_default().to_owned())
}

#[test]
fn only_clients_with_a_handshake_see_which_tools_can_be_tasks_of_2025_11_25() {
    let remote = Remote::start("both");
    let far = format!("[servers.far]\ntype = \"http\"\nurl = \"{}\"\n", remote.url);
    let world = with(&format!("{ALL}{far}"));
    let (_gateway, address) = Gateway::listening(&world, "");
    let path = "/servers/far/mcp";
    let message = |id: u64, method: &str, params: Value| {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        post(path, &line.to_string())
    };
    let support = |listed: &Value| -> Vec<String> {
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        let can = tools.filter(|tool| tool["execution"]["taskSupport"] == "optional");
        can.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let described = message(1, "tools/list", modern(json!({})))
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/list");
    assert_eq!(support(&exchanged(&address, described).0), [""; 0]);
    let client = json!({ "name": "test", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let (hello, session) = exchanged(&address, message(2, "initialize", hello));
    assert!(hello["result"]["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object());
    let listed = message(3, "tools/list", json!({})).with("Mcp-Session-Id", &session);
    let expected = ["slow_compute", "confirm_delete", "multi_input"];
    assert_eq!(support(&exchanged(&address, listed).0), expected);
}

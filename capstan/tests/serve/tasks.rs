//! Tasks that a client listens to, with real servers of both transports.

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

//! A client of a gateway whose configuration changes, and what runs meanwhile.

use std::collections::VecDeque;
use std::fs;
use std::time::Instant;

use capstan_testkit::{World, wait_until};
use serde_json::{Value, json};

use crate::leftovers::running_in;
use crate::stage::{Gateway, LIMIT, tool_names};

/// A client on the standard streams of a gateway.
pub(crate) struct Scene {
    pub(crate) gateway: Gateway,
    /// What came while something else was waited for.
    heard: VecDeque<Value>,
    next: u64,
}

// === impl Scene ===

impl Scene {
    /// Starts a gateway and introduces a client of an older revision, which is told of changes.
    #[track_caller]
    pub(crate) fn start(world: &World) -> Self {
        Self::start_with(world, "")
    }

    /// The same, with these further words.
    #[track_caller]
    pub(crate) fn start_with(world: &World, words: &str) -> Self {
        let mut gateway = Gateway::start(world, words);
        gateway.initialize("2025-06-18");
        Self { gateway, heard: VecDeque::new(), next: 100 }
    }

    /// Sends a call and does not wait for its answer: its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.gateway.send(&request.to_string());
        id
    }

    /// The answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.hear(|message| message["id"] == id)
    }

    /// Whether a call goes well.
    #[track_caller]
    pub(crate) fn works(&mut self, tool: &str) -> bool {
        let id = self.begin(tool, &json!({ "text": "x" }));
        let answer = self.answer(id);
        answer.get("error").is_none() && answer["result"]["isError"] != true
    }

    /// The names of the tools there are.
    #[track_caller]
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let id = self.request("tools/list", &json!({}));
        tool_names(&self.answer(id))
    }

    /// Whether there is a tool of this name.
    #[track_caller]
    pub(crate) fn has(&mut self, tool: &str) -> bool {
        self.tools().iter().any(|name| name == tool)
    }

    /// Waits to be told that the tools have changed.
    #[track_caller]
    pub(crate) fn told(&mut self) {
        self.hear(|message| message["method"] == "notifications/tools/list_changed");
    }

    /// Whether something was told that has not been waited for.
    pub(crate) fn is_told(&self) -> bool {
        self.heard.iter().any(|message| message["method"] == "notifications/tools/list_changed")
    }

    /// Waits until a tool is there.
    #[track_caller]
    pub(crate) fn appears(&mut self, tool: &str) {
        self.until(|scene| scene.has(tool), tool);
    }

    /// Waits until a tool is gone.
    #[track_caller]
    pub(crate) fn vanishes(&mut self, tool: &str) {
        self.until(|scene| !scene.has(tool), tool);
    }

    #[track_caller]
    fn until(&mut self, reached: impl Fn(&mut Self) -> bool, tool: &str) {
        let start = Instant::now();
        while !reached(self) {
            assert!(start.elapsed() < LIMIT, "`{tool}`");
            self.told();
        }
    }

    #[track_caller]
    fn hear(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.heard.iter().position(&wanted) {
            return self.heard.remove(place).unwrap();
        }
        loop {
            let message = self.gateway.hear();
            if wanted(&message) {
                return message;
            }
            self.heard.push_back(message);
        }
    }
}

/// The ids of the fixtures that run with this word on their command line.
pub(crate) fn fixtures(world: &World, mark: &str) -> Vec<String> {
    let all = running_in(world);
    let fixtures = all.iter().filter(|line| {
        let mut words = line.split_whitespace().skip(1);
        let program = words.next().unwrap_or_default();
        program.ends_with("capstan-fixture") && words.any(|other| other == mark)
    });
    fixtures.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Waits until so many fixtures run with this word on their command line.
#[track_caller]
pub(crate) fn until_running(world: &World, mark: &str, count: usize) {
    let reached = wait_until(|| fixtures(world, mark).len() == count, LIMIT);
    assert!(reached, "{count} with {mark}: {:#?}", running_in(world));
}

/// How many files a process has open.
pub(crate) fn open_files(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

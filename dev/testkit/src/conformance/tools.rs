//! The tools of the conformance server: how they are listed and who runs them.

use serde_json::{Map, Value, json};

use super::call::Call;
use super::message::{Fault, INVALID_PARAMS, Reply, Revision};
use super::{matrix, suite, tasks};

/// A tool as it is listed.
struct Tool {
    name: &'static str,
    /// Names and types; an argument whose name ends in `?` may be left out.
    arguments: &'static [(&'static str, &'static str)],
    /// The first revision that can express what it does.
    since: &'static str,
    task: TaskUse,
}

/// What the tool makes of a client that understands tasks, and of one that does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskUse {
    /// Never is a task.
    Never,
    /// Is a task where it may be.
    May,
    /// Cannot be run otherwise, in the modern era.
    Must,
    /// As `Must`, but asks its questions before it becomes one.
    AfterQuestions,
}

const ALWAYS: &str = "2024-11-05";
const AUDIO: &str = "2025-03-26";
const FORMS: &str = "2025-06-18";
const URLS: &str = "2025-11-25";

/// The first must be one that can be called without arguments: the suite does.
const TOOLS: [Tool; 52] = [
    Tool::new("test_simple_text", &[], ALWAYS),
    Tool::new("test_image_content", &[], ALWAYS),
    Tool::new("test_audio_content", &[], AUDIO),
    Tool::new("test_embedded_resource", &[], ALWAYS),
    Tool::new("test_multiple_content_types", &[], ALWAYS),
    Tool::new("test_tool_with_logging", &[], ALWAYS),
    Tool::new("test_error_handling", &[], ALWAYS),
    Tool::new("test_tool_with_progress", &[], ALWAYS),
    Tool::new("test_sampling", &[("prompt", "string")], ALWAYS),
    Tool::new("test_elicitation", &[("message", "string")], FORMS),
    Tool::new("test_elicitation_sep1034_defaults", &[], FORMS),
    Tool::new("test_elicitation_sep1330_enums", &[], FORMS),
    Tool::new("json_schema_2020_12_tool", &[], ALWAYS),
    Tool::new("test_reconnection", &[], ALWAYS),
    Tool::new("test_custom_header", &[], ALWAYS),
    Tool::new("test_trigger_tool_change", &[], ALWAYS),
    Tool::new("test_trigger_prompt_change", &[], ALWAYS),
    Tool::new("test_missing_capability", &[], ALWAYS),
    Tool::new("test_streaming_elicitation", &[], FORMS),
    Tool::new("test_logging_tool", &[], ALWAYS),
    Tool::new("test_input_required_result_elicitation", &[], FORMS),
    Tool::new("test_input_required_result_sampling", &[], ALWAYS),
    Tool::new("test_input_required_result_list_roots", &[], ALWAYS),
    Tool::new("test_input_required_result_request_state", &[], FORMS),
    Tool::new("test_input_required_result_multiple_inputs", &[], FORMS),
    Tool::new("test_input_required_result_multi_round", &[], FORMS),
    Tool::new("test_input_required_result_tampered_state", &[], FORMS),
    Tool::new("test_input_required_result_capabilities", &[], ALWAYS),
    Tool::new("greet", &[("name?", "string")], ALWAYS),
    Tool::new("slow_compute", &[("seconds?", "integer"), ("label?", "string")], ALWAYS)
        .task(TaskUse::May),
    Tool::new("failing_job", &[], ALWAYS).task(TaskUse::Must),
    Tool::new("protocol_error_job", &[], ALWAYS).task(TaskUse::Must),
    Tool::new("confirm_delete", &[("filename?", "string")], FORMS).task(TaskUse::May),
    Tool::new("multi_input", &[], FORMS).task(TaskUse::May),
    Tool::new("test_tool_with_task", &[], FORMS).task(TaskUse::AfterQuestions),
    Tool::new("progress", &[("steps?", "integer")], ALWAYS),
    Tool::new("wait_for_cancel", &[("tag?", "string")], ALWAYS),
    Tool::new("elicit_form", &[("message?", "string")], FORMS),
    Tool::new("elicit_url", &[("url?", "string")], URLS),
    Tool::new("url_required", &[("url?", "string")], URLS),
    Tool::new("finish_visit", &[("elicitationId", "string")], URLS),
    Tool::new("sample", &[("prompt?", "string")], ALWAYS),
    Tool::new("roots", &[], ALWAYS),
    Tool::new("several_questions", &[("count?", "integer")], FORMS),
    Tool::new("trigger_tools", &[], ALWAYS),
    Tool::new("trigger_prompts", &[], ALWAYS),
    Tool::new("trigger_resources", &[], ALWAYS),
    Tool::new("trigger_update", &[("uri?", "string")], ALWAYS),
    Tool::new("long_number", &[], ALWAYS),
    Tool::new("weird", &[], ALWAYS),
    Tool::new("echo", &[], ALWAYS),
    Tool::new("client", &[], ALWAYS),
];

pub(super) fn list(call: &Call) -> Reply {
    let known = TOOLS.iter().filter(|tool| call.revision.since(tool.since));
    let mut tools: Vec<Value> = known.map(|tool| tool.describe_in(call.revision)).collect();
    if call.server.tools.is_flipped() {
        tools.push(Tool::new("dynamic_tool", &[], ALWAYS).describe());
    }
    Reply::Result(json!({ "tools": tools }))
}

/// Serves `tools/call`, as a task where that is due.
pub(super) async fn call(call: Call) -> Reply {
    let name = call.request.text("/name");
    let tool = TOOLS.iter().find(|tool| tool.name == name && call.revision.since(tool.since));
    let task = match tool {
        Some(tool) if call.revision.is_modern() => tool.task,
        Some(tool) if tasks::wanted(&call) && tool.task == TaskUse::May => {
            let server = std::sync::Arc::clone(&call.server);
            return server.tasks.start(call);
        }
        Some(_) => TaskUse::Never,
        None if name == "dynamic_tool" && call.server.tools.is_flipped() => TaskUse::Never,
        None => return Fault::new(INVALID_PARAMS, format!("no tool `{name}`")).into(),
    };
    let may = tasks::declared(&call.capabilities);
    let server = std::sync::Arc::clone(&call.server);
    match task {
        TaskUse::Never => run(&call).await,
        TaskUse::May if !may => run(&call).await,
        TaskUse::Must | TaskUse::AfterQuestions if !may => tasks::needed().into(),
        TaskUse::May | TaskUse::Must => server.tasks.start(call),
        TaskUse::AfterQuestions => match run(&call).await {
            reply @ Reply::Result(_) => server.tasks.ended(&server, reply),
            reply @ (Reply::Raw(_) | Reply::Special(_) | Reply::Fault(_) | Reply::Silence) => reply,
        },
    }
}

/// Does what the tool does.
pub(super) async fn run(call: &Call) -> Reply {
    let known = match suite::run(call).await {
        Ok(None) => matrix::run(call).await,
        known @ (Ok(Some(_)) | Err(_)) => known,
    };
    match known {
        Ok(Some(reply)) | Err(reply) => reply,
        Ok(None) => Reply::text(format!("{} ran", call.request.text("/name"))),
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(name: &str) -> Option<Value> {
    TOOLS.iter().find(|tool| tool.name == name).map(Tool::schema)
}

// === impl Tool ===

impl Tool {
    const fn new(
        name: &'static str,
        arguments: &'static [(&'static str, &'static str)],
        since: &'static str,
    ) -> Self {
        Self { name, arguments, since, task: TaskUse::Never }
    }

    const fn task(mut self, task: TaskUse) -> Self {
        self.task = task;
        self
    }

    fn describe(&self) -> Value {
        json!({
            "name": self.name,
            "description": format!("The tool {}, for tests", self.name),
            "inputSchema": self.schema(),
        })
    }

    /// In 2025-11-25 a tool says that it can be a task; in the modern era the server decides.
    fn describe_in(&self, revision: Revision) -> Value {
        let mut tool = self.describe();
        if tasks::are_of_legacy(revision) && self.task == TaskUse::May {
            super::message::set(&mut tool, "execution", json!({ "taskSupport": "optional" }));
        }
        tool
    }

    fn schema(&self) -> Value {
        match self.name {
            "json_schema_2020_12_tool" => return suite::schema_2020_12(),
            "test_custom_header" => return suite::schema_with_headers(),
            _ => {}
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, kind) in self.arguments {
            let bare = name.trim_end_matches('?');
            properties.insert(bare.to_owned(), json!({ "type": kind }));
            if bare == *name {
                required.push(bare);
            }
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            super::message::set(&mut schema, "required", json!(required));
        }
        schema
    }
}

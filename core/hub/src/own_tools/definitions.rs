//! The definitions of Capstan's own tools. They are short: a client has them instead of all others.

use capstan_model::CallTools;
use capstan_wire::Json;

use super::OwnTool;

const SEARCH: &str = r#"{"name":"search_tools","title":"Search tools","description":"Finds tools by what they do. Most tools are not in your list, so search before you say that something cannot be done. Write one short query for each step of the task. Returns names, arguments and purposes of the tools that fit.","inputSchema":{"type":"object","properties":{"queries":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":8,"description":"Such as [\"create an issue\", \"list open pull requests\"]"},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"Maximum number of tools"}},"required":["queries"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

const DESCRIBE: &str = r#"{"name":"describe_tool","title":"Describe a tool","description":"Returns the full definition of a tool, with the schema of its arguments.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name that search_tools returned"}},"required":["name"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

const CALL: &str = r#"{"name":"call_tool","title":"Call a tool","description":"Calls a tool that search_tools found, and returns its result.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name that search_tools returned"},"arguments":{"type":"object","description":"The arguments of the tool"}},"required":["name"]},"execution":{"taskSupport":"optional"}}"#;

const CALL_READ: &str = r#"{"name":"call_read_tool","title":"Call a tool that only reads","description":"Calls a tool that search_tools marks with [read], and returns its result.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name that search_tools returned"},"arguments":{"type":"object","description":"The arguments of the tool"}},"required":["name"]},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}}"#;

const CALL_WRITE: &str = r#"{"name":"call_write_tool","title":"Call a tool that may change something","description":"Calls a tool that search_tools marks with [write], and returns its result.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name that search_tools returned"},"arguments":{"type":"object","description":"The arguments of the tool"}},"required":["name"]},"annotations":{"readOnlyHint":false,"destructiveHint":true},"execution":{"taskSupport":"optional"}}"#;

/// The definitions that a client gets.
pub fn definitions(calls: CallTools) -> Vec<Json> {
    let text = |tool: &OwnTool| match tool {
        OwnTool::Search => SEARCH,
        OwnTool::Describe => DESCRIBE,
        OwnTool::Call => CALL,
        OwnTool::CallRead => CALL_READ,
        OwnTool::CallWrite => CALL_WRITE,
    };
    // A test parses each of them.
    OwnTool::offered(calls).iter().filter_map(|tool| Json::parse(text(tool)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use capstan_wire::object;

    use super::*;
    use crate::catalog::InputSchema;
    use crate::own_tools::own_cost;

    #[test]
    fn each_tool_has_a_definition_and_together_they_are_small() {
        for calls in [CallTools::One, CallTools::ByEffect] {
            let defined = definitions(calls);
            let named: Vec<String> =
                defined.iter().filter_map(|tool| object::get_string(tool, "name")).collect();
            let expected: Vec<&str> =
                OwnTool::offered(calls).iter().map(|tool| tool.name()).collect();
            assert_eq!(named, expected);
            for tool in &defined {
                let schema = object::get(tool, "inputSchema").unwrap();
                assert!(InputSchema::compile(&schema).is_ok(), "{tool}");
            }
            assert!(own_cost(calls) < 900, "{calls:?}: {}", own_cost(calls));
        }
    }
}

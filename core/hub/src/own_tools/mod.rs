//! Capstan's own tools, which a client may get instead of all tools: they find, describe and call
//! the others.
//!
//! `definitions` has their definitions, `offer` decides who gets them, `found` writes the results of
//! a search. The first step of the pipeline replaces a call of `call_tool` by a call of the tool that
//! it names, so that every further step and the audit log see that tool.

mod definitions;
mod found;
mod offer;

use capstan_model::{CallError, CallTools, Kind, Target};
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{Json, compose, object};

pub use definitions::definitions;
pub use found::{describe, search};
pub use offer::{ToolOffer, own_cost};

use crate::Call;

/// The members of the arguments of a tool that calls others.
const CALL_ARGUMENTS: &[&str] = &["name", "arguments"];

/// One of Capstan's own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTool {
    /// `search_tools` finds tools by what they do.
    Search,
    /// `describe_tool` returns the definition of a tool.
    Describe,
    /// `call_tool` calls any tool.
    Call,
    /// `call_read_tool` calls a tool that only reads.
    CallRead,
    /// `call_write_tool` calls any tool, for clients that ask their user by tool name.
    CallWrite,
}

/// The effects that a called tool may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effects {
    /// Any.
    #[default]
    Any,
    /// It must be known to only read.
    ReadOnly,
}

// === impl OwnTool ===

impl OwnTool {
    const ALL: [Self; 5] =
        [Self::Search, Self::Describe, Self::Call, Self::CallRead, Self::CallWrite];

    /// The name, which does not depend on how tools of servers are named.
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Describe => "describe_tool",
            Self::Call => "call_tool",
            Self::CallRead => "call_read_tool",
            Self::CallWrite => "call_write_tool",
        }
    }

    /// The own tools that a client gets, in the order of its list.
    pub fn offered(calls: CallTools) -> &'static [Self] {
        match calls {
            CallTools::One => &[Self::Search, Self::Describe, Self::Call],
            CallTools::ByEffect => &[Self::Search, Self::Describe, Self::CallRead, Self::CallWrite],
        }
    }

    /// True if one of them has this name.
    pub fn has_name(name: &str) -> bool {
        Self::ALL.iter().any(|tool| tool.name() == name)
    }

    /// The own tool that a client with these tools means.
    pub fn of(calls: CallTools, target: &Target) -> Option<Self> {
        let is_meant = target.kind == Kind::Tool && target.server.is_none();
        let mut offered = Self::offered(calls).iter().copied();
        offered.find(|tool| is_meant && tool.name() == target.name)
    }

    /// The effects that a tool called by this one may have; `None` if it calls none.
    pub fn calls(self) -> Option<Effects> {
        match self {
            Self::Search | Self::Describe => None,
            Self::Call | Self::CallWrite => Some(Effects::Any),
            Self::CallRead => Some(Effects::ReadOnly),
        }
    }
}

/// Returns the call that a call of `call_tool` stands for. Everything but the name and the arguments
/// stays: metadata, a task, answers to questions.
///
/// # Errors
/// When the arguments name no tool, or could be read in two ways.
pub fn called(call: Call) -> Result<Call, CallError> {
    let own = call.target.name.clone();
    let invalid = |problem: String| CallError::InvalidArguments { item: own.clone(), problem };
    let twice = |json: &Json, protected| {
        refuse_duplicates(json, protected).map_err(|problem| invalid(problem.to_string()))
    };
    twice(&call.params, CALL_ARGUMENTS)?;
    let given = call.arguments();
    twice(&given, CALL_ARGUMENTS)?;
    let members = object::members(&given);
    let members = members.map_err(|_| invalid("`arguments` must be an object".to_owned()))?;
    if let Some((other, _)) = members.iter().find(|(key, _)| !CALL_ARGUMENTS.contains(&&**key)) {
        let other: String = other.chars().take(64).collect();
        let problem = format!(
            "`{other}` is no argument of `{own}`; the arguments of the tool belong into `arguments`"
        );
        return Err(invalid(problem));
    }
    let Some(name) = object::get_string(&given, "name").filter(|name| !name.is_empty()) else {
        return Err(invalid("`name` must be the name of a tool".to_owned()));
    };
    let arguments = match object::get(&given, "arguments") {
        Some(arguments) if arguments.as_bytes().starts_with(b"{") => arguments,
        Some(null) if null.as_bytes() == b"null" => Json::empty_object(),
        None => Json::empty_object(),
        Some(_) => return Err(invalid("`arguments` of the tool must be an object".to_owned())),
    };
    let Call { caller, params, part, .. } = call;
    let params = object::set_member(params, "name", &compose::string(&name))
        .and_then(|params| object::set_member(params, "arguments", &arguments));
    let params = params.map_err(|_| invalid("the params are not an object".to_owned()))?;
    Ok(Call { caller, target: Target::tool(name), params, part })
}

/// The name of the tool that a call of `call_tool` is about, for error messages.
pub fn called_name(params: &Json) -> Option<String> {
    object::get_string(&object::get(params, "arguments")?, "name")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_model::Caller;

    use super::*;
    use crate::Part;

    fn call(params: &str) -> Call {
        let params = Json::parse(params.to_owned()).unwrap();
        let (caller, target) = (Arc::new(Caller::anonymous()), Target::tool("call_tool"));
        Call { caller, target, params, part: Part::First }
    }

    #[test]
    fn a_call_of_call_tool_stands_for_the_call_of_the_tool_and_the_rest_stays() {
        let given = r#"{"name":"call_tool","_meta":{"progressToken": 1.0},"task":{"ttl":1},"arguments":{"arguments":{"x": 1.00},"name":"s__t"}}"#;
        let real = called(call(given)).unwrap();
        assert_eq!(real.target, Target::tool("s__t"));
        let expected = r#"{"name":"s__t","_meta":{"progressToken": 1.0},"task":{"ttl":1},"arguments":{"x": 1.00}}"#;
        assert_eq!(real.params.as_str(), expected);
        for without in [r#"{"name":"s__t"}"#, r#"{"name":"s__t","arguments":null}"#] {
            let real = called(call(&format!(r#"{{"name":"x","arguments":{without}}}"#))).unwrap();
            assert_eq!(real.params.as_str(), r#"{"name":"s__t","arguments":{}}"#);
        }
    }

    #[test]
    fn arguments_that_name_no_tool_or_can_be_read_in_two_ways_are_refused() {
        for arguments in [
            "{}",
            "[]",
            r#""s__t""#,
            r#"{"name":""}"#,
            r#"{"name":1}"#,
            r#"{"Name":"s__t"}"#,
            r#"{"name":"s__t","name":"s__u"}"#,
            r#"{"name":"s__t","NAME":"s__u"}"#,
            r#"{"name":"s__t","arguments":{},"arguments":{"a":1}}"#,
            r#"{"name":"s__t","arguments":{"a":1,"a":2}}"#,
            r#"{"name":"s__t","arguments":[]}"#,
            r#"{"name":"s__t","arguments":"{}"}"#,
            r#"{"name":"s__t","x":1}"#,
        ] {
            let refused = called(call(&format!(r#"{{"name":"x","arguments":{arguments}}}"#)));
            assert!(matches!(refused, Err(CallError::InvalidArguments { .. })), "{arguments}");
        }
        let twice = r#"{"name":"x","arguments":{"name":"a"},"arguments":{"name":"b"}}"#;
        assert!(called(call(twice)).is_err());
    }

    #[test]
    fn own_tools_are_meant_only_by_clients_that_have_them() {
        let (one, two) = (CallTools::One, CallTools::ByEffect);
        let tool = Target::tool;
        assert_eq!(OwnTool::of(one, &tool("call_tool")), Some(OwnTool::Call));
        assert_eq!(OwnTool::of(two, &tool("call_read_tool")), Some(OwnTool::CallRead));
        for (calls, target) in [
            (two, tool("call_tool")),
            (one, tool("call_read_tool")),
            (one, tool("call_write_tool")),
            (one, tool("Search_tools")),
            (one, Target::prompt("search_tools")),
            (one, Target { server: "s".parse().ok(), ..tool("search_tools") }),
        ] {
            assert_eq!(OwnTool::of(calls, &target), None, "{target:?}");
        }
    }
}

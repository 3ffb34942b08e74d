//! The tables of a file that do not belong to one server.

use std::time::Duration;

use capstan_model::Verdict;
use capstan_policy::DefaultRule;

use crate::fields::{Fields, Words};
use crate::refuse::{self, In};
use crate::settings::Rate;
use crate::settings::rule::{Reach, Rules, Subject};
use crate::show;
use crate::source::Origin;
use crate::source::expand::MissingEnv;

use super::access::AccessPart;
use super::audit::AuditTable;
use super::authorization::AuthorizationPart;
use super::gateway::GatewayTable;
use super::rates;

/// What the tables of one file say.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// How far what the file loosens reaches.
    pub(crate) reach: Reach,
    pub(crate) rules: Rules,
    pub(crate) default: Option<Setting<DefaultRule>>,
    pub(crate) policy: Rules,
    pub(crate) authorization: AuthorizationPart,
    pub(crate) access: AccessPart,
    pub(crate) max_tool_calls: Option<Setting<u32>>,
    pub(crate) allowed_commands: Option<Setting<Vec<String>>>,
    pub(crate) max_dynamic_servers: Option<Setting<u32>>,
    pub(crate) elicitation_enabled: Option<Setting<bool>>,
    pub(crate) elicitation_timeout: Option<Setting<Duration>>,
    pub(crate) elicitation_queue: Option<Setting<u32>>,
    pub(crate) rates: Vec<Rate>,
    pub(crate) audit: AuditTable,
    pub(crate) max_answer: Option<Setting<u64>>,
    pub(crate) gateway: GatewayTable,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    /// The value as it may be shown.
    pub(crate) shown: String,
    pub(crate) origin: Origin,
}

const DEFAULTS: Words<DefaultRule> = &[
    ("ask", DefaultRule::Always(Verdict::Ask)),
    ("ask-writes", DefaultRule::AskWrites),
    ("allow", DefaultRule::Always(Verdict::Allow)),
    ("deny", DefaultRule::Always(Verdict::Deny)),
];

const MISSING: Words<MissingEnv> = &[("error", MissingEnv::Error), ("empty", MissingEnv::Empty)];

/// Reads the tables of a file; `fields` is the file itself.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Tables {
    let mut tables = Tables::default();
    refuse::check(fields, In::Top);
    if let Some(nested) = fields.nested("permissions") {
        permissions(nested, &mut tables);
    }
    if let Some(nested) = fields.nested("access") {
        tables.access = AccessPart::read(nested);
    }
    if let Some(nested) = fields.nested("tools") {
        tools(nested, &mut tables);
    }
    if let Some(nested) = fields.nested("mcp") {
        mcp(nested, &mut tables);
    }
    if let Some(nested) = fields.nested("audit") {
        tables.audit = AuditTable::read(nested);
    }
    if let Some(mut nested) = fields.nested("screen") {
        refuse::check(&mut nested, In::Screen);
        let max_answer = nested.size("max_answer");
        tables.max_answer = setting(&mut nested, "max_answer", max_answer);
        nested.finish();
    }
    if let Some(nested) = fields.nested("gateway") {
        tables.gateway = GatewayTable::read(nested);
    }
    tables
}

fn permissions(mut fields: Fields<'_, '_>, tables: &mut Tables) {
    tables.rules = Rules::read(&mut fields, Subject::ToolsAndQuestions);
    let default = fields.word("default", DEFAULTS);
    tables.default = setting(&mut fields, "default", default);
    fields.finish();
}

fn tools(mut fields: Fields<'_, '_>, tables: &mut Tables) {
    let max = fields.count("max_tool_calls_per_session");
    tables.max_tool_calls = setting(&mut fields, "max_tool_calls_per_session", max);
    if let Some(mut nested) = fields.nested("policy") {
        tables.policy = Rules::read(&mut nested, Subject::Tools);
        nested.finish();
    }
    if let Some(nested) = fields.nested("authorization") {
        tables.authorization = AuthorizationPart::read(nested);
    }
    tables.rates = rates::read(&mut fields);
    fields.finish();
}

fn mcp(mut fields: Fields<'_, '_>, tables: &mut Tables) {
    // Known here; what it says is looked up before variables are replaced.
    fields.word("missing_env", MISSING);
    let commands = fields.strings("allowed_commands");
    tables.allowed_commands = setting(&mut fields, "allowed_commands", commands);
    let max = fields.count("max_dynamic_servers");
    tables.max_dynamic_servers = setting(&mut fields, "max_dynamic_servers", max);
    let enabled = fields.flag("elicitation_enabled");
    tables.elicitation_enabled = setting(&mut fields, "elicitation_enabled", enabled);
    let timeout = fields.limit("elicitation_timeout");
    tables.elicitation_timeout = setting(&mut fields, "elicitation_timeout", timeout);
    let queue = fields.count("elicitation_queue");
    tables.elicitation_queue = setting(&mut fields, "elicitation_queue", queue);
    fields.finish();
}

pub(super) fn setting<T>(
    fields: &mut Fields<'_, '_>,
    key: &str,
    value: Option<T>,
) -> Option<Setting<T>> {
    let entry = fields.peek(key)?;
    let origin = fields.report().file.origin(&entry.key);
    Some(Setting { value: value?, shown: show::leaf(key, &entry.node), origin })
}

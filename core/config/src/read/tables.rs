//! Reads the tables of a file that do not belong to one server.

use capstan_model::Verdict;
use capstan_policy::DefaultRule;

use crate::fields::{Fields, Words};
use crate::settings::access::AccessPart;
use crate::settings::authorization::AuthorizationPart;
use crate::settings::form::{OneOf, Setting};
use crate::settings::gateway::GatewayPart;
use crate::settings::rate::{self, RateSetting};
use crate::settings::rule::{Reach, Rules, Subject};
use crate::settings::{audit, flows, mcp, model, screen, search, tools};
use crate::source::expand::MissingEnv;

/// The tables of one file.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// The servers to which the file's loosening rules apply.
    pub(crate) reach: Reach,
    pub(crate) rules: Rules,
    pub(crate) default: Option<Setting<DefaultRule>>,
    pub(crate) policy: Rules,
    pub(crate) authorization: AuthorizationPart,
    pub(crate) access: AccessPart,
    pub(crate) tools: tools::InFile,
    pub(crate) rates: Vec<RateSetting>,
    pub(crate) allowed_commands: Option<Setting<Vec<String>>>,
    pub(crate) mcp: mcp::InFile,
    pub(crate) audit: audit::InFile,
    pub(crate) screen: screen::InFile,
    pub(crate) flows: flows::InFile,
    pub(crate) search: search::InFile,
    pub(crate) gateway: GatewayPart,
    pub(crate) model: model::InFile,
}

impl OneOf for DefaultRule {
    const WORDS: Words<Self> = &[
        ("ask", Self::Always(Verdict::Ask)),
        ("ask-writes", Self::AskWrites),
        ("allow", Self::Always(Verdict::Allow)),
        ("deny", Self::Always(Verdict::Deny)),
    ];
}

/// Reads the tables of a file; `fields` is the file itself.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Tables {
    let mut tables = Tables::default();
    if let Some(mut nested) = fields.nested("permissions") {
        tables.rules = Rules::read(&mut nested, Subject::ToolsAndQuestions);
        tables.default = Setting::read::<DefaultRule>(&mut nested, "default");
        nested.finish();
    }
    if let Some(nested) = fields.nested("access") {
        tables.access = AccessPart::read(nested);
    }
    if let Some(nested) = fields.nested("tools") {
        tools(nested, &mut tables);
    }
    if let Some(mut nested) = fields.nested("mcp") {
        // `missing_env` is only checked here; its value is needed before variables are replaced.
        nested.word("missing_env", MissingEnv::WORDS);
        tables.allowed_commands = Setting::read::<Vec<String>>(&mut nested, "allowed_commands");
        tables.mcp = mcp::InFile::read(&mut nested);
        nested.finish();
    }
    if let Some(nested) = fields.nested("audit") {
        tables.audit = audit::InFile::checked(nested);
    }
    if let Some(mut nested) = fields.nested("screen") {
        tables.screen = screen::InFile::read(&mut nested);
        nested.finish();
    }
    if let Some(mut nested) = fields.nested("flows") {
        tables.flows = flows::InFile::read(&mut nested);
        nested.finish();
    }
    if let Some(nested) = fields.nested("search") {
        tables.search = search::InFile::checked(nested);
    }
    if let Some(nested) = fields.nested("gateway") {
        tables.gateway = GatewayPart::read(nested);
    }
    if let Some(nested) = fields.nested("model") {
        tables.model = model::InFile::checked(nested);
    }
    tables
}

fn tools(mut fields: Fields<'_, '_>, tables: &mut Tables) {
    tables.tools = tools::InFile::read(&mut fields);
    if let Some(mut nested) = fields.nested("policy") {
        tables.policy = Rules::read(&mut nested, Subject::Tools);
        nested.finish();
    }
    if let Some(nested) = fields.nested("authorization") {
        tables.authorization = AuthorizationPart::read(nested);
    }
    tables.rates = rate::read(&mut fields);
    fields.finish();
}

//! The shape of access and authorization in a native file, for its schema and its reference page.
#![expect(dead_code, reason = "only the schemas of these types are used")]

use indexmap::IndexMap;
use schemars::JsonSchema;

/// Who of many callers may do what at `capstan serve --http`; a project file has no say in it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Access {
    /// What is said where no grant and no rule speaks.
    #[schemars(extend("default" = "allow"))]
    default: Says,
    /// Whether a tool of which nobody knows what it does is out of reach for everybody.
    #[schemars(extend("default" = false))]
    strict: bool,
    /// Grants by the name of a role.
    #[schemars(title = "table of lists of grants")]
    roles: IndexMap<String, Vec<Grant>>,
    /// Callers by name: their roles, beside those they come with, and grants of their own under `extra`.
    #[schemars(title = "table of subjects")]
    subjects: IndexMap<String, Subject>,
    /// The older form, which excludes roles and subjects: the first rule that speaks of caller and tool decides.
    #[schemars(title = "list of access rules")]
    rules: Vec<AccessRule>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum Says {
    Allow,
    Deny,
}

/// What a role or a caller may do, or may not.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Grant {
    /// The server, or several; `*` matches anything.
    server: OneOrMore,
    /// What it may do: `read`, `write` (which is not `read`), or both.
    access: AccessTo,
    /// The only tools it speaks of; unset, all.
    tools: Vec<String>,
    /// The only resources it speaks of; unset, all, or none where `tools` is set.
    resources: Vec<String>,
    /// The only prompts it speaks of; unset, all, or none where `tools` is set.
    prompts: Vec<String>,
    /// Whether it takes away instead: that wins over whatever else the caller has.
    #[schemars(extend("default" = false))]
    deny: bool,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(JsonSchema)]
pub(crate) enum AccessTo {
    #[schemars(rename = "read")]
    Read,
    #[schemars(rename = "write")]
    Write,
    #[schemars(rename = "*")]
    All,
}

/// What a caller has.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Subject {
    /// Its roles.
    roles: Vec<String>,
    /// Grants of its own.
    extra: Vec<Grant>,
}

/// A rule of the older form.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AccessRule {
    /// Whom it speaks of; unset or `*`, everybody.
    subjects: Vec<String>,
    /// Of which roles; unset or `*`, all.
    roles: Vec<String>,
    /// Of which tools.
    tools: Vec<String>,
    /// What it says.
    policy: Says,
}

/// Ordered rules that come behind `tools.policy`: the first that speaks of a tool decides.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Authorization {
    /// Whether they count.
    #[schemars(extend("default" = false))]
    enabled: bool,
    /// The rules: each has an `action` (`allow`, `ask`, `deny`), `tools`, and a `comment` for whoever is refused.
    #[schemars(title = "list of rules")]
    rules: Vec<AuthorizationRule>,
}

/// One of them.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AuthorizationRule {
    /// What it says.
    action: Action,
    /// Of which tools, as patterns.
    tools: Vec<String>,
    /// What whoever is refused is told.
    comment: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum Action {
    Allow,
    Ask,
    Deny,
}

//! The parts of access rules: grants, rules of the older form, and the question put to them.

use capstan_model::{By, Caller, Effect, ItemId, Kind, Ruling, Verdict};

use crate::glob::Glob;

/// Rights that a role or a caller is given or denied.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The servers.
    pub servers: Vec<Glob>,
    /// The kind of access.
    pub access: AccessTo,
    /// The tools; `None` for all.
    pub tools: Option<Vec<Glob>>,
    /// The resources; `None` for all, or for none if only tools are listed.
    pub resources: Option<Vec<Glob>>,
    /// The prompts; `None` for all, or for none if only tools are listed.
    pub prompts: Option<Vec<Glob>>,
    /// Allow or deny.
    pub says: Says,
}

/// A rule of the older form.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// The subjects; empty or `*` for all.
    pub subjects: Vec<String>,
    /// The roles; empty or `*` for all.
    pub roles: Vec<String>,
    /// The tools.
    pub tools: Vec<Glob>,
    /// Allow or deny.
    pub says: Says,
}

/// The access that a grant covers. Write access does not include read access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTo {
    /// Items that change nothing: tools that read, resources, prompts.
    Read,
    /// Items that change something, or may do so.
    Write,
    /// Both.
    All,
}

/// The verdict of an access rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Says {
    /// Allows the call.
    #[default]
    Allow,
    /// Denies the call.
    Deny,
}

/// The treatment of tools with an unknown effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// They count as tools that write.
    #[default]
    Usual,
    /// They are denied to all callers.
    Strict,
}

/// A question to the access rules.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The item.
    pub id: &'a ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The effect of the item.
    pub effect: Effect,
    /// Every spelling of the item.
    pub names: &'a [String],
}

// === impl Wanted ===

impl Wanted<'_> {
    pub(crate) fn need(&self) -> Effect {
        match self.kind {
            Kind::Tool => self.effect,
            // Reading a resource or filling in a prompt changes nothing by its nature.
            Kind::Resource | Kind::Prompt => Effect::Read,
        }
    }
}

// === impl Grant ===

impl Grant {
    /// True if it covers the effect that a call has.
    ///
    /// An unknown effect counts as a write; under strict rules no grant allows it and every denying
    /// grant denies it.
    pub(crate) fn covers(&self, need: Effect, strictness: Strictness) -> bool {
        match (self.access, need) {
            (_, Effect::Unknown) if strictness == Strictness::Strict => self.says == Says::Deny,
            (AccessTo::All, _)
            | (AccessTo::Read, Effect::Read)
            | (AccessTo::Write, Effect::Write | Effect::Unknown) => true,
            (AccessTo::Read, Effect::Write | Effect::Unknown) | (AccessTo::Write, Effect::Read) => {
                false
            }
        }
    }

    /// True if it matches the item.
    pub(crate) fn means(&self, wanted: &Wanted<'_>) -> bool {
        let list = match wanted.kind {
            Kind::Tool => &self.tools,
            Kind::Resource => &self.resources,
            Kind::Prompt => &self.prompts,
        };
        match (list, wanted.kind) {
            (Some(globs), Kind::Resource) => globs.iter().any(|it| it.is_match(&wanted.id.item)),
            (Some(globs), Kind::Tool | Kind::Prompt) => globs.iter().any(|it| names(it, wanted)),
            (None, Kind::Tool) => true,
            // A grant that lists tools does not include other kinds.
            (None, Kind::Resource | Kind::Prompt) => self.tools.is_none(),
        }
    }

    /// True if it matches every tool, resource and prompt of its servers.
    pub(crate) fn means_all(&self) -> bool {
        let is_bare = self.tools.is_none();
        has_star(self.tools.as_ref()).unwrap_or(true)
            && has_star(self.resources.as_ref()).unwrap_or(is_bare)
            && has_star(self.prompts.as_ref()).unwrap_or(is_bare)
    }
}

/// True if a list has a glob that matches every name.
fn has_star(list: Option<&Vec<Glob>>) -> Option<bool> {
    list.map(|globs| globs.iter().any(|glob| glob.as_str() == "*"))
}

/// True if a glob matches an item, by the bare name or by a spelling with its server.
///
/// For a spelling with the server, the glob must begin with that prefix literally.
fn names(glob: &Glob, wanted: &Wanted<'_>) -> bool {
    let item = wanted.id.item.as_str();
    let spelt = |name: &String| {
        let server = name.strip_suffix(item).filter(|server| !server.is_empty());
        server.is_some_and(|server| glob.as_str().starts_with(server)) && glob.is_match(name)
    };
    glob.is_match(item) || wanted.names.iter().any(spelt)
}

// === impl AccessRule ===

impl AccessRule {
    /// True if it matches this caller: its subject and one of its roles.
    pub(crate) fn binds(&self, caller: &Caller) -> bool {
        let any = |list: &[String]| list.is_empty() || list.iter().any(|name| name == "*");
        let subject = any(&self.subjects) || self.subjects.contains(&caller.subject);
        subject && (any(&self.roles) || self.roles.iter().any(|role| caller.roles.contains(role)))
    }
}

// === impl Says ===

impl Says {
    /// Converts it to a verdict.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Deny => Verdict::Deny,
        }
    }

    pub(crate) fn ruling(self, rule: String) -> Ruling {
        Ruling { verdict: self.verdict(), rule, by: By::Rule }
    }
}

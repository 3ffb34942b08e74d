//! What access rules are made of: grants, rules of the older form, and the question put to them.

use capstan_model::{By, Caller, Effect, ItemId, Kind, Ruling, Verdict};

use crate::glob::Glob;

/// What a role or a caller may do, or may not.
#[derive(Clone, Debug)]
pub struct Grant {
    /// With which servers.
    pub servers: Vec<Glob>,
    /// What it may do there.
    pub access: AccessTo,
    /// With which tools; `None` for all.
    pub tools: Option<Vec<Glob>>,
    /// With which resources; `None` for all, or for none where only tools are listed.
    pub resources: Option<Vec<Glob>>,
    /// With which prompts; `None` for all, or for none where only tools are listed.
    pub prompts: Option<Vec<Glob>>,
    /// Whether it gives or takes away.
    pub says: Says,
}

/// A rule of the older form.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Whom it speaks of; empty or `*` for everybody.
    pub subjects: Vec<String>,
    /// Of which roles; empty or `*` for all.
    pub roles: Vec<String>,
    /// Of which tools.
    pub tools: Vec<Glob>,
    /// What it says.
    pub says: Says,
}

/// What a grant is about. To write is not to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTo {
    /// What changes nothing: tools that read, resources, prompts.
    Read,
    /// What changes something, or perhaps so.
    Write,
    /// Both.
    All,
}

/// What access rules can say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Says {
    /// Nothing against it.
    #[default]
    Allow,
    /// No.
    Deny,
}

/// What becomes of a tool of which nobody knows what it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// It counts as one that writes.
    #[default]
    Usual,
    /// It is out of reach for everybody.
    Strict,
}

/// A question to the access rules.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// For what.
    pub id: &'a ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// What it does.
    pub effect: Effect,
    /// Every spelling of the item.
    pub names: &'a [String],
}

// === impl Wanted ===

impl Wanted<'_> {
    pub(crate) fn need(&self) -> Effect {
        match self.kind {
            Kind::Tool => self.effect,
            // Reading a resource and filling in a prompt change nothing by their nature.
            Kind::Resource | Kind::Prompt => Effect::Read,
        }
    }
}

// === impl Grant ===

impl Grant {
    /// Whether it is about what a call needs. Where nobody knows what that is, it counts as a
    /// write; under strict rules no grant gives it and every one that denies takes it.
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

    /// Whether it speaks of the item.
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
            // One who lists tools has not thought of the rest.
            (None, Kind::Resource | Kind::Prompt) => self.tools.is_none(),
        }
    }

    /// Whether it speaks of every tool, resource and prompt of its servers.
    pub(crate) fn means_all(&self) -> bool {
        let is_bare = self.tools.is_none();
        has_star(self.tools.as_ref()).unwrap_or(true)
            && has_star(self.resources.as_ref()).unwrap_or(is_bare)
            && has_star(self.prompts.as_ref()).unwrap_or(is_bare)
    }
}

/// Whether a list has a glob that matches every name.
fn has_star(list: Option<&Vec<Glob>>) -> Option<bool> {
    list.map(|globs| globs.iter().any(|glob| glob.as_str() == "*"))
}

/// Whether a glob means an item of a server that it need not name: by the bare name, or by a
/// spelling that it begins with the server of.
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
    /// Whether it speaks of this caller: of its subject and of one of its roles.
    pub(crate) fn binds(&self, caller: &Caller) -> bool {
        let any = |list: &[String]| list.is_empty() || list.iter().any(|name| name == "*");
        let subject = any(&self.subjects) || self.subjects.contains(&caller.subject);
        subject && (any(&self.roles) || self.roles.iter().any(|role| caller.roles.contains(role)))
    }
}

// === impl Says ===

impl Says {
    /// The same as a verdict.
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

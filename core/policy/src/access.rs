//! Who of many callers may do what: roles, subjects, grants, and the older ordered rules.
//!
//! It binds callers who come over the network, and only ever takes away: what it allows, the other
//! engines still look at.

use std::collections::HashMap;
use std::fmt;

use capstan_model::{By, Caller, Effect, ItemId, Kind, Ruling, ServerName, Verdict};

use crate::glob::Glob;
use crate::hash::Quick;

/// One table of access rules, as it is written.
#[derive(Clone, Debug, Default)]
pub struct AccessTable {
    /// What is said where nothing else speaks.
    pub default: Says,
    /// What becomes of a tool of which nobody knows what it does.
    pub strictness: Strictness,
    /// Grants by role.
    pub roles: Vec<(String, Vec<Grant>)>,
    /// What single callers have.
    pub subjects: Vec<(String, Subject)>,
    /// The older form, of which the first rule that speaks decides.
    pub rules: Vec<AccessRule>,
}

/// What one caller has.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Its roles, beside those that it comes with.
    pub roles: Vec<String>,
    /// Grants of its own.
    pub extra: Vec<Grant>,
}

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

/// A table ready to decide.
#[derive(Clone, Debug)]
pub struct Access {
    default: Says,
    strictness: Strictness,
    grants: Vec<Placed>,
    roles: HashMap<String, Vec<usize>, Quick>,
    subjects: HashMap<String, Held, Quick>,
    rules: Vec<AccessRule>,
    /// Of each server, the grants that can speak of it.
    near: HashMap<ServerName, Near>,
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

#[derive(Clone, Debug)]
struct Placed {
    grant: Grant,
    /// For example `access.roles.dev[0]`.
    place: String,
}

#[derive(Clone, Debug)]
struct Held {
    roles: Vec<String>,
    extra: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
struct Near {
    roles: HashMap<String, Vec<usize>, Quick>,
    extra: HashMap<String, Vec<usize>, Quick>,
}

/// Is told of every rule looked at, with what it says when it speaks.
type Look<'a> = &'a mut dyn FnMut(&dyn fmt::Display, Option<Verdict>);

// === impl Access ===

impl Access {
    /// Takes a table in. `servers` are all that there are, each with the operator's name for it.
    pub fn new<'a>(
        table: AccessTable,
        servers: impl IntoIterator<Item = (&'a ServerName, &'a str)>,
    ) -> Self {
        let AccessTable { default, strictness, roles, subjects, rules } = table;
        let mut access = Self {
            default,
            strictness,
            grants: Vec::new(),
            roles: HashMap::default(),
            subjects: HashMap::default(),
            rules,
            near: HashMap::new(),
        };
        for (role, grants) in roles {
            let places = access.place(&format!("access.roles.{role}"), grants);
            access.roles.insert(role, places);
        }
        for (name, Subject { roles, extra }) in subjects {
            let extra = access.place(&format!("access.subjects.{name}.extra"), extra);
            access.subjects.insert(name, Held { roles, extra });
        }
        for (server, display) in servers {
            let near = access.near(server, display);
            access.near.insert(server.clone(), near);
        }
        access
    }

    /// What is said of a call.
    pub fn rule_on(&self, wanted: &Wanted<'_>, look: Look<'_>) -> Ruling {
        let Wanted { kind, effect, .. } = *wanted;
        let need = match kind {
            Kind::Tool => effect,
            // Reading a resource and filling in a prompt change nothing by their nature.
            Kind::Resource | Kind::Prompt => Effect::Read,
        };
        let said = match self.first_rule(wanted, look) {
            Some(said) => Some(said),
            None => self.by_grants(wanted, need, look),
        };
        let unclear = self.strictness == Strictness::Strict && need == Effect::Unknown;
        match said {
            Some((says, place)) if says == Says::Deny || !unclear => says.ruling(place),
            Some(_) | None if unclear => {
                let rule = "access.strict: nobody knows what this tool does";
                look(&rule, Some(Verdict::Deny));
                Says::Deny.ruling(rule.to_owned())
            }
            Some(_) | None => {
                look(&"access.default", Some(self.default.verdict()));
                self.default.ruling("access.default".to_owned())
            }
        }
    }

    /// The refusal of whatever a server has, where nothing of it can be within a caller's reach.
    pub fn out_of_reach(&self, caller: &Caller, server: &ServerName) -> Option<Ruling> {
        if self.default == Says::Allow {
            return None;
        }
        let by_rule = |rule: &AccessRule| rule.says == Says::Allow && rule.binds(caller);
        let mut reached = self.rules.iter().any(by_rule);
        self.each_grant(caller, server, &mut |placed| {
            reached |= placed.grant.says == Says::Allow;
            Some(()).filter(|()| reached)
        });
        (!reached).then(|| Says::Deny.ruling("access.default".to_owned()))
    }

    /// The first rule of the older form that speaks of a call. They speak of tools only.
    fn first_rule(&self, wanted: &Wanted<'_>, look: Look<'_>) -> Option<(Says, String)> {
        if wanted.kind != Kind::Tool {
            return None;
        }
        self.rules.iter().enumerate().find_map(|(at, rule)| {
            let speaks = rule.binds(wanted.caller)
                && rule.tools.iter().any(|glob| wanted.names.iter().any(|it| glob.is_match(it)));
            look(&format_args!("access.rules[{at}]"), speaks.then(|| rule.says.verdict()));
            speaks.then(|| (rule.says, format!("access.rules[{at}]")))
        })
    }

    /// What the grants say: a deny wins over every allow.
    fn by_grants(
        &self,
        wanted: &Wanted<'_>,
        need: Effect,
        look: Look<'_>,
    ) -> Option<(Says, String)> {
        let mut allowed = None;
        let denied = self.each_grant(wanted.caller, &wanted.id.server, &mut |placed| {
            let Placed { grant, place } = placed;
            let speaks = grant.covers(need, self.strictness) && grant.means(wanted);
            look(place, speaks.then(|| grant.says.verdict()));
            if speaks && grant.says == Says::Allow && allowed.is_none() {
                allowed = Some((Says::Allow, place.clone()));
            }
            (speaks && grant.says == Says::Deny).then(|| (Says::Deny, place.clone()))
        });
        denied.or(allowed)
    }

    /// Shows a caller's grants for a server, until one is found that ends it: those of the roles
    /// that it comes with, of the roles that it has here, and its own.
    fn each_grant<T>(
        &self,
        caller: &Caller,
        server: &ServerName,
        see: &mut dyn FnMut(&Placed) -> Option<T>,
    ) -> Option<T> {
        let made;
        let near = if let Some(near) = self.near.get(server) {
            near
        } else {
            made = self.near(server, server.as_str());
            &made
        };
        let held = self.subjects.get(&caller.subject);
        let here = held.map_or(&[][..], |held| &held.roles);
        let here = here.iter().filter(|role| !caller.roles.contains(role));
        let of_roles = caller.roles.iter().chain(here).filter_map(|role| near.roles.get(role));
        let extra = near.extra.get(&caller.subject);
        let mut grants = of_roles.chain(extra).flatten().filter_map(|at| self.grants.get(*at));
        grants.find_map(see)
    }

    fn place(&mut self, path: &str, grants: Vec<Grant>) -> Vec<usize> {
        let first = self.grants.len();
        let placed = grants.into_iter().enumerate();
        self.grants
            .extend(placed.map(|(at, grant)| Placed { grant, place: format!("{path}[{at}]") }));
        (first..self.grants.len()).collect()
    }

    fn near(&self, server: &ServerName, display: &str) -> Near {
        let is_near = |at: &usize| {
            let globs = self.grants.get(*at).map_or(&[][..], |placed| &placed.grant.servers);
            globs.iter().any(|glob| glob.is_match(server.as_str()) || glob.is_match(display))
        };
        let some = |(name, places): (&String, &Vec<usize>)| {
            let places: Vec<usize> = places.iter().copied().filter(is_near).collect();
            (!places.is_empty()).then(|| (name.clone(), places))
        };
        Near {
            roles: self.roles.iter().filter_map(some).collect(),
            extra: self
                .subjects
                .iter()
                .filter_map(|(name, held)| some((name, &held.extra)))
                .collect(),
        }
    }
}

// === impl Grant ===

impl Grant {
    /// Whether it is about what a call needs. Where nobody knows what that is, it counts as a
    /// write; under strict rules no grant gives it and every one that denies takes it.
    fn covers(&self, need: Effect, strictness: Strictness) -> bool {
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
    fn means(&self, wanted: &Wanted<'_>) -> bool {
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
    fn binds(&self, caller: &Caller) -> bool {
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

    fn ruling(self, rule: String) -> Ruling {
        Ruling { verdict: self.verdict(), rule, by: By::Rule }
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;

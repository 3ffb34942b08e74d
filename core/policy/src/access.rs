//! Access rules for callers: roles, subjects, grants, and the older ordered rules.
//!
//! They bind callers from the network, and can only restrict: the other engines still decide on a
//! call that they allow.

use std::collections::HashMap;
use std::fmt;

use capstan_model::{Caller, Effect, Kind, Ruling, ServerName, Verdict};
use rustc_hash::FxHashMap;

pub use crate::grant::{AccessRule, AccessTo, Grant, Says, Strictness, Wanted};

/// One table of access rules, as written.
#[derive(Clone, Debug, Default)]
pub struct AccessTable {
    /// The verdict if nothing else matches.
    pub default: Says,
    /// The treatment of tools with an unknown effect.
    pub strictness: Strictness,
    /// Grants by role.
    pub roles: Vec<(String, Vec<Grant>)>,
    /// Roles and grants of single callers.
    pub subjects: Vec<(String, Subject)>,
    /// Rules of the older form; the first one that matches decides.
    pub rules: Vec<AccessRule>,
}

/// Roles and grants of one caller.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Its roles, in addition to those that it authenticates with.
    pub roles: Vec<String>,
    /// Its own grants.
    pub extra: Vec<Grant>,
}

/// A compiled table.
#[derive(Clone, Debug)]
pub struct Access {
    default: Says,
    strictness: Strictness,
    grants: Vec<LocatedGrant>,
    roles: FxHashMap<String, Vec<usize>>,
    subjects: FxHashMap<String, SubjectGrants>,
    rules: Vec<AccessRule>,
    /// The grants that can match each server.
    near: HashMap<ServerName, ServerGrants>,
}

#[derive(Clone, Debug)]
struct LocatedGrant {
    grant: Grant,
    /// For example `access.roles.dev[0]`.
    place: String,
}

#[derive(Clone, Debug)]
struct SubjectGrants {
    roles: Vec<String>,
    extra: Vec<usize>,
}

/// The grants that can match one server.
#[derive(Clone, Debug, Default)]
struct ServerGrants {
    roles: FxHashMap<String, Vec<usize>>,
    extra: FxHashMap<String, Vec<usize>>,
    /// The grants again, for reads, writes and unknown effects.
    by_need: [Sorted; 3],
}

/// Grants that cover one need.
#[derive(Clone, Debug, Default)]
struct Sorted {
    roles: FxHashMap<String, Sides>,
    extra: FxHashMap<String, Sides>,
    /// True if any of them denies. Otherwise the first that allows decides.
    denies: bool,
}

#[derive(Clone, Debug, Default)]
struct Sides {
    deny: Vec<usize>,
    allow: Vec<usize>,
}

/// The rule that strict tables cite for tools with an unknown effect.
const STRICT: &str = "access.strict: the effect of this tool is unknown";

/// Receives every rule that is consulted, with its verdict if it matches.
type Look<'a> = &'a mut dyn FnMut(&dyn fmt::Display, Option<Verdict>);

// === impl Access ===

impl Access {
    /// Compiles a table. `servers` lists all servers, each with the operator's name for it.
    pub fn new<'a>(
        table: AccessTable,
        servers: impl IntoIterator<Item = (&'a ServerName, &'a str)>,
    ) -> Self {
        let AccessTable { default, strictness, roles, subjects, rules } = table;
        let mut access = Self {
            default,
            strictness,
            grants: Vec::new(),
            roles: FxHashMap::default(),
            subjects: FxHashMap::default(),
            rules,
            near: HashMap::new(),
        };
        for (role, grants) in roles {
            let places = access.place(&format!("access.roles.{role}"), grants);
            access.roles.insert(role, places);
        }
        for (name, Subject { roles, extra }) in subjects {
            let extra = access.place(&format!("access.subjects.{name}.extra"), extra);
            access.subjects.insert(name, SubjectGrants { roles, extra });
        }
        for (server, display) in servers {
            let near = access.near(server, display);
            access.near.insert(server.clone(), near);
        }
        access
    }

    /// The refusal of a call, if it is refused.
    ///
    /// It equals the ruling of [`Self::rule_on`], but is found without consulting every grant.
    pub fn refusal(&self, wanted: &Wanted<'_>) -> Option<Ruling> {
        let near = self.near.get(&wanted.id.server).filter(|_| self.rules.is_empty());
        let Some(near) = near else {
            let ruling = self.rule_on(wanted, &mut |_, _| {});
            return (ruling.verdict == Verdict::Deny).then_some(ruling);
        };
        let need = wanted.need();
        let [read, write, unknown] = &near.by_need;
        let sorted = match need {
            Effect::Read => read,
            Effect::Write => write,
            Effect::Unknown => unknown,
        };
        let means =
            |at: &usize| self.grants.get(*at).is_some_and(|placed| placed.grant.means(wanted));
        let Caller { subject, roles, .. } = wanted.caller;
        let here = self.subjects.get(subject).map_or(&[][..], |held| &held.roles);
        let mut allowed = false;
        let own = std::slice::from_ref(subject);
        let lists =
            [(roles.as_slice(), &sorted.roles), (here, &sorted.roles), (own, &sorted.extra)];
        'all: for (names, known) in lists {
            for name in names {
                let Some(sides) = known.get(name) else { continue };
                if let Some(at) = sides.deny.iter().copied().find(means) {
                    let place = self.grants.get(at).map(|placed| placed.place.clone());
                    return Some(Says::Deny.ruling(place.unwrap_or_default()));
                }
                allowed = allowed || sides.allow.iter().any(means);
                if allowed && !sorted.denies {
                    break 'all;
                }
            }
        }
        if self.strictness == Strictness::Strict && need == Effect::Unknown {
            return Some(Says::Deny.ruling(STRICT.to_owned()));
        }
        (!allowed && self.default == Says::Deny)
            .then(|| Says::Deny.ruling("access.default".to_owned()))
    }

    /// The ruling on a call.
    pub fn rule_on(&self, wanted: &Wanted<'_>, look: Look<'_>) -> Ruling {
        let need = wanted.need();
        let said = match self.first_rule(wanted, look) {
            Some(said) => Some(said),
            None => self.by_grants(wanted, need, look),
        };
        let unclear = self.strictness == Strictness::Strict && need == Effect::Unknown;
        match said {
            Some((says, place)) if says == Says::Deny || !unclear => says.ruling(place),
            Some(_) | None if unclear => {
                look(&STRICT, Some(Verdict::Deny));
                Says::Deny.ruling(STRICT.to_owned())
            }
            Some(_) | None => {
                look(&"access.default", Some(self.default.verdict()));
                self.default.ruling("access.default".to_owned())
            }
        }
    }

    /// The refusal of every item of a server, if the caller's rules allow none of them.
    ///
    /// A rule of the older form that allows anything to the caller counts as reaching every server.
    pub fn out_of_reach(&self, caller: &Caller, server: &ServerName) -> Option<Ruling> {
        let by_rule = |rule: &AccessRule| rule.says == Says::Allow && rule.binds(caller);
        if self.rules.iter().any(by_rule) {
            return None;
        }
        let is_strict = self.strictness == Strictness::Strict;
        let needs = [Effect::Read, Effect::Write, Effect::Unknown];
        let mut allowed = needs
            .map(|need| self.default == Says::Allow && !(is_strict && need == Effect::Unknown));
        let mut denied = [false; 3];
        let mut place = None;
        self.each_grant(caller, server, &mut |placed| -> Option<()> {
            let LocatedGrant { grant, place: at } = placed;
            let marks = match grant.says {
                Says::Allow => &mut allowed,
                Says::Deny if grant.means_all() => {
                    place.get_or_insert_with(|| at.clone());
                    &mut denied
                }
                Says::Deny => return None,
            };
            for (need, mark) in needs.into_iter().zip(marks) {
                *mark |= grant.covers(need, self.strictness);
            }
            None
        });
        let is_reached =
            allowed.into_iter().zip(denied).any(|(allowed, denied)| allowed && !denied);
        let place = || place.unwrap_or_else(|| "access.default".to_owned());
        (!is_reached).then(|| Says::Deny.ruling(place()))
    }

    /// The first rule of the older form that matches a call. These rules match tools only.
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

    /// The ruling of the grants: a deny wins over every allow.
    fn by_grants(
        &self,
        wanted: &Wanted<'_>,
        need: Effect,
        look: Look<'_>,
    ) -> Option<(Says, String)> {
        let mut allowed = None;
        let denied = self.each_grant(wanted.caller, &wanted.id.server, &mut |placed| {
            let LocatedGrant { grant, place } = placed;
            let speaks = grant.covers(need, self.strictness) && grant.means(wanted);
            look(place, speaks.then(|| grant.says.verdict()));
            if speaks && grant.says == Says::Allow && allowed.is_none() {
                allowed = Some((Says::Allow, place.clone()));
            }
            (speaks && grant.says == Says::Deny).then(|| (Says::Deny, place.clone()))
        });
        denied.or(allowed)
    }

    /// Visits a caller's grants for a server until `see` returns a value.
    ///
    /// These are the grants of the roles that it authenticates with, of its roles in this table,
    /// and its own.
    fn each_grant<T>(
        &self,
        caller: &Caller,
        server: &ServerName,
        see: &mut dyn FnMut(&LocatedGrant) -> Option<T>,
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
        self.grants.extend(
            placed.map(|(at, grant)| LocatedGrant { grant, place: format!("{path}[{at}]") }),
        );
        (first..self.grants.len()).collect()
    }

    fn near(&self, server: &ServerName, display: &str) -> ServerGrants {
        let is_near = |at: &usize| {
            let globs = self.grants.get(*at).map_or(&[][..], |placed| &placed.grant.servers);
            globs.iter().any(|glob| glob.is_match(server.as_str()) || glob.is_match(display))
        };
        let some = |(name, places): (&String, &Vec<usize>)| {
            let places: Vec<usize> = places.iter().copied().filter(is_near).collect();
            (!places.is_empty()).then(|| (name.clone(), places))
        };
        let extra = self.subjects.iter();
        let extra = extra.filter_map(|(name, held)| some((name, &held.extra))).collect();
        let roles = self.roles.iter().filter_map(some).collect();
        let needs = [Effect::Read, Effect::Write, Effect::Unknown];
        let by_need = needs.map(|need| {
            let (roles, extra) = (self.sorted(&roles, need), self.sorted(&extra, need));
            let denies = roles.values().chain(extra.values()).any(|sides| !sides.deny.is_empty());
            Sorted { roles, extra, denies }
        });
        ServerGrants { roles, extra, by_need }
    }

    fn sorted(
        &self,
        all: &FxHashMap<String, Vec<usize>>,
        need: Effect,
    ) -> FxHashMap<String, Sides> {
        let sides = |places: &Vec<usize>| {
            let mut sides = Sides::default();
            for at in places {
                match self.grants.get(*at).map(|placed| &placed.grant) {
                    Some(grant) if !grant.covers(need, self.strictness) => {}
                    Some(Grant { says: Says::Deny, .. }) => sides.deny.push(*at),
                    Some(Grant { says: Says::Allow, .. }) => sides.allow.push(*at),
                    None => {}
                }
            }
            sides
        };
        let all = all.iter().map(|(name, places)| (name.clone(), sides(places)));
        all.filter(|(_, sides)| !sides.deny.is_empty() || !sides.allow.is_empty()).collect()
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "access_reach.rs"]
mod reach;

#[cfg(test)]
#[path = "access_laws.rs"]
mod laws;

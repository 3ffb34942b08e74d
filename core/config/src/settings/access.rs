//! The keys of `[access]`: permissions per caller.

use capstan_policy::Glob;
use capstan_policy::access::{AccessRule, AccessTable, AccessTo, Grant, Says, Strictness, Subject};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde_json::Value as Json;

use self::grant::GrantKeys;
use self::rule::RuleKeys;
use super::define::keys;
use super::form::{Form, OneOf, Table as Described};
use crate::fields::{Fields, Words, nearest};
use crate::show::{self, Shown};
use crate::source::expand::join;
use crate::source::problem::{Problem, Report};
use crate::source::tree::{Entry, Node, Table, Value};
use crate::source::{FilePosition, Scope};

/// The `[access]` table of one file.
#[derive(Debug, Default)]
pub(crate) struct AccessPart {
    /// The table; always `None` for a project file, which may not have one.
    pub(crate) table: Option<(AccessTable, FilePosition)>,
    /// The reason why `capstan serve --http` must not start, if any.
    pub(crate) refused: Option<Problem>,
    pub(crate) shown: Vec<Shown>,
}

keys! {
    /// Permissions per caller at `capstan serve --http`. A project file cannot set these keys.
    pub(crate) table AccessKeys
    keys {
        /// The verdict if no grant and no rule matches.
        default: Says = Says::Allow;
        /// Deny tools whose effect is unknown to all callers.
        strict: bool = false;
    }
    by_hand {
        /// Grants, by the name of a role.
        roles: IndexMap<String, Vec<<GrantKeys as Described>::Keys>> as "table of lists of grants";
        /// Callers, by name: `roles` in addition to those they present, and grants of their own under `extra`.
        subjects: IndexMap<String, SubjectSchema> as "table of subjects";
        /// The older form, which excludes `roles` and `subjects`: the first rule that matches caller and tool decides.
        rules: Vec<<RuleKeys as Described>::Keys> as "list of access rules";
    }
}

mod grant {
    use super::{AccessTo, Narrowing, OneOrMore, keys};

    keys! {
        /// A permission of a role or a caller, or its denial.
        pub(crate) table GrantKeys
        by_hand {
            /// The server, or several; `*` matches anything.
            server: OneOrMore;
        }
        keys {
            /// The effects that it permits: `read`, `write` (which does not include `read`), or both.
            access: AccessTo;
            /// The only tools that it applies to. Default: all.
            tools: Vec<String> as Narrowing;
            /// The only resources that it applies to. Default: all, or none if `tools` is set.
            resources: Vec<String> as Narrowing;
            /// The only prompts that it applies to. Default: all, or none if `tools` is set.
            prompts: Vec<String> as Narrowing;
            /// Deny instead of permit; a denial overrides all permissions of the caller.
            deny: bool = false;
        }
    }
}

mod rule {
    use super::{Says, keys};

    keys! {
        /// A rule of the older form.
        pub(crate) table RuleKeys
        keys {
            /// The callers that it applies to. Default, and `*`: all.
            subjects: Vec<String> = Vec::new();
            /// The roles that it applies to. Default, and `*`: all.
            roles: Vec<String> = Vec::new();
            /// The tools that it applies to.
            tools: Vec<String>;
            /// The verdict.
            policy: Says;
        }
    }
}

/// Roles and grants of a caller.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct SubjectSchema {
    /// The roles of the caller.
    roles: Vec<String>,
    /// Grants of the caller.
    extra: Vec<<GrantKeys as Described>::Keys>,
}

/// One server or several.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// The form of a list of names that narrows a grant; the list must not be empty.
struct Narrowing;

// === impl AccessPart ===

impl AccessPart {
    pub(crate) fn read(mut fields: Fields<'_, '_>) -> Self {
        let AccessKeys { default, strict } = AccessKeys::read(&mut fields);
        both_forms(&mut fields);
        let roles = roles(&mut fields);
        let subjects = subjects(&mut fields, &roles);
        let older = rules(&mut fields);
        let strictness = if strict { Strictness::Strict } else { Strictness::Usual };
        let table = AccessTable { default, strictness, roles, subjects, rules: older };
        let mut part = Self::default();
        if fields.report().file.scope == Scope::Project {
            part.refused = Some(refuse(&mut fields));
        } else {
            part.shown = shown(&mut fields);
            let span = fields.span();
            part.table = Some((table, fields.report().file.place(&span)));
        }
        fields.finish();
        part
    }
}

/// Refuses the `[access]` of a project file, which must not decide who may use the gateway.
///
/// The table is not silently ignored either: its author relies on it.
fn refuse(fields: &mut Fields<'_, '_>) -> Problem {
    let path = fields.path().to_owned();
    let message = format!("`{path}` is in a project file, which cannot set permissions of callers");
    let help = "`capstan serve --http` does not start with it; move it to your own configuration";
    let span = fields.span();
    fields.table_problem(Problem::warning(message.clone()).help(help));
    let place = Some(fields.report().file.place(&span));
    Problem { place, key: Some(path), ..Problem::error(message).help(help) }
}

/// Reports a table that has rules in both forms, which exclude each other.
fn both_forms(fields: &mut Fields<'_, '_>) {
    if fields.has("rules") && (fields.has("roles") || fields.has("subjects")) {
        let message = format!("`{}` has both `rules` and roles or subjects", fields.path());
        let help = "`rules` is the older form; keep `roles` and `subjects`";
        fields.problem("rules", Problem::error(message).help(help));
    }
}

fn roles(fields: &mut Fields<'_, '_>) -> Vec<(String, Vec<Grant>)> {
    let path = fields.key("roles");
    let Some(table) = map(fields, "roles") else { return Vec::new() };
    let mut roles = Vec::new();
    for (name, entry) in &table.entries {
        let grants = grants(fields.report(), &join(&path, name), &entry.node);
        roles.push((name.clone(), grants));
    }
    roles
}

fn subjects(fields: &mut Fields<'_, '_>, known: &[(String, Vec<Grant>)]) -> Vec<(String, Subject)> {
    let path = fields.key("subjects");
    let Some(table) = map(fields, "subjects") else { return Vec::new() };
    let mut subjects = Vec::new();
    for (name, entry) in &table.entries {
        let path = join(&path, name);
        let report = fields.report();
        let Some(table) = entry.node.as_table() else {
            let message = format!("`{path}` must be a table, not {}", entry.node.value.what());
            let help = "write { roles = [\"…\"], extra = [{ … }] }";
            report.add(Problem::error(message).help(help), path, &entry.node.span);
            continue;
        };
        let mut nested = Fields::new(table, path, &entry.key, report);
        let roles = held(&mut nested, known);
        let extra = match nested.entry("extra") {
            Some(entry) => {
                let path = nested.key("extra");
                grants(nested.report(), &path, &entry.node)
            }
            None => Vec::new(),
        };
        nested.finish();
        subjects.push((name.clone(), Subject { roles, extra }));
    }
    subjects
}

/// Reads the roles of a subject.
///
/// Each must be defined: a misspelt one would neither grant nor deny anything.
fn held(fields: &mut Fields<'_, '_>, known: &[(String, Vec<Grant>)]) -> Vec<String> {
    let path = fields.key("roles");
    let mut roles = Vec::new();
    for role in fields.texts("roles").unwrap_or_default() {
        let name = &role.value.value;
        if !known.iter().any(|(known, _)| known == name) {
            let near = nearest(name, known.iter().map(|(known, _)| known.as_str()));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add the role, or remove it here".to_owned(),
            };
            let message =
                format!("`{path}` names the role `{}`, which does not exist", role.value.shown());
            fields.report().add(Problem::error(message).help(help), path.clone(), &role.span);
        }
        roles.push(name.clone());
    }
    roles
}

fn grants<'t>(report: &mut Report<'t>, path: &str, node: &'t Node) -> Vec<Grant> {
    let Some(nodes) = node.as_list() else {
        let message = format!("`{path}` must be a list of grants, not {}", node.value.what());
        let help = "write [{ server = \"…\", access = \"read\" }]";
        report.add(Problem::error(message).help(help), path, &node.span);
        return Vec::new();
    };
    let numbered = nodes.iter().enumerate();
    numbered.filter_map(|(at, node)| grant(report, format!("{path}[{at}]"), node)).collect()
}

fn grant<'t>(report: &mut Report<'t>, path: String, node: &'t Node) -> Option<Grant> {
    let Some(table) = node.as_table() else {
        let message = format!("`{path}` must be a table, not {}", node.value.what());
        let help = "write { server = \"…\", access = \"read\" }";
        report.add(Problem::error(message).help(help), path, &node.span);
        return None;
    };
    let mut fields = Fields::new(table, path, &node.span, report);
    let servers = servers(&mut fields);
    let GrantKeys { access, tools, resources, prompts, deny } = GrantKeys::read(&mut fields);
    if !fields.has("access") {
        let message = format!("`{}` has no `access`", fields.path());
        let help = "add `access`: \"read\", \"write\" or \"*\"";
        fields.table_problem(Problem::error(message).help(help));
    }
    let says = if deny { Says::Deny } else { Says::Allow };
    let [tools, resources, prompts] = [tools, resources, prompts].map(|names| {
        names.map(|names| names.iter().map(|name| Glob::stars(name)).collect::<Vec<Glob>>())
    });
    fields.finish();
    Some(Grant { servers: servers?, access: access?, tools, resources, prompts, says })
}

/// Reads `server`: one server or several.
fn servers(fields: &mut Fields<'_, '_>) -> Option<Vec<Glob>> {
    let servers = match fields.peek("server").map(|entry| &entry.node.value) {
        Some(Value::List(_)) => fields.strings("server"),
        Some(_) => fields.string("server").map(|server| vec![server]),
        None => {
            fields.entry("server");
            None
        }
    };
    let missing = !fields.has("server") || servers.as_ref().is_some_and(Vec::is_empty);
    if missing {
        let message = format!("`{}` has no `server`", fields.path());
        let help = "add `server`: a name, a pattern, or a list of these; \"*\" means all";
        fields.table_problem(Problem::error(message).help(help));
    }
    Some(servers?.iter().map(|server| Glob::stars(server)).collect())
}

fn rules(fields: &mut Fields<'_, '_>) -> Vec<AccessRule> {
    let Some(entry) = fields.entry("rules") else { return Vec::new() };
    let path = fields.key("rules");
    let report = fields.report();
    let Some(nodes) = entry.node.as_list() else {
        let message = format!("`{path}` must be a list of rules, not {}", entry.node.value.what());
        let help = "write [{ subjects = [\"…\"], tools = [\"…\"], policy = \"deny\" }]";
        report.add(Problem::error(message).help(help), path, &entry.node.span);
        return Vec::new();
    };
    let numbered = nodes.iter().enumerate();
    numbered.filter_map(|(at, node)| rule(report, format!("{path}[{at}]"), node)).collect()
}

fn rule<'t>(report: &mut Report<'t>, path: String, node: &'t Node) -> Option<AccessRule> {
    let Some(table) = node.as_table() else {
        let message = format!("`{path}` must be a table, not {}", node.value.what());
        let help = "write { tools = [\"…\"], policy = \"deny\" }";
        report.add(Problem::error(message).help(help), path, &node.span);
        return None;
    };
    let mut fields = Fields::new(table, path, &node.span, report);
    let RuleKeys { subjects, roles, tools, policy } = RuleKeys::read(&mut fields);
    for key in ["tools", "policy"] {
        if !fields.has(key) {
            let message = format!("`{}` has no `{key}`", fields.path());
            let help = "a rule needs `tools`, and a `policy` of \"allow\" or \"deny\"";
            fields.table_problem(Problem::error(message).help(help));
        }
    }
    fields.finish();
    let tools = tools?.iter().map(|tool| Glob::stars(tool)).collect();
    Some(AccessRule { subjects, roles, tools, says: policy? })
}

/// Returns a table with keys that the file chooses.
fn map<'t>(fields: &mut Fields<'t, '_>, key: &'static str) -> Option<&'t Table> {
    let entry = fields.entry(key)?;
    let table = entry.node.as_table();
    if table.is_none() {
        let what = entry.node.value.what();
        let message = format!("`{}` must be a table, not {what}", fields.key(key));
        fields.problem(key, Problem::error(message).help("write one table per name"));
    }
    table
}

/// The values of the table for `config show`.
fn shown(fields: &mut Fields<'_, '_>) -> Vec<Shown> {
    let mut shown = Vec::new();
    for key in ["default", "strict", "roles", "subjects", "rules"] {
        let Some(entry) = fields.peek(key) else { continue };
        let file = fields.report().file;
        let mut add = |key: String, name: &str, entry: &Entry| {
            let origin = file.origin(&entry.key).to_string();
            shown.push(Shown { key, value: show::leaf(name, &entry.node), origin });
        };
        match (key, entry.node.as_table()) {
            ("roles" | "subjects", Some(table)) => {
                for (name, entry) in &table.entries {
                    // A role may have any name, so the name does not decide whether its value is
                    // masked.
                    add(join(&join("access", key), name), key, entry);
                }
            }
            _ => add(join("access", key), key, entry),
        }
    }
    shown
}

// === impl Narrowing ===

impl Form for Narrowing {
    type Value = Vec<String>;
    type Schema = Vec<String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<String>> {
        let names = fields.strings(key)?;
        if names.is_empty() {
            let message = format!("`{}` is empty, which could mean all or none", fields.key(key));
            let help = format!("remove `{key}` to mean all");
            fields.problem(key, Problem::error(message).help(help));
        }
        Some(names)
    }

    fn write(value: &Vec<String>) -> Json {
        Json::from(value.as_slice())
    }
}

// === impl OneOf ===

impl OneOf for Says {
    const WORDS: Words<Self> = &[("allow", Self::Allow), ("deny", Self::Deny)];
}

impl OneOf for AccessTo {
    const WORDS: Words<Self> = &[("read", Self::Read), ("write", Self::Write), ("*", Self::All)];
}

//! Puts the files together.
//!
//! A nearer file replaces a server's whole entry. Rules add up, because a rule that vanished
//! could only loosen. Numbers that restrict never grow by what a project says.

pub(crate) mod dead_rules;
pub mod environment;
mod file_precedence;

use std::cmp::Reverse;

use capstan_model::{ServerName, Verdict};
use capstan_policy::DefaultRule;
use capstan_safety::address::Network;
use indexmap::IndexMap;

use self::environment::EnvSettings;
use crate::read::file::SAME_NAME;
use crate::read::server::Limits;
use crate::read::{Part, Setting, Tables};
use crate::settings::rule::{OrderedRule, Reach, Rules};
use crate::settings::server::ServerEntry;
use crate::settings::{AccessSetting, CommandList, Config, DefaultSetting};
use crate::show::{self, Shown};
use crate::source::Dialect;
use crate::source::problem::{Problem, Severity};
use crate::source::reader::FileReader;
use crate::source::{Origin, Scope, SourceFile, Surroundings};
use crate::units::{show_duration, show_size};

/// A configuration with everything that is wrong in it.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// What the files say.
    pub config: Config,
    /// What the environment says; already applied to the servers' time limits.
    pub environment: EnvSettings,
    /// What is wrong, file by file.
    pub problems: Vec<Problem>,
    /// What the files ask of the gateway that this version cannot do. While there is any of it,
    /// `capstan serve --http` must not start; other commands do not need it.
    pub gateway: Vec<Problem>,
    pub(crate) shown: Vec<Shown>,
}

/// The settings of all files under one key, nearest first.
struct Merge<'a> {
    tables: &'a [Tables],
    shown: Vec<Shown>,
}

/// What a dialect says of calls that no rule speaks of.
struct Implied {
    rule: DefaultRule,
    dialect: Dialect,
    origin: Origin,
}

/// Reads files and puts them together. Never fails: what is wrong is among the problems.
///
/// Files may come in any order; within a scope a later one is nearer.
pub fn load(files: &[SourceFile], around: &Surroundings<'_>, reader: &dyn FileReader) -> Loaded {
    let (environment, problems) = environment::settings(around.variable);
    let limits = Limits::from_environment(&environment);
    let mut order: Vec<(usize, &SourceFile)> = files.iter().enumerate().collect();
    order.sort_by_key(|(index, file)| (file.scope, Reverse(*index)));
    let mut loaded = Loaded { environment, problems, ..Loaded::default() };
    let parts =
        order.into_iter().map(|(_, file)| (file, Part::read(file, *around, reader, limits)));
    let mut parts: Vec<(&SourceFile, Part)> = parts.collect();
    file_precedence::settle(&mut parts);
    let mut tables = Vec::new();
    let mut implied = Vec::new();
    for (file, part) in parts {
        loaded.problems.extend(part.problems);
        loaded.gateway.extend(part.conventions.gateway);
        loaded.gateway.extend(part.tables.access.refused.clone());
        for server in part.servers {
            let name = server.entry.name.clone();
            if let Some(nearer) = loaded.config.servers.get_mut(&name) {
                loaded.problems.extend(collision(nearer, &server.entry, file));
                let narrowed = nearer.keep_restrictions_of(&server.entry);
                loaded.problems.extend(fewer_networks(nearer, &server.entry, &narrowed));
            } else {
                loaded.shown.extend(server.shown);
                loaded.config.servers.insert(name, server.entry);
            }
        }
        // A project does not get by being written in some dialect what it would have to ask for.
        if let (Some(rule), Some(dialect)) = (part.conventions.default, part.dialect)
            && file.scope != Scope::Project
        {
            implied.push(Implied { rule, dialect, origin: file.origin(&(0..0)) });
        }
        tables.push(part.tables);
    }
    let shown = merge(&mut loaded.config, &mut tables, implied);
    loaded.shown.extend(shown);
    loaded
}

/// Reports two servers that are written differently and become one name. An entry of exactly the same
/// name is meant to be replaced.
fn collision(nearer: &ServerEntry, other: &ServerEntry, file: &SourceFile) -> Option<Problem> {
    if nearer.display == other.display {
        return None;
    }
    let message = format!(
        "`{}` ({}) is not used: `{}` ({}) is called `{}` as well",
        other.display, other.origin, nearer.display, nearer.origin, other.name
    );
    let lines = file.text.split_inclusive('\n').map(str::len);
    let start = lines.take(other.origin.line.saturating_sub(1)).sum();
    let problem = Problem::warning(message).help(SAME_NAME);
    let place = Some(file.place(&(start..start)));
    Some(Problem { place, server: Some(other.name.clone()), ..problem })
}

/// Reports the networks of a project's entry that the user's own entry does not wholly allow.
fn fewer_networks(
    nearer: &ServerEntry,
    replaced: &ServerEntry,
    narrowed: &[Network],
) -> Option<Problem> {
    let listed: Vec<String> = narrowed.iter().map(|one| format!("`{one}`")).collect();
    if listed.is_empty() {
        return None;
    }
    let message = format!(
        "server `{}` ({}) is reached in {} only as far as your own entry ({}) allows it",
        nearer.display,
        nearer.origin,
        listed.join(", "),
        replaced.origin
    );
    let help = "add to `networks` in your own entry what is meant";
    Some(Problem { server: Some(nearer.name.clone()), ..Problem::warning(message).help(help) })
}

// === impl Loaded ===

impl Loaded {
    /// The errors that concern more than one server. With any of these the configuration as a
    /// whole must not be used: what it was to restrict is not known.
    pub fn fatal(&self) -> impl Iterator<Item = &Problem> {
        let fatal =
            |problem: &&Problem| problem.severity == Severity::Error && problem.server.is_none();
        self.problems.iter().filter(fatal)
    }
}

// === impl Merge ===

impl Merge<'_> {
    /// The nearest setting.
    fn nearest<T: Clone>(&self, get: fn(&Tables) -> &Option<Setting<T>>) -> Option<Setting<T>> {
        self.tables.iter().find_map(|tables| get(tables).clone())
    }

    /// The smallest setting, where a project's counts only if it is below what holds without it.
    fn smallest<T: Copy + Ord>(
        &self,
        get: fn(&Tables) -> &Option<Setting<T>>,
        default: Option<T>,
    ) -> Option<Setting<T>> {
        let all = || self.tables.iter().filter_map(|tables| get(tables).as_ref());
        let project = |setting: &&Setting<T>| setting.origin.scope == Scope::Project;
        let least = all().filter(|setting| !project(setting)).min_by_key(|setting| setting.value);
        let bound = least.map(|setting| setting.value).or(default);
        let tighter = all()
            .filter(project)
            .filter(|setting| bound.is_none_or(|bound| setting.value < bound))
            .min_by_key(|setting| setting.value);
        tighter.or(least).cloned()
    }

    /// The value of a setting, noted for `config show`.
    fn note<T>(&mut self, key: &str, setting: Option<Setting<T>>) -> Option<T> {
        let Setting { value, shown, origin } = setting?;
        self.add(key, shown, Some(&origin));
        Some(value)
    }

    /// The value of a setting or its default, noted for `config show`.
    fn note_or<T>(
        &mut self,
        key: &str,
        setting: Option<Setting<T>>,
        default: T,
        write: fn(&T) -> String,
    ) -> T {
        self.note(key, setting).unwrap_or_else(|| {
            self.add(key, write(&default), None);
            default
        })
    }

    fn add(&mut self, key: &str, value: String, origin: Option<&Origin>) {
        let origin = origin.map_or_else(|| show::DEFAULT.to_owned(), Origin::to_string);
        self.shown.push(Shown { key: key.to_owned(), value, origin });
    }

    /// Adds what dialects take for granted, behind everything that somebody wrote: it speaks only
    /// of the servers of its own file, and of those only where nobody said otherwise.
    fn imply(&mut self, config: &mut Config, implied: Vec<Implied>) {
        for Implied { rule, dialect, origin } in implied {
            let value = show::text(rule.as_str());
            let says = format!("default of {} ({})", dialect.as_str(), origin.file);
            self.shown.push(Shown { key: "permissions.default".to_owned(), value, origin: says });
            let reach = Reach::ServersOf(origin.file.clone());
            config.permissions.defaults.push(DefaultSetting { rule, origin, reach });
        }
    }

    fn add_rules(&mut self, path: &str, rules: &Rules) {
        for verdict in [Verdict::Deny, Verdict::Ask, Verdict::Allow] {
            for rule in rules.list(verdict) {
                let key = format!("{path}.{}", verdict.as_str());
                self.add(&key, rule.shown.clone(), Some(&rule.origin));
            }
        }
    }
}

fn merge(config: &mut Config, tables: &mut [Tables], implied: Vec<Implied>) -> Vec<Shown> {
    for tables in &mut *tables {
        config.permissions.rules.append(std::mem::take(&mut tables.rules));
        config.tools.policy.append(std::mem::take(&mut tables.policy));
        config.tools.rates.append(&mut tables.rates);
    }
    let mut merge = Merge { tables, shown: Vec::new() };
    permissions(config, &mut merge);
    merge.imply(config, implied);
    access(config, &mut merge);
    tools(config, &mut merge);
    mcp(config, &mut merge);
    audit(config, &mut merge);
    let max = merge.smallest(|tables| &tables.max_answer, Some(config.screen.max_answer));
    config.screen.max_answer =
        merge.note_or("screen.max_answer", max, config.screen.max_answer, |size| {
            show::text(&show_size(*size))
        });
    gateway(config, &mut merge);
    merge.shown
}

fn permissions(config: &mut Config, merge: &mut Merge<'_>) {
    for tables in merge.tables {
        let Some(Setting { value: rule, shown, origin }) = tables.default.clone() else { continue };
        let reach = tables.reach.clone();
        merge.add("permissions.default", shown, Some(&origin));
        config.permissions.defaults.push(DefaultSetting { rule, origin, reach });
    }
    merge.add_rules("permissions", &config.permissions.rules);
}

fn access(config: &mut Config, merge: &mut Merge<'_>) {
    for tables in merge.tables {
        let Some((table, place)) = tables.access.table.clone() else { continue };
        merge.shown.extend(tables.access.shown.iter().cloned());
        config.access.push(AccessSetting { table, place });
    }
}

fn tools(config: &mut Config, merge: &mut Merge<'_>) {
    let max = merge.smallest(|tables| &tables.max_tool_calls, None);
    config.tools.max_tool_calls_per_session = merge.note("tools.max_tool_calls_per_session", max);
    merge.add_rules("tools.policy", &config.tools.policy);
    let rules = merge.tables.iter().flat_map(|tables| &tables.authorization.rules);
    let mut rules: Vec<OrderedRule> = rules.cloned().collect();
    // Of the first that speaks the word counts, so that a project's come last.
    rules.sort_by_key(|ordered| ordered.rule.origin.scope == Scope::Project);
    for ordered in &rules {
        let key =
            format!("tools.authorization.rules[{}].{}", ordered.number, ordered.verdict.as_str());
        merge.add(&key, ordered.rule.shown.clone(), Some(&ordered.rule.origin));
    }
    config.tools.authorization = rules;
    for rate in &config.tools.rates {
        merge.add("tools.rates", rate.shown.clone(), Some(&rate.origin));
    }
}

fn mcp(config: &mut Config, merge: &mut Merge<'_>) {
    let mcp = &mut config.mcp;
    for setting in merge.tables.iter().filter_map(|tables| tables.allowed_commands.clone()) {
        let Setting { value: commands, shown, origin } = setting;
        merge.add("mcp.allowed_commands", shown, Some(&origin));
        // A list restricts, but a project's speaks of its own servers only.
        let reach = Reach::of_commands(origin.scope, &origin.file);
        mcp.allowed_commands.push(CommandList { commands, origin, reach });
    }
    let max = merge.smallest(|tables| &tables.max_dynamic_servers, Some(mcp.max_dynamic_servers));
    mcp.max_dynamic_servers =
        merge.note_or("mcp.max_dynamic_servers", max, mcp.max_dynamic_servers, u32::to_string);
    // `false` is the smaller one: any file may switch questions off.
    let enabled = merge.smallest(|tables| &tables.elicitation_enabled, Some(true));
    mcp.elicitation_enabled =
        merge.note_or("mcp.elicitation_enabled", enabled, true, bool::to_string);
    let timeout = merge.nearest(|tables| &tables.elicitation_timeout);
    mcp.elicitation_timeout =
        merge.note_or("mcp.elicitation_timeout", timeout, mcp.elicitation_timeout, |time| {
            show::text(&show_duration(*time))
        });
    silence(&mut config.servers, merge.tables);
    let mcp = &mut config.mcp;
    let queue = merge.smallest(|tables| &tables.elicitation_queue, Some(mcp.elicitation_queue));
    mcp.elicitation_queue =
        merge.note_or("mcp.elicitation_queue", queue, mcp.elicitation_queue, u32::to_string);
}

/// Keeps a project's servers from asking where the user or the machine says that none may.
fn silence(servers: &mut IndexMap<ServerName, ServerEntry>, tables: &[Tables]) {
    let settings = tables.iter().filter_map(|tables| tables.elicitation_enabled.as_ref());
    let mut others = settings.filter(|setting| setting.origin.scope != Scope::Project);
    if others.all(|setting| setting.value) {
        return;
    }
    for entry in servers.values_mut().filter(|entry| entry.origin.scope == Scope::Project) {
        if let Ok(server) = &mut entry.status {
            server.elicitation = Some(false);
        }
    }
}

fn audit(config: &mut Config, merge: &mut Merge<'_>) {
    let audit = &mut config.audit;
    let enabled = merge.nearest(|tables| &tables.audit.enabled);
    audit.enabled = merge.note_or("audit.enabled", enabled, audit.enabled, bool::to_string);
    let path = merge.nearest(|tables| &tables.audit.path);
    audit.path = merge.note("audit.path", path);
    let arguments = merge.nearest(|tables| &tables.audit.arguments);
    audit.arguments = merge.note_or("audit.arguments", arguments, audit.arguments, |arguments| {
        show::text(arguments.as_str())
    });
    let retention = merge.nearest(|tables| &tables.audit.retention);
    audit.retention = merge.note_or("audit.retention", retention, audit.retention, |time| {
        show::text(&show_duration(*time))
    });
    let shown_size = |size: &u64| show::text(&show_size(*size));
    let size = merge.nearest(|tables| &tables.audit.max_size);
    audit.max_size = merge.note_or("audit.max_size", size, audit.max_size, shown_size);
    let total = merge.nearest(|tables| &tables.audit.max_total);
    audit.max_total = merge.note_or("audit.max_total", total, audit.max_total, shown_size);
    let durable = merge.nearest(|tables| &tables.audit.durable);
    audit.durable = merge.note_or("audit.durable", durable, audit.durable, bool::to_string);
    let on_full = merge.nearest(|tables| &tables.audit.on_full);
    audit.on_full = merge
        .note_or("audit.on_full", on_full, audit.on_full, |on_full| show::text(on_full.as_str()));
}

fn gateway(config: &mut Config, merge: &mut Merge<'_>) {
    let gateway = &mut config.gateway;
    let listen = merge.nearest(|tables| &tables.gateway.listen);
    gateway.listen = merge.note("gateway.listen", listen);
    let metrics = merge.nearest(|tables| &tables.gateway.metrics_listen);
    gateway.metrics_listen = merge.note("gateway.metrics_listen", metrics);
    let public_url = merge.nearest(|tables| &tables.gateway.public_url);
    gateway.public_url = merge.note("gateway.public_url", public_url);
    let hosts = merge.nearest(|tables| &tables.gateway.allowed_hosts);
    gateway.allowed_hosts = merge.note("gateway.allowed_hosts", hosts).unwrap_or_default();
    let origins = merge.nearest(|tables| &tables.gateway.allowed_origins);
    gateway.allowed_origins = merge.note("gateway.allowed_origins", origins).unwrap_or_default();
    let cert = merge.nearest(|tables| &tables.gateway.tls_cert);
    gateway.tls_cert = merge.note("gateway.tls_cert", cert);
    let key = merge.nearest(|tables| &tables.gateway.tls_key);
    gateway.tls_key = merge.note("gateway.tls_key", key);
    let validate = merge.nearest(|tables| &tables.gateway.validate_arguments);
    let validate = merge.note("gateway.validate_arguments", validate);
    gateway.validate_arguments = validate.unwrap_or_default();
    let wait = merge.nearest(|tables| &tables.gateway.approval_wait);
    let wait = merge.note("gateway.approval_wait", wait);
    gateway.approval_wait = wait.unwrap_or(gateway.approval_wait);
    let save = merge.nearest(|tables| &tables.gateway.save_approvals);
    let save = merge.note("gateway.save_approvals", save);
    gateway.save_approvals = save.unwrap_or(gateway.save_approvals);
    let limits = &mut gateway.limits;
    let body = merge.nearest(|tables| &tables.gateway.max_body);
    limits.max_body = merge.note("gateway.limits.max_body", body).unwrap_or(limits.max_body);
    let most = merge.nearest(|tables| &tables.gateway.max_connections);
    let most = merge.note("gateway.limits.max_connections", most);
    limits.max_connections = most.unwrap_or(limits.max_connections);
    let most = merge.nearest(|tables| &tables.gateway.max_sessions);
    let most = merge.note("gateway.limits.max_sessions", most);
    limits.max_sessions = most.unwrap_or(limits.max_sessions);
    let idle = merge.nearest(|tables| &tables.gateway.session_idle);
    limits.session_idle =
        merge.note("gateway.limits.session_idle", idle).unwrap_or(limits.session_idle);
}

//! Merges configuration files.
//!
//! A server entry in a nearer file replaces the whole entry of that name in the others. Rules add
//! up, because dropping a rule could only loosen. A project file cannot raise a number that
//! restricts.

pub(crate) mod dead_rules;
pub mod environment;
mod file_precedence;
pub(crate) mod policy;

use std::cmp::Reverse;

use capstan_model::{ServerName, Verdict};
use capstan_policy::DefaultRule;
use indexmap::IndexMap;

use self::environment::EnvSettings;
use crate::read::file::SAME_NAME;
use crate::read::server::Limits;
use crate::read::{Part, Tables};
use crate::settings::form::{Form, Setting};
use crate::settings::gateway::clients::ClientSetting;
use crate::settings::rule::{OrderedRule, Reach, Rules};
use crate::settings::server::ServerEntry;
use crate::settings::{
    AccessSetting, Audit, AuthProvider, CommandList, Config, DefaultSetting, Flows, Gateway,
    GatewayLimits, Mcp, Model, Screen, Search, Tools,
};
use crate::show::{self, Shown};
use crate::source::Dialect;
use crate::source::expand::join;
use crate::source::problem::{Problem, Severity};
use crate::source::reader::FileReader;
use crate::source::{FilePosition, Origin, Scope, SourceFile, Surroundings};

/// A merged configuration with its problems.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The merged configuration.
    pub config: Config,
    /// Settings from the environment; already applied to the servers' time limits.
    pub environment: EnvSettings,
    /// The problems, file by file.
    pub problems: Vec<Problem>,
    /// Settings of the gateway that this version does not support. While there is one,
    /// `capstan serve --http` must not start; other commands do not need them.
    pub gateway: Vec<Problem>,
    pub(crate) shown: Vec<Shown>,
}

/// The tables of all files, nearest first, being merged.
pub(crate) struct Merge<'a> {
    tables: &'a [Tables],
    shown: Vec<Shown>,
}

/// A table that is merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// Its dotted path.
    path: &'static str,
    defaults: Defaults,
}

/// Selects whether `config show` lists the defaults of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defaults {
    Shown,
    Hidden,
}

/// The default rule that a dialect implies for calls that no rule matches.
struct Implied {
    rule: DefaultRule,
    dialect: Dialect,
    origin: Origin,
}

/// Reads and merges files. Never fails: errors are among the problems.
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
        loaded.gateway.extend(part.tables.gateway.auth.refused.clone());
        for server in part.servers {
            let name = server.entry.name.clone();
            if let Some(nearer) = loaded.config.servers.get_mut(&name) {
                loaded.problems.extend(collision(nearer, &server.entry, file));
                loaded.problems.extend(nearer.keep_restrictions_of(&server.entry));
            } else {
                loaded.shown.extend(server.shown);
                loaded.config.servers.insert(name, server.entry);
            }
        }
        // A project file cannot gain permissions merely through its dialect's defaults.
        if let (Some(rule), Some(dialect)) = (part.conventions.default, part.dialect)
            && file.scope != Scope::Project
        {
            implied.push(Implied { rule, dialect, origin: file.origin(&(0..0)) });
        }
        tables.push(part.tables);
    }
    let shown = merge(&mut loaded.config, &mut tables, implied);
    loaded.gateway.extend(auth(&mut loaded.config, &tables));
    loaded.shown.extend(shown);
    loaded
}

/// Reports two servers whose different names become the same slug.
///
/// An entry of exactly the same name is meant to be replaced.
fn collision(nearer: &ServerEntry, other: &ServerEntry, file: &SourceFile) -> Option<Problem> {
    if nearer.display == other.display {
        return None;
    }
    let message = format!(
        "`{}` ({}) is not used: `{}` ({}) has the same name, `{}`",
        other.display, other.origin, nearer.display, nearer.origin, other.name
    );
    let lines = file.text.split_inclusive('\n').map(str::len);
    let start = lines.take(other.origin.line.saturating_sub(1)).sum();
    let problem = Problem::warning(message).help(SAME_NAME);
    let place = Some(file.place(&(start..start)));
    Some(Problem { place, server: Some(other.name.clone()), ..problem })
}

// === impl Loaded ===

impl Loaded {
    /// Returns the errors that concern more than one server.
    ///
    /// With any of these the configuration must not be used at all: the restrictions that it was to
    /// express are not known.
    pub fn fatal(&self) -> impl Iterator<Item = &Problem> {
        let fatal =
            |problem: &&Problem| problem.severity == Severity::Error && problem.server.is_none();
        self.problems.iter().filter(fatal)
    }
}

// === impl Section ===

impl Section {
    const fn new(path: &'static str, defaults: Defaults) -> Self {
        Self { path, defaults }
    }

    /// The dotted path of a key.
    pub(crate) fn key(self, key: &str) -> String {
        join(self.path, key)
    }
}

// === impl Merge ===

impl Merge<'_> {
    /// The settings of all files under one key, nearest first.
    pub(crate) fn settings<T: Clone>(
        &self,
        get: impl Fn(&Tables) -> Option<&Setting<T>>,
    ) -> Vec<Setting<T>> {
        self.tables.iter().filter_map(|tables| get(tables).cloned()).collect()
    }

    /// Returns the value of a setting, and records it for `config show`.
    pub(crate) fn optional<T>(&mut self, key: &str, setting: Option<Setting<T>>) -> Option<T> {
        let Setting { value, shown, origin } = setting?;
        self.add(key, shown, Some(&origin));
        Some(value)
    }

    /// Returns the value of a setting or its default, and records it for `config show`.
    pub(crate) fn value<F: Form>(
        &mut self,
        section: Section,
        key: &str,
        setting: Option<Setting<F::Value>>,
        default: F::Value,
    ) -> F::Value {
        let key = section.key(key);
        if setting.is_none() && section.defaults == Defaults::Shown {
            self.add(&key, show::json(&F::write(&default)), None);
        }
        self.optional(&key, setting).unwrap_or(default)
    }

    fn add(&mut self, key: &str, value: String, origin: Option<&Origin>) {
        let origin = origin.map_or_else(|| show::DEFAULT.to_owned(), Origin::to_string);
        self.shown.push(Shown { key: key.to_owned(), value, origin });
    }

    /// Adds the default rules that dialects imply, after all explicit ones.
    ///
    /// Each applies only to the servers of its own file, and only where nothing else is set.
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
    let section = |path| Section::new(path, Defaults::Shown);
    config.audit = Audit::merged(&mut merge, section("audit"), |tables| &tables.audit);
    config.screen = Screen::merged(&mut merge, section("screen"), |tables| &tables.screen);
    let section = |path| Section::new(path, Defaults::Hidden);
    config.flows = Flows::merged(&mut merge, section("flows"), |tables| &tables.flows);
    config.search = Search::merged(&mut merge, section("search"), |tables| &tables.search);
    config.gateway = Gateway::merged(&mut merge, section("gateway"), |tables| &tables.gateway.keys);
    config.gateway.limits =
        GatewayLimits::merged(&mut merge, section("gateway.limits"), |tables| {
            &tables.gateway.limits
        });
    for tables in merge.tables {
        merge.shown.extend(tables.gateway.auth.shown.iter().cloned());
        merge.shown.extend(tables.gateway.clients.iter().map(ClientSetting::shown));
        config.gateway.clients.extend(tables.gateway.clients.iter().cloned());
    }
    config.model = Model::merged(&mut merge, section("model"), |tables| &tables.model);
    merge.shown
}

/// Takes the one `[gateway.auth]`, and returns the reasons why the gateway must not start with it.
///
/// Two files cannot both have the table: a merged chain would be what neither of them says.
fn auth(config: &mut Config, tables: &[Tables]) -> Vec<Problem> {
    let mut found = tables.iter().filter_map(|tables| tables.gateway.auth.table.as_ref());
    let Some((auth, place)) = found.next() else { return Vec::new() };
    config.gateway.auth = Some(auth.clone());
    let problem = |message: String, help: &str, place: &FilePosition| {
        let problem = Problem::error(message).help(help);
        Problem { place: Some(place.clone()), key: Some("gateway.auth".to_owned()), ..problem }
    };
    let mut problems: Vec<Problem> = found
        .map(|(_, other)| {
            let message = format!("`gateway.auth` is also in {}", place.file);
            problem(message, "keep it in one of the files", other)
        })
        .collect();
    let has_public_url = config.gateway.public_url.is_some();
    if let Some(jwt) = auth.jwt.as_ref().filter(|_| auth.has(AuthProvider::Jwt))
        && jwt.audience.is_empty()
        && !has_public_url
    {
        let message = "`gateway.auth.jwt` accepts tokens for no audience";
        let help = "set `audience`, or `gateway.public_url`, which is its default";
        problems.push(problem(message.to_owned(), help, place));
    }
    if let Some(server) = auth.oauth_as.as_ref().filter(|_| auth.has(AuthProvider::OauthAs))
        && server.issuer_url.is_none()
        && !has_public_url
    {
        let message = "`gateway.auth.oauth_as` has no address that clients can reach";
        let help = "set `issuer_url`, or `gateway.public_url`, which is its default";
        problems.push(problem(message.to_owned(), help, place));
    }
    problems
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
    let section = Section::new("tools", Defaults::Shown);
    let merged = Tools::merged(merge, section, |tables| &tables.tools);
    config.tools.max_tool_calls_per_session = merged.max_tool_calls_per_session;
    merge.add_rules("tools.policy", &config.tools.policy);
    let rules = merge.tables.iter().flat_map(|tables| &tables.authorization.rules);
    let mut rules: Vec<OrderedRule> = rules.cloned().collect();
    // The first matching rule wins, so a project's rules come last.
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
    for setting in merge.tables.iter().filter_map(|tables| tables.allowed_commands.clone()) {
        let Setting { value: commands, shown, origin } = setting;
        merge.add("mcp.allowed_commands", shown, Some(&origin));
        // A list restricts, but a project's list applies only to the project's own servers.
        let reach = Reach::of_commands(origin.scope, &origin.file);
        config.mcp.allowed_commands.push(CommandList { commands, origin, reach });
    }
    let section = Section::new("mcp", Defaults::Shown);
    let allowed_commands = std::mem::take(&mut config.mcp.allowed_commands);
    config.mcp = Mcp { allowed_commands, ..Mcp::merged(merge, section, |tables| &tables.mcp) };
    silence(&mut config.servers, merge.tables);
}

/// Switches elicitation off for a project's servers if a file outside the project does.
fn silence(servers: &mut IndexMap<ServerName, ServerEntry>, tables: &[Tables]) {
    let settings = tables.iter().filter_map(|tables| tables.mcp.elicitation_enabled.as_ref());
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

//! Builds the policy of a configuration.

use std::collections::BTreeSet;

use capstan_config::{
    Config, Kind, Reach as Written, Rule as WrittenRule, Rules, Scope, Server, ServerEntry,
};
use capstan_model::ServerName;
use capstan_policy::effect::EffectRules;
use capstan_policy::exposure::Exposure;
use capstan_policy::flows::{ListedTags, Place};
use capstan_policy::{
    Access, BadPattern, OrderedRule, Policy, PolicySource, Reach, Rule, RuleList, ServerPolicy,
    TagRules,
};

use crate::{AppError, ErrorKind};

/// A pattern of a server that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("server `{server}`")]
pub struct PolicyError {
    server: ServerName,
    #[source]
    cause: BadPattern,
}

impl From<PolicyError> for AppError {
    fn from(error: PolicyError) -> Self {
        Self::caused(ErrorKind::Config, &error)
    }
}

/// Builds the policy of a configuration.
///
/// # Errors
/// The first pattern of a server that cannot be parsed.
pub fn policy(config: &Config) -> Result<Policy, PolicyError> {
    let mut policy = PolicySource::default();
    policy.tools = rules(config, &config.tools.policy, "tools.policy");
    policy.permissions.global = rules(config, &config.permissions.rules, "permissions");
    policy.access = access(config);
    policy.authorization = authorization(config);
    policy.flows = config.flows.rules();
    for entry in config.servers.values() {
        let name = &entry.name;
        if let Some(default) = config.permissions.default_for(&entry.origin.file) {
            policy.permissions.server_defaults.insert(name.clone(), default);
        }
        let Ok(server) = &entry.status else { continue };
        let place = format!("servers.{name}.permissions");
        let own = rules(config, &server.permissions, &place);
        policy.permissions.servers.insert(name.clone(), own);
        let server = of_server(entry, server)
            .map_err(|cause| PolicyError { server: name.clone(), cause })?;
        policy.servers.insert(name.clone(), server);
    }
    Ok(policy.compile())
}

fn of_server(entry: &ServerEntry, server: &Server) -> Result<ServerPolicy, BadPattern> {
    let tools = || server.tools.iter();
    let hidden = tools().filter(|(_, tool)| tool.hidden).map(|(name, _)| name.clone());
    let renamed = tools().filter_map(|(own, tool)| Some((own.clone(), tool.name.clone()?)));
    Ok(ServerPolicy {
        display: entry.display.clone(),
        trust: server.trust,
        exposure: Exposure::new(server.expose.as_deref(), &server.hide)?.without(hidden),
        effects: EffectRules::new(&server.effect.read, &server.effect.write)?,
        new_names: renamed.collect(),
        tags: tags(entry, server)?,
    })
}

fn tags(entry: &ServerEntry, server: &Server) -> Result<TagRules, BadPattern> {
    let written = &server.tags;
    let lists = [&written.untrusted, &written.private, &written.sends];
    let how = match entry.origin.scope {
        // A project file cannot take a tag away.
        Scope::Project => ListedTags::Add,
        Scope::Managed | Scope::Flag | Scope::User => ListedTags::Replace,
    };
    let place = match &server.kind {
        Kind::Stdio(_) | Kind::Cli(_) => Place::Here,
        Kind::Http(remote) | Kind::Sse(remote) if remote.is_here() => Place::Here,
        Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_) => Place::Elsewhere,
    };
    TagRules::new(lists.map(|list| list.as_deref()), how, place)
}

fn rules(config: &Config, written: &Rules, place: &str) -> RuleList {
    let list = |rules: &[WrittenRule], word: &str| {
        rules.iter().map(|written| rule(config, written, format!("{place}.{word}"))).collect()
    };
    RuleList {
        deny: list(&written.deny, "deny"),
        ask: list(&written.ask, "ask"),
        allow: list(&written.allow, "allow"),
    }
}

fn rule(config: &Config, written: &WrittenRule, place: String) -> Rule {
    Rule {
        pattern: written.pattern.clone(),
        reason: written.reason.clone(),
        expires_at: written.expires_at,
        reach: reach(config, &written.reach),
        effect: written.effect,
        place,
    }
}

fn authorization(config: &Config) -> Vec<OrderedRule> {
    let ordered = config.tools.authorization.iter();
    let ordered = ordered.map(|written| {
        let place = format!("tools.authorization.rules[{}]", written.number);
        let rule = rule(config, &written.rule, place);
        OrderedRule { verdict: written.verdict, rule }
    });
    ordered.collect()
}

fn access(config: &Config) -> Vec<Access> {
    let servers = || config.servers.values().map(|entry| (&entry.name, entry.display.as_str()));
    config.access.iter().map(|setting| Access::new(setting.table.clone(), servers())).collect()
}

fn reach(config: &Config, written: &Written) -> Reach {
    match written {
        Written::All => Reach::All,
        Written::ServersOf(file) => {
            let theirs = config.servers.values().filter(|entry| entry.origin.file == *file);
            Reach::Only(theirs.map(|entry| entry.name.clone()).collect::<BTreeSet<_>>())
        }
        Written::Server { file, name } => {
            let same = |entry: &&ServerEntry| entry.name == *name && entry.origin.file == *file;
            let found = config.servers.values().filter(same).map(|entry| entry.name.clone());
            Reach::Only(found.collect::<BTreeSet<_>>())
        }
    }
}

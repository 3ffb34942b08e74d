//! Restrictions of a file that apply to all of its servers, imported with each server.
//!
//! Rules become rules of the server's own entry, limits are written beside the servers.
//!
//! **Invariant:** a server to which a restriction applies that cannot be imported is not imported.

use capstan_config::source::expand::join;
use capstan_config::source::tree::Table;
use capstan_config::source::{SourceFile, Surroundings};
use capstan_config::{Config, Loaded, Problem, Rule, load};
use capstan_model::{ItemId, ServerName, Verdict};
use capstan_policy::pattern::{PatternSubject, spellings, split_arguments};
use capstan_policy::{DefaultRule, Glob, RuleEffect};
use serde_json::{Map, Value as Json, json};

use super::Carried;
use super::limits::Limit;
use crate::dialects::AllDialects;
use crate::translate::prefix;

/// The restrictions of a file.
pub(super) struct FileRules {
    config: Config,
    /// The reason why no server of the file is imported.
    refused: Option<String>,
    /// The default verdict of the file.
    default: Option<DefaultRule>,
    limits: Vec<Limit>,
    /// The beginnings of names of tools of the file's servers.
    ids: Vec<String>,
}

/// A server whose entry gets the rules.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) name: &'a ServerName,
    pub(super) display: &'a str,
}

/// Characters with a meaning in a pattern.
pub(super) const SIGNS: [char; 5] = ['*', '?', '[', '{', '\\'];

// === impl FileRules ===

impl FileRules {
    /// Reads the restrictions of a file, of which `tree` has the native keys.
    pub(super) fn read(file: &SourceFile, around: &Surroundings<'_>, tree: &Table) -> Self {
        let loaded = load(std::slice::from_ref(file), around, &AllDialects);
        // A problem of an entry, such as a name that another has too, concerns only that entry.
        let entries: Vec<String> = containers(tree);
        let is_in_entry = |problem: &&Problem| {
            let key = problem.key.as_deref().unwrap_or_default();
            entries.iter().any(|container| is_below(key, container))
        };
        let fatal = loaded.fatal().find(|problem| !is_in_entry(problem));
        let fatal = fatal.map(|problem| problem.message.clone());
        let Loaded { config, .. } = loaded;
        let unsaid = [
            ("access", !config.access.is_empty()),
            ("tools.rates", !config.tools.rates.is_empty()),
        ];
        let unsaid = unsaid.into_iter().find(|(_, is_there)| *is_there);
        let refused = fatal.or_else(|| unsaid.map(|(key, _)| not_for_one(key)));
        let entries = config.servers.values();
        let ids = entries.flat_map(|entry| ids(Of { name: &entry.name, display: &entry.display }));
        Self {
            refused,
            default: config.permissions.default_for(&file.path),
            limits: Limit::all(tree),
            ids: ids.collect(),
            config,
        }
    }

    /// Adds the restrictions to the entry of a server, or returns the reason why that is not
    /// possible. Returns a note for each part that was left out.
    pub(super) fn apply(&self, carried: &mut Carried, of: Of<'_>) -> Result<Vec<String>, String> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        self.check_command(carried)?;
        let Config { permissions, tools, mcp, .. } = &self.config;
        if !mcp.elicitation_enabled {
            carried.keys.insert("elicitation".to_owned(), Json::Bool(false));
        }
        for verdict in [Verdict::Deny, Verdict::Ask] {
            let rules = permissions.rules.list(verdict).iter().chain(tools.policy.list(verdict));
            for rule in rules {
                match rule.pattern.subject() {
                    PatternSubject::Item(_) => {
                        let patterns = self.reduced("permissions", rule, of)?;
                        carried.add_rules(verdict, patterns.into_iter().map(|it| worded(rule, it)));
                    }
                    PatternSubject::Elicit(glob) => silence(carried, verdict, rule, glob, of)?,
                }
            }
        }
        self.ordered(carried, of)?;
        let notes = self.add_default(carried)?;
        carried.limits.clone_from(&self.limits);
        Ok(notes)
    }

    /// Adds the default as a rule.
    ///
    /// In its file, a default comes after all rules. In a server's lists it is a rule itself, of
    /// which `deny` comes before `ask` and `allow`, and `ask` before `allow`.
    fn add_default(&self, carried: &mut Carried) -> Result<Vec<String>, String> {
        let own = carried.keys.get("permissions").and_then(Json::as_object);
        let has = |list: &str| {
            let list = own.and_then(|rules| rules.get(list)).and_then(Json::as_array);
            list.is_some_and(|rules| !rules.is_empty())
        };
        match self.default {
            Some(DefaultRule::Always(Verdict::Allow)) | None => {}
            Some(DefaultRule::Always(Verdict::Deny)) if has("ask") || has("allow") => {
                return Err("`permissions.default = \"deny\"` of its file applies after the \
                            server's own `ask` and `allow`, which its entry cannot express"
                    .to_owned());
            }
            Some(DefaultRule::Always(Verdict::Ask)) if has("allow") => {
                carried.drop_rules(Verdict::Allow);
                carried.add_rules(Verdict::Ask, [json!("*")]);
                return Ok(vec![
                    "its `permissions.allow` is not imported: `permissions.default = \"ask\"` of \
                     its file becomes a rule that asks about every tool"
                        .to_owned(),
                ]);
            }
            Some(DefaultRule::Always(verdict)) => carried.add_rules(verdict, [json!("*")]),
            Some(DefaultRule::AskWrites) => {
                let writes = json!({ "pattern": "*", "effect": effect_word(RuleEffect::Write) });
                carried.add_rules(Verdict::Ask, [writes]);
            }
        }
        Ok(Vec::new())
    }

    /// Refuses a command that the file's list does not contain.
    fn check_command(&self, carried: &Carried) -> Result<(), String> {
        for list in &self.config.mcp.allowed_commands {
            if let Some(command) = carried.text("command")
                && !list.commands.iter().any(|allowed| allowed == command)
            {
                return Err(format!(
                    "`mcp.allowed_commands` of its file does not list `{command}`"
                ));
            }
        }
        Ok(())
    }

    /// Adds the ordered rules, of which the first match decides.
    ///
    /// A server's own lists have no order, so a rule that an earlier one makes exceptions to cannot
    /// be imported.
    fn ordered(&self, carried: &mut Carried, of: Of<'_>) -> Result<(), String> {
        const KEY: &str = "tools.authorization";
        let tools = &self.config.tools;
        let mut allowed = Vec::new();
        for rule in &tools.policy.allow {
            allowed.extend(self.reduced("tools.policy", rule, of)?);
        }
        for ordered in &tools.authorization {
            let patterns = self.reduced(KEY, &ordered.rule, of)?;
            if ordered.verdict == Verdict::Allow {
                allowed.extend(patterns);
                continue;
            }
            for pattern in &patterns {
                if let Some(before) = allowed.iter().find(|before| overlap(before, pattern)) {
                    let verb = ordered.verdict.as_str();
                    return Err(format!(
                        "`{KEY}` allows `{before}` before `{verb}` applies to `{pattern}`, which \
                         a server's own rules cannot express"
                    ));
                }
            }
            let rules = patterns.into_iter().map(|pattern| worded(&ordered.rule, pattern));
            carried.add_rules(ordered.verdict, rules);
        }
        Ok(())
    }

    /// Reduces the pattern of a rule to the tools of one server.
    fn reduced(&self, key: &str, rule: &Rule, of: Of<'_>) -> Result<Vec<String>, String> {
        let text = rule.pattern.as_str().trim();
        let (name, arguments) = split_arguments(text);
        let head = name.split(SIGNS).next().unwrap_or(name);
        let names_a_server = self.ids.iter().any(|id| head.starts_with(id));
        let mut own = if names_a_server { Vec::new() } else { vec![name.to_owned()] };
        for id in ids(of) {
            if head.starts_with(&id) {
                own.extend(name.strip_prefix(&id).map(str::to_owned));
            } else if id.starts_with(head) && name.contains(['[', '{', '\\']) {
                return Err(format!(
                    "`{key}` has the pattern `{text}`, which cannot be reduced to one server"
                ));
            } else if id.starts_with(head) {
                own.extend(prefix::after(&id, name));
            }
        }
        own.retain(|pattern| !pattern.is_empty());
        if own.iter().any(|pattern| pattern == "*") {
            own = vec!["*".to_owned()];
        }
        let mut known = Vec::new();
        own.retain(|pattern| {
            let is_new = !known.contains(pattern);
            known.push(pattern.clone());
            is_new
        });
        if let Some(arguments) = arguments {
            for name in &mut own {
                *name = format!("{name}:{arguments}");
            }
        }
        Ok(own)
    }
}

// === impl Carried ===

impl Carried {
    /// Removes a list of rules.
    fn drop_rules(&mut self, verdict: Verdict) {
        if let Some(Json::Object(rules)) = self.keys.get_mut("permissions") {
            rules.remove(verdict.as_str());
        }
    }

    /// Adds rules for tools of the server.
    pub(super) fn add_rules(&mut self, verdict: Verdict, new: impl IntoIterator<Item = Json>) {
        let mut new = new.into_iter().peekable();
        if new.peek().is_none() {
            return;
        }
        let rules = self.keys.entry("permissions").or_insert_with(|| Json::Object(Map::new()));
        if let Json::Object(rules) = rules {
            let list = rules.entry(verdict.as_str()).or_insert_with(|| Json::Array(Vec::new()));
            if let Json::Array(list) = list {
                for rule in new {
                    if !list.contains(&rule) {
                        list.push(rule);
                    }
                }
            }
        }
    }
}

/// Applies a rule about questions; a server's entry can only switch all questions off.
fn silence(
    carried: &mut Carried,
    verdict: Verdict,
    rule: &Rule,
    servers: &Glob,
    of: Of<'_>,
) -> Result<(), String> {
    if !servers.is_match(of.name.as_str()) {
        return Ok(());
    }
    if verdict == Verdict::Deny && rule.expires_at.is_none() {
        carried.keys.insert("elicitation".to_owned(), Json::Bool(false));
        return Ok(());
    }
    Err(not_for_one(&format!("permissions.{}: {}", verdict.as_str(), rule.pattern.as_str())))
}

/// A rule as a native file contains it, with another pattern.
fn worded(rule: &Rule, pattern: String) -> Json {
    let mut worded = Map::new();
    let mut put = |key: &str, text: Option<String>| {
        worded.extend(text.map(|text| (key.to_owned(), Json::String(text))));
    };
    put("reason", rule.reason.clone());
    put("comment", rule.comment.clone().filter(|comment| Some(comment) != rule.reason.as_ref()));
    put("expires_at", rule.expires_at.map(|moment| moment.to_string()));
    put("effect", rule.effect.map(|effect| effect_word(effect).to_owned()));
    if worded.is_empty() {
        return Json::String(pattern);
    }
    worded.shift_insert(0, "pattern".to_owned(), Json::String(pattern));
    Json::Object(worded)
}

fn effect_word(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Read => "read",
        RuleEffect::Write => "write",
    }
}

/// The beginnings of the names of a server's tools, as rules for all servers spell them.
fn ids(of: Of<'_>) -> Vec<String> {
    let item = ItemId { server: of.name.clone(), item: String::new() };
    let mut ids = spellings(&item, of.display);
    ids.retain(|id| !id.is_empty());
    ids
}

/// True if there may be a name that both patterns match.
fn overlap(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|text| split_arguments(text).0);
    let [head, other_head] = [one, other].map(|text| text.split(SIGNS).next().unwrap_or(text));
    match (one == head, other == other_head) {
        (true, true) => one == other,
        (true, false) => Glob::parse(other).map_or(true, |glob| glob.is_match(one)),
        (false, true) => Glob::parse(one).map_or(true, |glob| glob.is_match(other)),
        (false, false) => head.starts_with(other_head) || other_head.starts_with(head),
    }
}

/// The dotted paths of the tables and lists that the servers of a file are in.
fn containers(tree: &Table) -> Vec<String> {
    let mut all = Vec::new();
    for (name, entry) in tree.table("servers").into_iter().flat_map(|servers| &servers.entries) {
        let Some(path) = &entry.path else { continue };
        let container = match path.strip_suffix(&join("", name)) {
            Some(above) => above.trim_end_matches('.'),
            None => path.rsplit_once(['.', '[']).map_or("", |(above, _)| above),
        };
        if !container.is_empty() && !all.iter().any(|known| known == container) {
            all.push(container.to_owned());
        }
    }
    all
}

/// True if a dotted key is inside a table or a list.
fn is_below(key: &str, container: &str) -> bool {
    key.strip_prefix(container).is_some_and(|rest| rest.starts_with(['.', '[']))
}

fn not_for_one(key: &str) -> String {
    format!("`{key}` of its file restricts all of its servers, and cannot be imported with one")
}

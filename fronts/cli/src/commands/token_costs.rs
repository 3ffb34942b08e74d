//! `capstan tools --tokens`: the cost of tools in a model's context, and which of them were not used.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use capstan_app::api::{ToolRow, Tools};
use capstan_app::hub_settings::tool_offer;
use capstan_app::{AppError, AuditQuery, SelectionRules};
use capstan_hub::own_tools::{ToolOffer, own_cost};
use capstan_model::{CallTools, Expose, ItemId, ServerName};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::context::Context;

/// Tools without a call in this time count as unused.
const UNUSED_DAYS: i64 = 30;

/// Maximum number of entries of the audit log that are read.
const MAX_ENTRIES: usize = 1_000_000;

/// The costs of all tools, as `--json` prints them.
#[derive(Debug, PartialEq, Serialize)]
struct Costs {
    /// The cost of all definitions, in tokens.
    tokens: usize,
    /// The cost of the tools that a model is offered at a turn if tools are searched.
    with_search: usize,
    /// The cost of what a client of the gateway gets with `expose = "search"`.
    exposed_by_search: usize,
    servers: Vec<ServerCost>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ServerCost {
    server: ServerName,
    tokens: usize,
    /// Number of calls in the last 30 days, according to the audit log.
    calls: usize,
    tools: Vec<ToolCost>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ToolCost {
    id: String,
    tokens: usize,
    calls: usize,
}

/// Number of calls by server and the server's own name of the tool.
type Calls = HashMap<(String, String), usize>;

pub(super) fn show(context: &Context, listed: &Tools) -> Result<(), AppError> {
    let setup = context.setup_untold()?;
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    let since = now.checked_sub(SignedDuration::from_hours(24 * UNUSED_DAYS)).ok();
    let query = AuditQuery { since, limit: MAX_ENTRIES, ..AuditQuery::default() };
    let mut calls = Calls::new();
    for row in context.app.audit.query(&setup, &query)? {
        let text = |key: &str| row.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        if let (Some(server), Some(item)) = (text("server"), text("item")) {
            *calls.entry((server, item)).or_default() += 1;
        }
    }
    let config = &setup.loaded.config;
    let mut costs = Costs::new(&listed.tools, &calls, &SelectionRules::of(config));
    let offer = tool_offer(config, Arc::clone(&context.app.index));
    costs.exposed_by_search = exposed_by_search(&listed.tools, &offer);
    if context.print.wants_json() {
        context.print.json(&costs);
    } else {
        costs.show(context);
    }
    Ok(())
}

// === impl Costs ===

impl Costs {
    fn new(tools: &[ToolRow], calls: &Calls, rules: &SelectionRules) -> Self {
        let mut servers: BTreeMap<&ServerName, ServerCost> = BTreeMap::new();
        for tool in tools {
            let own = tool.own_id();
            let used = calls.get(&(own.server.to_string(), own.item)).copied().unwrap_or_default();
            let empty = || ServerCost {
                server: tool.server.clone(),
                tokens: 0,
                calls: 0,
                tools: Vec::new(),
            };
            let server = servers.entry(&tool.server).or_insert_with(empty);
            server.tokens += tool.tokens;
            server.calls += used;
            let cost = ToolCost { id: tool.id.clone(), tokens: tool.tokens, calls: used };
            server.tools.push(cost);
        }
        let mut servers: Vec<ServerCost> = servers.into_values().collect();
        servers.sort_by(|one, other| {
            other.tokens.cmp(&one.tokens).then_with(|| one.server.cmp(&other.server))
        });
        for server in &mut servers {
            server.tools.sort_by(|one, other| {
                other.tokens.cmp(&one.tokens).then_with(|| one.id.cmp(&other.id))
            });
        }
        let tokens = servers.iter().map(|server| server.tokens).sum();
        let with_search = with_search(tools, rules);
        Self { tokens, with_search, exposed_by_search: 0, servers }
    }

    fn show(&self, context: &Context) {
        let mut cells = Vec::new();
        for server in &self.servers {
            let number = |number: usize| number.to_string();
            cells.push(vec![
                server.server.to_string(),
                number(server.tokens),
                number(server.calls),
            ]);
            for tool in &server.tools {
                cells.push(vec![format!("  {}", tool.id), number(tool.tokens), number(tool.calls)]);
            }
        }
        if cells.is_empty() {
            return;
        }
        context.print.table(&["SERVER, TOOL", "TOKENS", "CALLS IN 30 DAYS"], &cells);
        let saved = 100 * (self.tokens - self.with_search) / self.tokens.max(1);
        context.print.note(&format!(
            "all tools: about {} tokens; with search: about {} a turn, {saved} % less",
            self.tokens, self.with_search
        ));
        let exposed = self.exposed_by_search;
        let saved = 100 * self.tokens.saturating_sub(exposed) / self.tokens.max(1);
        context.print.note(&format!(
            "with `expose = \"search\"`, clients of the gateway get: about {exposed} tokens, {saved} % less"
        ));
        let unused: Vec<&ServerCost> =
            self.servers.iter().filter(|server| server.calls == 0).collect();
        let tools = self.servers.iter().flat_map(|server| &server.tools);
        let tools = tools.filter(|tool| tool.calls == 0).count();
        if tools > 0 {
            let names = super::named(unused.iter().map(|server| &server.server));
            let servers =
                if unused.is_empty() { String::new() } else { format!("; servers: {names}") };
            context.print.note(&format!("not used in {UNUSED_DAYS} days: {tools} tools{servers}"));
        }
    }
}

/// The cost of a client's list that has Capstan's own tools and the pinned ones.
fn exposed_by_search(tools: &[ToolRow], offer: &ToolOffer) -> usize {
    let calls = match offer.expose {
        Expose::All => CallTools::One,
        Expose::Search(calls) | Expose::Auto(calls) => calls,
    };
    let pinned = tools.iter().filter(|tool| offer.always_lists(&tool.own_id(), &tool.name));
    own_cost(calls) + pinned.map(|tool| tool.tokens).sum::<usize>()
}

/// The cost of a turn: the tools that are always offered, and `top_k` of average size.
fn with_search(tools: &[ToolRow], rules: &SelectionRules) -> usize {
    let ids: Vec<ItemId> = tools.iter().map(ToolRow::own_id).collect();
    let always = rules.always_offered(&ids);
    let (mut offered, mut rest, mut count) = (0, 0, 0);
    for (tool, id) in tools.iter().zip(&ids) {
        if always.contains(&id) {
            offered += tool.tokens;
        } else {
            (rest, count) = (rest + tool.tokens, count + 1);
        }
    }
    offered + if count <= rules.top_k { rest } else { rest * rules.top_k / count }
}

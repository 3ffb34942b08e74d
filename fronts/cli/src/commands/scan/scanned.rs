//! Scanned texts and their findings, as they are shown.

use std::collections::{HashMap, HashSet};

use capstan_app::api::{Definitions, ListedItem};
use capstan_hub::catalog::text_digest;
use capstan_model::ItemId;
use capstan_safety::scan::{Finding, Located, Peer, Severity, Surface, scan, scan_among};
use serde::Serialize;
use serde_json::Value;

use crate::commands::rows::Definition;

/// A definition, instructions or an answer, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Scanned {
    id: Option<String>,
    server: Option<String>,
    pub(super) name: String,
    verdict: Verdict,
    pub(super) findings: Vec<Found>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Clean,
    Suspicious,
}

/// A finding, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Found {
    class: &'static str,
    severity: &'static str,
    place: String,
    excerpt: String,
    /// The id that `--accept` takes: the beginning of the digest.
    finding: String,
    /// The digest of the text.
    #[serde(skip)]
    pub(super) digest: String,
    #[serde(skip)]
    is_grave: bool,
}

/// Characters of a finding's id.
const ID: usize = 12;

/// Most tools of other servers with one name that a tool is compared with.
const MAX_PEERS: usize = 64;

// === impl Scanned ===

impl Scanned {
    fn new(id: Option<String>, server: Option<String>, name: String, all: Vec<Located>) -> Self {
        let findings: Vec<Found> = all.into_iter().map(Found::new).collect();
        let is_grave = findings.iter().any(|found| found.is_grave);
        let verdict = if is_grave { Verdict::Suspicious } else { Verdict::Clean };
        Self { id, server, name, verdict, findings }
    }

    pub(super) fn is_suspicious(&self) -> bool {
        self.verdict == Verdict::Suspicious
    }

    /// A row of the table for each finding.
    pub(super) fn cells(&self) -> Vec<Vec<String>> {
        let row = |found: &Found| {
            vec![
                self.server.clone().unwrap_or_else(|| "-".to_owned()),
                self.name.clone(),
                found.severity.to_owned(),
                found.class.to_owned(),
                found.place.clone(),
                found.finding.clone(),
                found.excerpt.clone(),
            ]
        };
        self.findings.iter().map(row).collect()
    }
}

// === impl Found ===

impl Found {
    fn new(Located { place, text, finding }: Located) -> Self {
        let digest = text_digest(&text);
        let Finding { class, severity, excerpt, .. } = finding;
        Self {
            class: class.as_str(),
            severity: severity.as_str(),
            place,
            excerpt,
            finding: digest.chars().take(ID).collect(),
            digest,
            is_grave: severity >= Severity::Medium,
        }
    }

    /// The finding in words.
    pub(super) fn told(&self) -> String {
        format!("{} in {}: {}", self.class, self.place, self.excerpt)
    }
}

/// Scans a line of a file.
pub(super) fn of_row(row: &Definition) -> Scanned {
    let located = if let Some(text) = &row.text {
        of_text(text, Surface::Answer, "/text")
    } else {
        let peers: Vec<Value> = row.peers.iter().filter_map(|peer| peer.read().ok()).collect();
        let peers: Vec<Peer<'_>> = peers.iter().map(peer).collect();
        row.json.read().map(|tool| scan_among(&tool, &peers)).unwrap_or_default()
    };
    Scanned::new(row.id.clone(), row.server.clone(), row.name.clone(), located)
}

/// Scans tools, each beside the tools of the same name of other servers, and instructions.
pub(super) fn of_definitions(listed: &Definitions, accepted: &HashSet<String>) -> Vec<Scanned> {
    let mut names: HashMap<&str, Vec<(&str, Value)>> = HashMap::new();
    for one in &listed.servers {
        for (name, json) in &one.tools {
            if let Ok(value) = json.read() {
                names.entry(name).or_default().push((one.server.as_str(), value));
            }
        }
    }
    let mut scanned = Vec::new();
    for one in &listed.servers {
        let server = one.server.as_str();
        for (name, json) in &one.tools {
            let others = names.get(name.as_str()).into_iter().flatten();
            let others = others.filter(|(other, _)| *other != server).take(MAX_PEERS);
            let peers: Vec<Peer<'_>> =
                others.map(|(other, tool)| Peer { server: other, ..described(tool) }).collect();
            let mut all = json.read().map(|tool| scan_among(&tool, &peers)).unwrap_or_default();
            all.retain(|located| !accepted.contains(&text_digest(&located.text)));
            let id = ItemId { server: one.server.clone(), item: name.clone() };
            let (id, server) = (Some(id.to_string()), Some(server.to_owned()));
            scanned.push(Scanned::new(id, server, name.clone(), all));
        }
        if let Some(text) = &one.instructions {
            let mut all = of_text(text, Surface::Instructions, "/instructions");
            all.retain(|located| !accepted.contains(&text_digest(&located.text)));
            let server = Some(server.to_owned());
            scanned.push(Scanned::new(None, server, "instructions".to_owned(), all));
        }
    }
    scanned
}

/// Scans prompts, resources and templates.
pub(super) fn of_items(items: &[ListedItem], accepted: &HashSet<String>) -> Vec<Scanned> {
    let scan = |item: &ListedItem| {
        let mut all = item.definition.read().map(|one| scan_among(&one, &[])).unwrap_or_default();
        all.retain(|located| !accepted.contains(&text_digest(&located.text)));
        let id = ItemId { server: item.server.clone(), item: item.name.clone() };
        let (id, server) = (Some(id.to_string()), Some(item.server.to_string()));
        Scanned::new(id, server, item.name.clone(), all)
    };
    items.iter().map(scan).collect()
}

fn of_text(text: &str, surface: Surface, place: &str) -> Vec<Located> {
    let located = |finding| Located { place: place.to_owned(), text: text.to_owned(), finding };
    scan(text, surface).into_iter().map(located).collect()
}

/// A tool of another server in a line: `{"server": "…", "tool": {…}}`.
fn peer(row: &Value) -> Peer<'_> {
    let server = row.get("server").and_then(Value::as_str).unwrap_or_default();
    Peer { server, ..described(row.get("tool").unwrap_or(row)) }
}

fn described(tool: &Value) -> Peer<'_> {
    let text = |key| tool.get(key).and_then(Value::as_str).unwrap_or_default();
    Peer { server: "", name: text("name"), description: text("description") }
}

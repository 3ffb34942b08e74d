//! avelino's `serverAuth` and `acl`: authentication and authorization at the gateway.
//!
//! They apply to the gateway only; the local user is the operator. `acl` is called access here.
//! Auth is not in this version: a file that has it can be used, but `capstan serve --http` must not
//! start with it.

use capstan_config::source::expand::join;
use capstan_config::source::problem::{Problem, Report};
use capstan_config::source::tree::{Entry, Node, Table, Value};

use crate::translate::file::Work;
use crate::translate::outline::Outline::{self, Any, List, Number, OneOf, Secrets, Text, Word};

const IDENTITY: Outline = Outline::Table(&[("subject", Text), ("roles", List(&Text))]);

const AUTH: Outline = Outline::Table(&[
    ("providers", List(&Word(&["none", "bearer", "forwarded", "oauth_as"]))),
    ("bearer", Outline::Table(&[("tokens", Secrets(&OneOf(&[Text, IDENTITY])))])),
    (
        "forwarded",
        Outline::Table(&[
            ("header", Text),
            ("groups_header", Text),
            ("trustedSourceCidrs", List(&Text)),
        ]),
    ),
    (
        "oauthAs",
        Outline::Table(&[
            ("issuerUrl", Text),
            ("jwtSecret", Text),
            ("trustedUserHeader", Text),
            ("trustedGroupsHeader", Text),
            ("trustedSourceCidrs", List(&Text)),
            ("accessTokenTtlSeconds", Number),
            ("refreshTokenTtlSeconds", Number),
            ("authorizationCodeTtlSeconds", Number),
            ("scopesSupported", List(&Text)),
            ("redirectUriAllowlist", List(&Text)),
            ("injectedRoles", List(&Text)),
        ]),
    ),
    ("acl", Any),
]);

pub(super) fn read(work: &mut Work<'_>) {
    let auth = work.raw.get("serverAuth");
    let nested = auth.and_then(|entry| entry.node.as_table()).and_then(|table| table.get("acl"));
    if let Some(auth) = auth {
        AUTH.check(&auth.node, "serverAuth", &mut work.report);
        if let Some(table) = auth.node.as_table() {
            providers(&mut work.report, table);
            if asks_for_auth(table) {
                refuse(work, "serverAuth", auth, "authentication at the gateway");
            }
        }
    }
    let top = work.raw.get("acl");
    if let (Some(_), Some(top)) = (nested, top) {
        let problem =
            Problem::error("`acl` is both at the top and in `serverAuth`").help("keep one of them");
        work.report.add(problem, "acl", &top.key);
        return;
    }
    for (path, entry) in [("serverAuth.acl", nested), ("acl", top)] {
        let Some(entry) = entry else { continue };
        acl(work, path, entry);
    }
}

/// Checks that each provider has its settings, and refuses the older key `provider`.
fn providers(report: &mut Report<'_>, auth: &Table) {
    if let Some(entry) = auth.get("provider") {
        let path = "serverAuth.provider";
        let message = format!("`{path}` is an older key that would leave the gateway open");
        let word = entry.node.as_text().unwrap_or("bearer");
        let problem = Problem::error(message).help(format!("write `\"providers\": [\"{word}\"]`"));
        report.add(problem, path, &entry.key);
    }
    let Some(list) = auth.get("providers") else { return };
    for node in list.node.as_list().unwrap_or_default() {
        let block = match node.as_text() {
            Some("bearer") => "bearer",
            Some("oauth_as") => "oauthAs",
            Some(_) | None => continue,
        };
        if auth.get(block).is_none() {
            let word = node.as_text().unwrap_or_default();
            let problem = Problem::error(format!("`{word}` needs `serverAuth.{block}`"))
                .help(format!("add `{block}`, or remove `{word}` from `providers`"));
            report.add(problem, "serverAuth.providers", &node.span);
        }
    }
}

fn asks_for_auth(auth: &Table) -> bool {
    let open = |node: &Node| node.as_text() == Some("none");
    auth.get("providers")
        .and_then(|entry| entry.node.as_list())
        .is_some_and(|list| !list.iter().all(open))
}

/// Translates access rules.
///
/// They differ from native ones in one key, and in the meaning of empty lists.
fn acl(work: &mut Work<'_>, path: &str, entry: &Entry) {
    let mut entry = Entry { path: Some(path.to_owned()), ..entry.clone() };
    if let Value::Table(table) = &mut entry.node.value {
        if let Some(ours) = table.get("strict") {
            let key = join(path, "strict");
            let problem = Problem::error(format!("`{key}` is not a known key"))
                .help("did you mean `strictClassification`?");
            work.report.add(problem, key, &ours.key);
        }
        if let Some(mut strict) = table.entries.shift_remove("strictClassification") {
            strict.path = Some(join(path, "strictClassification"));
            table.put("strict", strict);
        }
        for (key, list) in [("roles", None), ("subjects", Some("extra"))] {
            let Some(Value::Table(all)) =
                table.entries.get_mut(key).map(|entry| &mut entry.node.value)
            else {
                continue;
            };
            for entry in all.entries.values_mut() {
                widen(&mut entry.node, list);
            }
        }
    }
    work.tree.put("access", entry);
}

/// Removes the empty lists of grants: avelino treats them as absent.
fn widen(node: &mut Node, list: Option<&str>) {
    let node = match (list, &mut node.value) {
        (None, _) => Some(node),
        (Some(key), Value::Table(table)) => table.entries.get_mut(key).map(|it| &mut it.node),
        (Some(_), _) => None,
    };
    let Some(Value::List(grants)) = node.map(|node| &mut node.value) else { return };
    for grant in grants {
        let Value::Table(grant) = &mut grant.value else { continue };
        grant.entries.retain(|key, entry| {
            let narrows = ["tools", "resources", "prompts"].contains(&key.as_str());
            !(narrows && entry.node.as_list().is_some_and(<[Node]>::is_empty))
        });
    }
}

fn refuse(work: &mut Work<'_>, path: &str, entry: &Entry, what: &str) {
    let message = format!("`{path}` asks for {what}, which this version does not enforce");
    let help = "`capstan serve --http` does not start with it; other commands do not need it";
    let at = Some(work.file.place(&entry.key));
    let key = Some(path.to_owned());
    let problem = Problem { place: at, key, ..Problem::error(message.clone()).help(help) };
    work.conventions.gateway.push(problem);
    work.report.add(Problem::warning(message).help(help), path, &entry.key);
}

//! avelino's `serverAuth` and `acl`: authentication and authorization at the gateway.
//!
//! They apply to the gateway only; the local user is the operator. `acl` is called access here.

use capstan_config::source::expand::join;
use capstan_config::source::problem::{Problem, Report};
use capstan_config::source::tree::{Entry, Node, Table, Value};

use crate::translate::file::Work;
use crate::translate::outline::Outline::{self, Any, List, Number, OneOf, Secrets, Text};

const IDENTITY: Outline = Outline::Table(&[("subject", Text), ("roles", List(&Text))]);

const AUTH: Outline = Outline::Table(&[
    ("providers", List(&Text)),
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

/// Keys of `forwarded` that have another name here.
const FORWARDED: &[(&str, &str)] = &[("trustedSourceCidrs", "trusted_source_cidrs")];

/// Keys of `oauthAs`, with their names here.
const OAUTH_AS: &[(&str, &str)] = &[
    ("issuerUrl", "issuer_url"),
    ("jwtSecret", "jwt_secret"),
    ("trustedUserHeader", "trusted_user_header"),
    ("trustedGroupsHeader", "trusted_groups_header"),
    ("trustedSourceCidrs", "trusted_source_cidrs"),
    ("accessTokenTtlSeconds", "access_token_ttl"),
    ("refreshTokenTtlSeconds", "refresh_token_ttl"),
    ("authorizationCodeTtlSeconds", "authorization_code_ttl"),
    ("scopesSupported", "scopes_supported"),
    ("redirectUriAllowlist", "redirect_uri_allowlist"),
    ("injectedRoles", "injected_roles"),
];

pub(super) fn read(work: &mut Work<'_>) {
    let auth = work.raw.get("serverAuth");
    let nested = auth.and_then(|entry| entry.node.as_table()).and_then(|table| table.get("acl"));
    if let Some(auth) = auth {
        AUTH.check(&auth.node, "serverAuth", &mut work.report);
        if let Some(table) = auth.node.as_table() {
            self::auth(work, auth, table);
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

/// Translates the settings of authentication, whose tables and values are the same.
fn auth(work: &mut Work<'_>, entry: &Entry, table: &Table) {
    let mut translated = translate(table, "serverAuth", &[("oauthAs", "oauth_as"), ("acl", "")]);
    for (key, names) in [("forwarded", FORWARDED), ("oauth_as", OAUTH_AS)] {
        let Some(entry) = translated.entries.get_mut(key) else { continue };
        let path = entry.path.clone().unwrap_or_default();
        let Value::Table(block) = &entry.node.value else { continue };
        let mut block = translate(block, &path, names);
        for (key, entry) in &mut block.entries {
            if let (true, Some(seconds)) = (key.ends_with("_ttl"), entry.node.as_number()) {
                entry.node = Node::text(format!("{seconds}s"), entry.node.span.clone());
            }
        }
        entry.node.value = Value::Table(block);
    }
    required(&mut work.report, &translated);
    let node = Node { value: Value::Table(translated), span: entry.node.span.clone() };
    work.put("gateway", "auth", "serverAuth".to_owned(), &Entry { node, ..entry.clone() });
}

/// Renames the keys of a table; one that becomes empty is left out.
fn translate(table: &Table, path: &str, names: &[(&str, &str)]) -> Table {
    let mut translated = Table::default();
    for (key, entry) in &table.entries {
        let renamed = names.iter().find(|(theirs, _)| theirs == key).map(|(_, ours)| *ours);
        if renamed != Some("") {
            let entry = Entry { path: Some(join(path, key)), ..entry.clone() };
            translated.put(renamed.unwrap_or(key), entry);
        }
    }
    translated
}

/// Reports keys that avelino requires and a native file does not.
fn required(report: &mut Report<'_>, auth: &Table) {
    let Some(entry) = auth.get("oauth_as") else { return };
    let Some(table) = entry.node.as_table() else { return };
    for (key, ours) in [
        ("issuerUrl", "issuer_url"),
        ("jwtSecret", "jwt_secret"),
        ("trustedSourceCidrs", "trusted_source_cidrs"),
    ] {
        if table.get(ours).is_none() {
            let message = format!("`serverAuth.oauthAs` has no `{key}`");
            let problem = Problem::error(message).help(format!("add `{key}`"));
            report.add(problem, "serverAuth.oauthAs", &entry.key);
        }
    }
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

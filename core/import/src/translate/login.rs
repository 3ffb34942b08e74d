//! Translates the settings of a login, which every program spells differently.

use capstan_config::nearest;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Table, Value};

use super::server::One;

/// Keys of a login and their native names; those without a native name are ignored.
pub(crate) type Words = &'static [(&'static str, Option<&'static str>)];

impl One<'_> {
    /// Translates a table of login settings.
    ///
    /// An unknown key is an error, as in all settings that decide who may do what.
    pub(crate) fn login(&mut self, key: &str, words: Words) {
        let Some(entry) = self.raw.get(key) else { return };
        match &entry.node.value {
            Value::Bool(false) => self.put_text("oauth", key, "off"),
            Value::Bool(true) => self.put_text("oauth", key, "auto"),
            Value::Table(table) => match table.get("enabled").map(|entry| entry.node.as_bool()) {
                Some(Some(false)) => self.put_text("oauth", key, "off"),
                Some(_) | None => self.login_table(key, table, words),
            },
            Value::Text(_) | Value::Number(_) | Value::Moment(_) | Value::Null | Value::List(_) => {
                let path = join(&self.path, key);
                let what = entry.node.value.what();
                let problem = Problem::error(format!("`{path}` must be a table, not {what}"))
                    .help("remove it; you are asked when a login is needed");
                self.warn(key, problem);
            }
        }
    }

    /// Translates login settings that are among the other keys of the server.
    pub(crate) fn flat_login(&mut self, words: &[(&str, &str)]) {
        for (key, ours) in words {
            if let Some(entry) = self.raw.get(key) {
                self.put_login(key, ours, join(&self.path, key), entry);
            }
        }
    }

    fn login_table(&mut self, key: &str, table: &Table, words: Words) {
        for (word, entry) in &table.entries {
            let path = join(&join(&self.path, key), word);
            match words.iter().find(|(known, _)| known == word) {
                Some((_, Some(ours))) => self.put_login(key, ours, path, entry),
                Some((_, None)) => {}
                None if word == "enabled" => {}
                None => {
                    let nearest = nearest(word, words.iter().map(|(known, _)| *known));
                    let help = match nearest {
                        Some(nearest) => format!("did you mean `{nearest}`?"),
                        None => "remove it".to_owned(),
                    };
                    let problem = Problem::error(format!("`{path}` is not a known key"));
                    self.report.add(problem.help(help), path, &entry.key);
                }
            }
        }
    }

    fn put_login(&mut self, key: &str, ours: &str, path: String, entry: &Entry) {
        if self.out.table("oauth_config").is_none() {
            let span = self.span(key);
            self.put("oauth_config", key, Node { value: Value::Table(Table::default()), span });
        }
        let mut node = entry.node.clone();
        // Some programs write the scopes as one string, as the protocol does.
        if let ("scopes", Some(text)) = (ours, node.as_text()) {
            let scopes = text.split_whitespace().map(|scope| Node::text(scope, node.span.clone()));
            node = Node::list(scopes.collect(), node.span.clone());
        }
        if let Some(config) = self.out.entries.get_mut("oauth_config")
            && let Value::Table(table) = &mut config.node.value
        {
            table.put(ours, Entry { path: Some(path), ..Entry::new(entry.key.clone(), node) });
        }
    }
}

//! Words that mean the same in requests for tools.
//!
//! People and the authors of tools choose different verbs for one action, and different common nouns
//! for one object. The groups have no names of products: these must match as they are written.

use rustc_hash::FxHashMap;

use super::words::Words;

const GROUPS: &[&[&str]] = &[
    // Actions.
    &["find", "search", "look", "lookup", "query", "discover", "seek", "locate"],
    &[
        "get", "fetch", "retrieve", "show", "read", "give", "display", "view", "obtain", "check",
        "return", "tell", "see", "pull",
    ],
    &["create", "add", "make", "new", "insert", "generate", "build", "define", "write", "register"],
    &["delete", "remove", "drop", "erase", "clear", "destroy", "discard"],
    &["update", "edit", "modify", "change", "set", "rename", "alter", "patch", "adjust"],
    &["list", "enumerate", "every"],
    &["send", "email", "mail", "message", "notify"],
    &["run", "execute", "launch", "start", "invoke", "trigger"],
    &["stop", "cancel", "end", "terminate", "kill", "abort", "pause"],
    &["convert", "transform", "translate", "turn"],
    &["calculate", "compute", "calc"],
    &["summarize", "summary", "summarise", "recap", "overview"],
    &["buy", "purchase", "order", "shop"],
    &["download", "save"],
    &["upload", "put"],
    // Objects.
    &["picture", "image", "photo", "img", "photograph"],
    &["movie", "film"],
    &["song", "music", "track"],
    &["doc", "document", "file"],
    &["folder", "directory", "dir"],
    &["repo", "repository"],
    &["code", "program", "script", "snippet"],
    &["ticket", "issue", "bug"],
    &["tag", "label"],
    &["note", "memo"],
    &["database", "db", "sql", "table"],
    &["spreadsheet", "excel", "xlsx", "sheet"],
    &["presentation", "powerpoint", "slide", "ppt"],
    &["chart", "graph", "plot", "diagram"],
    &["website", "webpage", "page", "web", "site", "url", "link"],
    &["news", "headline", "article"],
    &["paper", "research", "publication", "study"],
    &["details", "info", "information", "metadata"],
    &["user", "account", "member", "people", "person"],
    &["schedule", "calendar", "event", "meeting", "appointment"],
    &["map", "location", "place", "address", "geocode", "coordinate"],
    &["route", "direction", "navigate", "path"],
    &["weather", "forecast", "temperature", "climate"],
    &["stock", "share", "ticker", "equity"],
    &["price", "cost", "quote"],
    &["crypto", "cryptocurrency", "coin", "token", "bitcoin"],
    &["restaurant", "food", "dining", "eat"],
    &["flight", "plane", "airline", "airfare"],
    &["hotel", "accommodation", "lodging", "stay"],
    &["job", "career", "vacancy"],
    &["drug", "medication", "medicine"],
];

/// The stems of all groups.
pub(crate) struct Synonyms {
    groups: Vec<Vec<String>>,
    of: FxHashMap<String, Vec<usize>>,
}

// === impl Synonyms ===

impl Synonyms {
    pub(crate) fn new(words: &Words) -> Self {
        let stems =
            |group: &&[&str]| group.iter().map(|word| words.stem(word).into_owned()).collect();
        let groups: Vec<Vec<String>> = GROUPS.iter().map(stems).collect();
        let mut of: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for (number, group) in groups.iter().enumerate() {
            for stem in group {
                of.entry(stem.clone()).or_default().push(number);
            }
        }
        Self { groups, of }
    }

    /// The stems that mean the same as this one, with itself.
    pub(crate) fn of(&self, stem: &str) -> impl Iterator<Item = &str> {
        let groups = self.of.get(stem).map(Vec::as_slice).unwrap_or_default();
        let groups = groups.iter().filter_map(|number| self.groups.get(*number));
        groups.flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_are_found_by_their_stems() {
        let words = Words::new();
        let synonyms = Synonyms::new(&words);
        let of = |word: &str| synonyms.of(&words.stem(word)).map(str::to_owned).collect::<Vec<_>>();
        assert!(of("deletes").contains(&"remov".to_owned()));
        assert!(of("films").contains(&"movi".to_owned()));
        assert!(of("kubernetes").is_empty());
    }
}

//! Subcommands that may be used: the hard limit of `cli_only`.

/// The subcommands that may be used.
#[derive(Clone, Debug)]
pub(crate) struct Allowed(Option<Vec<Vec<String>>>);

// === impl Allowed ===

impl Allowed {
    /// Parses the list; each entry has the words of a subcommand.
    pub(crate) fn new(only: Option<&[String]>) -> Self {
        let words = |entry: &String| entry.split_whitespace().map(str::to_owned).collect();
        Self(only.map(|only| only.iter().map(words).collect()))
    }

    /// True if this subcommand may be run: it, or one that it belongs to, is listed.
    pub(crate) fn runs(&self, path: &[String]) -> bool {
        let Some(only) = &self.0 else { return true };
        only.iter().any(|entry| !entry.is_empty() && path.starts_with(entry))
    }

    /// True if a subcommand below this one may be run.
    pub(crate) fn leads_on(&self, path: &[String]) -> bool {
        let Some(only) = &self.0 else { return true };
        self.runs(path) || only.iter().any(|entry| entry.starts_with(path))
    }

    /// True if exactly this subcommand is listed.
    pub(crate) fn names(&self, path: &[String]) -> bool {
        self.0.as_ref().is_some_and(|only| only.iter().any(|entry| entry == path))
    }

    /// The next words after `path` that the list names.
    pub(crate) fn next(&self, path: &[String]) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for entry in self.0.iter().flatten().filter(|entry| entry.starts_with(path)) {
            if let Some(word) = entry.get(path.len())
                && !word.starts_with('-')
                && !words.contains(word)
            {
                words.push(word.clone());
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn only_what_is_listed_and_what_belongs_to_it_may_be_run() {
        let only = ["get".to_owned(), "config view".to_owned()];
        let allowed = Allowed::new(Some(&only));
        for runs in ["get", "get pods", "config view"] {
            assert!(allowed.runs(&path(runs)), "{runs}");
        }
        for refused in ["", "delete", "config", "config set", "ge", "getx", "GET", "view"] {
            assert!(!allowed.runs(&path(refused)), "{refused}");
        }
        assert!(allowed.leads_on(&path("config")) && !allowed.leads_on(&path("delete")));
    }

    #[test]
    fn an_empty_list_allows_nothing_and_no_list_everything() {
        assert!(!Allowed::new(Some(&[])).runs(&path("get")));
        assert!(!Allowed::new(Some(&[String::new()])).runs(&path("get")));
        assert!(Allowed::new(None).runs(&path("get")));
    }

    #[test]
    fn a_flag_in_the_list_is_never_a_word_to_type() {
        let only = ["-c".to_owned(), "get --all".to_owned()];
        let allowed = Allowed::new(Some(&only));
        assert_eq!(allowed.next(&[]), ["get"]);
        assert!(allowed.next(&path("get")).is_empty());
    }
}

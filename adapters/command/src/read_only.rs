//! Decides which subcommands may only read.
//!
//! The name of a program with subcommands says nothing about them (`apt-get` is not a read), and
//! words that mean a read elsewhere write files here: on a command line, fetched, formatted or
//! extracted data goes into files. So a subcommand counts as a write unless its own words, or the
//! first word of its description, are known to read. A subcommand that may read is then classified
//! like any other tool.

/// Words of subcommands that read.
const WORDS: &[&str] = &[
    "blame", "cat", "count", "depends", "describe", "diff", "du", "events", "explain", "find",
    "get", "grep", "head", "history", "images", "info", "inspect", "list", "log", "logs", "ls",
    "man", "ping", "policy", "ps", "query", "rdepends", "search", "show", "showpkg", "stat",
    "stats", "status", "tail", "top", "tree", "version", "view", "wc", "which", "who", "whoami",
];

/// First words of descriptions of reading commands, without the `s` of the third person.
const VERBS: &[&str] = &[
    "compare",
    "count",
    "describe",
    "diff",
    "display",
    "enumerate",
    "examine",
    "explain",
    "find",
    "get",
    "inspect",
    "is",
    "list",
    "locate",
    "look",
    "output",
    "print",
    "query",
    "read",
    "report",
    "return",
    "search",
    "show",
    "summarize",
    "tell",
    "view",
];

/// True if a subcommand, or a program without any, may be one that only reads.
pub(crate) fn may_read(binary: &str, path: &[String], summary: &str) -> bool {
    let is_known = |word: &str| WORDS.contains(&word.to_ascii_lowercase().as_str());
    let looks = match path {
        // The complete name: `ls` reads, `apt-get` does not.
        [] => is_known(binary),
        [.., last] => last.split(|c: char| !c.is_ascii_alphanumeric()).any(is_known),
    };
    if looks {
        return true;
    }
    let first = summary.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    let first = first.unwrap_or_default().to_lowercase();
    let stem = first.strip_suffix('s').unwrap_or(&first);
    VERBS.contains(&first.as_str()) || VERBS.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, summary: &str) -> bool {
        let mut words = line.split(' ').map(ToOwned::to_owned);
        let binary = words.next().unwrap();
        may_read(&binary, &words.collect::<Vec<_>>(), summary)
    }

    #[test]
    fn what_looks_at_things_may_read() {
        for (line, summary) in [
            ("git status", ""),
            ("git ls-files", ""),
            ("git rev-list", "Lists commit objects in reverse chronological order"),
            ("docker logs", "Fetch the logs of a container"),
            ("kubectl get", "Display one or many resources"),
            ("apt-cache policy", ""),
            ("terraform state list", "List resources in the state"),
            ("ls", ""),
            ("file", "Prints the type of files"),
        ] {
            assert!(check(line, summary), "{line}: {summary}");
        }
    }

    #[test]
    fn everything_else_is_said_to_write() {
        for (line, summary) in [
            ("git fetch", "Download objects and refs from another repository"),
            ("git fetch-pack", "Receive missing objects from another repository"),
            ("git mailinfo", "Extracts patch and authorship from a single e-mail message"),
            ("git list-and-go drop", ""),
            ("cargo fmt", "Formats all bin and lib files of the current crate using rustfmt."),
            ("cargo fetch", "Fetch dependencies of a package from the network"),
            ("cargo clippy", "Checks a package to catch common mistakes"),
            ("apt-get update", "Retrieve new lists of packages"),
            ("apt-get source", "Download source archives"),
            ("apt-get", ""),
            ("tar", "GNU 'tar' saves many files together into a single tape or disk archive"),
            ("prog frobnicate", ""),
            ("prog encode", "Encodes a file"),
        ] {
            assert!(!check(line, summary), "{line}: {summary}");
        }
    }
}

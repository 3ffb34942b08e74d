//! Looks into documents: headings and links.

/// A link of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The line, counted from 1.
    pub line: usize,
    /// Where it points to, as written.
    pub target: String,
}

/// The headings of the second level, in order.
pub fn headings(text: &str) -> Vec<&str> {
    prose(text).filter_map(|(_, line)| line.strip_prefix("## ")).map(str::trim).collect()
}

/// Every link outside code, in order.
pub fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let plain = without_code(line);
        let inline = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let defined = plain
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]:"))
            .map(|(_, target)| target.trim());
        for target in inline.chain(defined) {
            let target = target.split_whitespace().next().unwrap_or_default();
            let target = target.trim_matches(['<', '>']).to_owned();
            found.push(Link { line: number, target });
        }
    }
    found
}

// === impl Link ===

impl Link {
    /// The file that the link points to, if it points into the repository.
    pub fn file(&self) -> Option<&str> {
        let file = self.target.split('#').next().unwrap_or_default();
        let outside = self.target.contains("://") || self.target.starts_with("mailto:");
        (!outside && !file.is_empty()).then_some(file)
    }
}

/// The lines outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let fence = line.trim_start().starts_with("```");
        let shown = !fenced && !fence;
        fenced ^= fence;
        shown.then_some((number, line))
    })
}

/// The line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = links(text);
        let files: Vec<_> = found.iter().filter_map(Link::file).collect();
        assert_eq!(files, expected, "in\n{text}");
    }

    #[test]
    fn links_into_the_repository_are_found() {
        check("See [a](docs/a.md) and [`b`](../b.md#part \"title\").", &["docs/a.md", "../b.md"]);
        check("![picture](<docs/road.svg>)", &["docs/road.svg"]);
        check("[adr]: docs/adr/0001.md", &["docs/adr/0001.md"]);
    }

    #[test]
    fn links_elsewhere_and_code_are_not() {
        check("[a](https://example.org/x.md) [b](#below) [c](mailto:a@example.org)", &[]);
        check("`[a](b.md)`\n```text\n[a](b.md)\n```", &[]);
    }

    #[test]
    fn headings_in_code_do_not_count() {
        assert_eq!(
            headings("# T\n## Context\n```sh\n## not\n```\n## Decision \n"),
            ["Context", "Decision"]
        );
    }
}

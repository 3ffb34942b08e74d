//! Looks into documents: headings, links and code.

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

/// The anchors of all headings, as GitHub and mdBook make them.
///
/// Of headings with the same words, the second gets `-1`, the third `-2`.
pub fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let titles = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
    });
    for title in titles {
        let slug: String = without_targets(title)
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .flat_map(char::to_lowercase)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let taken = |candidate: &String| found.contains(candidate);
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let anchor = std::iter::once(slug.clone()).chain(numbered).find(|a| !taken(a));
        found.extend(anchor);
    }
    found
}

/// Every fenced block of code, in order.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (line, number) in text.lines().zip(1..) {
        let fence = line.trim_start().strip_prefix("```");
        match (open.take(), fence) {
            (None, Some(language)) => {
                let language = language.trim().to_owned();
                open = Some(Block { line: number, language, lines: Vec::new() });
            }
            (None, None) => {}
            (Some(block), Some(_)) => found.push(block),
            (Some(mut block), None) => {
                block.lines.push(line.to_owned());
                open = Some(block);
            }
        }
    }
    found
}

/// Every piece of code between backticks in a line, with the number of the line.
pub fn inline_code(text: &str) -> Vec<(usize, &str)> {
    let pieces =
        |(number, line)| str::split(line, '`').skip(1).step_by(2).map(move |c| (number, c));
    prose(text).flat_map(pieces).collect()
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

/// A fenced block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of the opening fence, counted from 1.
    pub line: usize,
    /// The word behind the opening fence, such as `sh`.
    pub language: String,
    /// The lines between the fences.
    pub lines: Vec<String>,
}

// === impl Link ===

impl Link {
    /// The file that the link points to, if it points into the repository.
    pub fn file(&self) -> Option<&str> {
        let file = self.target.split('#').next().unwrap_or_default();
        let outside = self.target.contains("://") || self.target.starts_with("mailto:");
        (!outside && !file.is_empty()).then_some(file)
    }

    /// The heading that the link points to, if it points into the repository.
    pub fn anchor(&self) -> Option<&str> {
        let inside = !self.target.contains("://");
        self.target.split_once('#').map(|(_, anchor)| anchor).filter(|_| inside)
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

/// The words of a title, with links replaced by their texts.
fn without_targets(title: &str) -> String {
    title.split("](").enumerate().fold(String::new(), |shown, (at, piece)| {
        let rest = if at == 0 { piece } else { piece.split_once(')').map_or(piece, |(_, r)| r) };
        shown + rest
    })
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

    #[test]
    fn anchors_are_the_words_of_headings() {
        let text = "# A b\n## `x.y`, and *z*\n### A b\n## See [c](d.md)\n```sh\n# no\n```\n#no\n";
        assert_eq!(anchors(text), ["a-b", "xy-and-z", "a-b-1", "see-c"]);
    }

    #[test]
    fn blocks_have_their_language_and_lines() {
        let found = blocks("a\n```sh\nb\n\nc\n```\n    ```\n    d\n    ```\n");
        let shown: Vec<_> =
            found.iter().map(|b| (b.line, b.language.as_str(), b.lines.join("|"))).collect();
        assert_eq!(shown, [(2, "sh", "b||c".to_owned()), (7, "", "    d".to_owned())]);
    }

    #[test]
    fn inline_code_is_found_outside_of_blocks() {
        assert_eq!(inline_code("a `b` c `d e`\n```\n`f`\n```"), [(1, "b"), (1, "d e")]);
    }
}

//! The last lines that a server wrote to its stderr.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::ServerName;
use capstan_safety::clean::visible;
use capstan_safety::mask::{Masker, mask_prose};
use tokio::io::AsyncRead;
use tracing::info;

use crate::line::Lines;

/// The number of lines kept.
const KEPT: usize = 200;

/// The longest line kept, in bytes; the rest is dropped.
const MAX_KEPT: usize = 4 * 1024;

/// The longest line processed, in bytes.
/// It is longer than what is kept, so that a secret is masked before it can be cut.
const MAX_READ: usize = 64 * 1024;

/// Part of the last line of npm, which only names a file; the reason is in an earlier one.
const NPM_LOG: &str = "A complete log of this run can be found in";

/// A ring buffer of the last lines, shared by the reader and the code that shows them.
#[derive(Clone, Debug, Default)]
pub struct Ring(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    /// The number of lines, counted from the end, that are from the current process.
    fresh: usize,
}

// === impl Ring ===

impl Ring {
    /// The lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.kept().lines.iter().cloned().collect()
    }

    /// The last non-empty line of the current process.
    pub fn last(&self) -> Option<String> {
        self.kept().last()
    }

    /// The lines of the current process, oldest first.
    pub fn fresh(&self) -> Vec<String> {
        let kept = self.kept();
        let old = kept.lines.len().saturating_sub(kept.fresh);
        kept.lines.iter().skip(old).cloned().collect()
    }

    /// Marks the start of another process's output.
    pub fn begin(&self) {
        self.kept().fresh = 0;
    }

    fn push(&self, line: String) {
        let mut kept = self.kept();
        if kept.lines.len() == KEPT {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
        kept.fresh = kept.fresh.saturating_add(1);
    }

    /// Reads `stream` to its end, whatever arrives. A server may exit if its stderr is closed.
    pub async fn fill(
        self,
        stream: impl AsyncRead + Unpin,
        server: ServerName,
        masker: Arc<Masker>,
    ) {
        let mut lines = Lines::new(stream, MAX_READ);
        while let Ok(Some(line)) = lines.next_cut().await {
            let line = masker.mask(&String::from_utf8_lossy(&line));
            // Masks everything else that looks like a secret: clients may be shown a server's last
            // output.
            let mut line = mask_prose(&line).into_owned();
            line.truncate(line.floor_char_boundary(MAX_KEPT));
            info!(target: "capstan::stderr", %server, "{}", visible(&line));
            self.push(line);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Kept ===

impl Kept {
    fn last(&self) -> Option<String> {
        let fresh = || self.lines.iter().rev().take(self.fresh);
        let last = fresh().find(|line| !line.trim().is_empty())?;
        let reason = || fresh().rev().find(|line| is_npm_reason(line));
        let says_where = last.starts_with("npm ") && last.contains(NPM_LOG);
        Some(if says_where { reason().unwrap_or(last) } else { last }.clone())
    }
}

/// True for a line of npm that says what failed, and not only its code or its path.
fn is_npm_reason(line: &str) -> bool {
    let said = line.strip_prefix("npm error ").or_else(|| line.strip_prefix("npm ERR! "));
    let details = ["code ", "syscall ", "path ", "errno ", NPM_LOG];
    said.is_some_and(|said| !details.iter().any(|detail| said.starts_with(detail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_words_of_npm_are_the_reason_and_not_the_place_of_its_log() {
        let log = "npm error A complete log of this run can be found in: /home/me/x.log\n";
        for (said, expected) in [
            (
                "npm error code E404\nnpm error 404 Not Found - GET https://r/x\nnpm error 404\n",
                "npm error 404 Not Found - GET https://r/x",
            ),
            ("npm error code X\n", "npm error A complete log of this run"),
        ] {
            let ring = Ring::default();
            fill(&ring, &format!("{said}{log}")).await;
            let last = ring.last().unwrap();
            assert!(last.starts_with(expected), "{last}");
        }
    }

    async fn fill(ring: &Ring, text: &str) {
        let masker = Arc::new(Masker::new(["hunter22".to_owned()]));
        ring.clone().fill(text.as_bytes(), "s".parse().unwrap(), masker).await;
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept_and_secrets_are_masked() {
        let text: Vec<_> = (0..300).map(|n| format!("line {n} hunter22")).collect();
        let ring = Ring::default();
        fill(&ring, &text.join("\n")).await;
        let lines = ring.lines();
        assert_eq!(lines.len(), KEPT);
        assert_eq!(lines.first().map(String::as_str), Some("line 100 ***"));
        assert_eq!(ring.last().as_deref(), Some("line 299 ***"));
    }

    #[tokio::test]
    async fn tokens_that_nobody_has_declared_are_masked_too() {
        let ring = Ring::default();
        let token = format!("ghp_{}", "a1B2".repeat(9));
        fill(&ring, &format!("boom token {token} and more")).await;
        let last = ring.last().unwrap();
        assert!(!last.contains(&token) && last.contains("boom"), "{last}");
    }

    #[tokio::test]
    async fn a_line_is_cut_after_its_secrets_are_masked_and_the_next_one_is_read() {
        let ring = Ring::default();
        let begin = "x".repeat(MAX_KEPT - 4);
        let rest = "y".repeat(3 * MAX_READ);
        fill(&ring, &format!("{begin}hunter22{rest}\nnext\n")).await;
        let lines = ring.lines();
        let [long, next] = lines.as_slice() else { panic!("{} lines", lines.len()) };
        assert_eq!((long.len(), next.as_str()), (MAX_KEPT, "next"));
        assert_eq!(long.strip_prefix(&begin), Some("***y"));
    }

    #[tokio::test]
    async fn the_last_words_are_those_of_the_process_that_runs_now() {
        let ring = Ring::default();
        fill(&ring, "of the first\n").await;
        ring.begin();
        assert_eq!(ring.last(), None);
        fill(&ring, "of the second\n\n").await;
        assert_eq!(ring.last().as_deref(), Some("of the second"));
        assert_eq!(ring.lines(), ["of the first", "of the second", ""]);
    }
}

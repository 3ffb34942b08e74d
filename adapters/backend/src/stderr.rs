//! The last lines that a server wrote to its stderr.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use capstan_model::ServerName;
use tokio::io::AsyncRead;
use tracing::info;

use crate::line::Lines;
use crate::mask::Masker;

/// Lines kept.
const KEPT: usize = 200;

/// Longest line kept, in bytes; the rest of it is left out.
const MAX_KEPT: usize = 4 * 1024;

/// Longest line read at all.
const MAX_READ: usize = 1024 * 1024;

/// The last lines, shared between the reader and whoever shows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring(Arc<Mutex<VecDeque<String>>>);

// === impl Ring ===

impl Ring {
    /// The lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The last line that says something.
    pub(crate) fn last(&self) -> Option<String> {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.iter().rev().find(|line| !line.trim().is_empty()).cloned()
    }

    fn push(&self, line: String) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.len() == KEPT {
            ring.pop_front();
        }
        ring.push_back(line);
    }

    /// Reads `stream` to its end, or until a line does not end.
    pub(crate) async fn fill(
        self,
        stream: impl AsyncRead + Unpin,
        server: ServerName,
        masker: Arc<Masker>,
    ) {
        let mut lines = Lines::new(stream, MAX_READ);
        while let Ok(Some(line)) = lines.next().await {
            let text = String::from_utf8_lossy(&line);
            let cut = text.get(..text.floor_char_boundary(MAX_KEPT)).unwrap_or_default();
            let line = masker.mask(cut);
            info!(target: "capstan::stderr", server = %server, "{line}");
            self.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_lines_are_kept_and_secrets_are_masked() {
        let text: String = (0..300).map(|n| format!("line {n} hunter22\n")).collect();
        let ring = Ring::default();
        let masker = Arc::new(Masker::new(["hunter22".to_owned()]));
        ring.clone().fill(text.as_bytes(), "s".parse().unwrap(), masker).await;
        let lines = ring.lines();
        assert_eq!(lines.len(), KEPT);
        assert_eq!(lines.first().map(String::as_str), Some("line 100 ***"));
        assert_eq!(ring.last().as_deref(), Some("line 299 ***"));
    }
}

//! Shows a person that something is going on, once it takes longer than half a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::clean::clean;
use crate::print::{Printer, stderr_is_terminal};

/// Nobody is bothered with a spinner for less than this.
const DELAY: Duration = Duration::from_millis(500);

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// A spinner that may not have been shown yet. It vanishes when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Waiting(Arc<Inner>);

struct Inner {
    bar: Option<ProgressBar>,
    message: Mutex<String>,
}

// === impl Waiting ===

impl Waiting {
    /// Starts to wait for something.
    pub(crate) fn new(print: Printer, message: &str) -> Self {
        let wanted = stderr_is_terminal() && !print.wants_json();
        let bar = wanted.then(ProgressBar::new_spinner);
        let waiting = Self(Arc::new(Inner { bar, message: Mutex::new(message.to_owned()) }));
        if let Some(bar) = waiting.0.bar.clone() {
            bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
            let inner = Arc::downgrade(&waiting.0);
            tokio::spawn(async move {
                tokio::time::sleep(DELAY).await;
                if let Some(inner) = inner.upgrade() {
                    bar.set_message(
                        inner.message.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                    );
                    bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(TICK);
                }
            });
        }
        waiting
    }

    /// Says what is waited for now.
    pub(crate) fn say(&self, message: &str) {
        let message = clean(message).into_owned();
        self.0.message.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&message);
        if let Some(bar) = &self.0.bar {
            bar.set_message(message);
        }
    }

    /// Shows how far something has come.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.unwrap_or_default();
        match total {
            Some(total) if total > 0.0 => {
                let percent = (done / total * 100.0).clamp(0.0, 100.0);
                self.say(&format!("{percent:3.0} %  {message}"));
            }
            Some(_) | None => self.say(&format!("{done}  {message}")),
        }
        if let Some(bar) = &self.0.bar
            && let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}")
        {
            bar.set_style(style);
        }
    }

    /// Prints or asks something while the spinner steps aside.
    pub(crate) fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.0.bar {
            Some(bar) => bar.suspend(act),
            None => act(),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

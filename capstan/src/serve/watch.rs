//! Triggers a reload when files change, on SIGHUP, or when a project file is approved.

use std::convert::Infallible;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan_app::reload::LiveConfig;
use capstan_files::Watch;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// Time without a change before files are read; saving a file often writes it more than once.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Maximum time for which further changes can delay a reload.
const MAX_DEBOUNCE: Duration = Duration::from_secs(1);

/// Interval at which a project file that awaits approval is checked.
const APPROVED: Duration = Duration::from_secs(1);

/// Follows the configuration while the future is polled.
pub(crate) async fn follow(live: Arc<LiveConfig>) -> Infallible {
    let news = Arc::new(Notify::new());
    let mut watch = watch(&news);
    set(&live, watch.as_mut());
    let hangup = hangup(&news);
    let looked = async {
        // The files may have changed since they were read at startup.
        drop(live.reload().await);
        loop {
            wait(&live, &news).await;
            // Set before the reload, so that changes during it are not missed.
            set(&live, watch.as_mut());
            // `reload` reports its errors itself.
            drop(live.reload().await);
        }
    };
    tokio::select! {
        never = looked => never,
        never = hangup => never,
    }
}

fn watch(news: &Arc<Notify>) -> Option<Watch> {
    let news = Arc::clone(news);
    match Watch::new(move || news.notify_one()) {
        Ok(watch) => Some(watch),
        Err(error) => {
            unwatched(&error);
            None
        }
    }
}

/// Watches every path at which configuration is looked for.
fn set(live: &LiveConfig, watch: Option<&mut Watch>) {
    let Some(watch) = watch else { return };
    let files = live.paths();
    if let Err(error) = watch.set(files.iter().map(PathBuf::as_path)) {
        unwatched(&error);
    }
}

fn unwatched(error: &dyn std::error::Error) {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    tracing::warn!(%error, cause, "changes of the configuration may be missed; SIGHUP reloads it");
}

/// Waits until something may have changed and the debounce time has passed.
async fn wait(live: &LiveConfig, news: &Notify) {
    tokio::select! {
        () = news.notified() => {}
        () = sleep(APPROVED), if live.awaits_approval() => return,
    }
    let last = Instant::now() + MAX_DEBOUNCE;
    loop {
        tokio::select! {
            biased;
            () = sleep_until((Instant::now() + DEBOUNCE).min(last)) => return,
            () = news.notified() => {}
        }
    }
}

/// Triggers a reload on SIGHUP, unless the signal can mean that our terminal is gone.
async fn hangup(news: &Notify) -> Infallible {
    if !std::io::stderr().is_terminal()
        && let Ok(mut hangups) = signal(SignalKind::hangup())
    {
        while hangups.recv().await.is_some() {
            news.notify_one();
        }
    }
    std::future::pending().await
}

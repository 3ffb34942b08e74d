//! The control sockets of running gateways: opens our own, and answers questions at others.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan_app::{AppError, ErrorKind, PendingApprovals, Seen};
use capstan_control::{Control, ControlEndpoint, ControlError, Gateway, find};
use capstan_hub::approvals::{Answer, Answered, OpenQuestion};
use capstan_hub::ports::BoxFuture;
use futures::FutureExt;
use futures::future::{join_all, select_all};
use tokio::task::JoinSet;

use crate::host::LocalHost;
use crate::world::World;

/// Maximum time of one wait for changes; after it, newly started gateways are found too.
const LOOK: Duration = Duration::from_secs(1);

/// The revisions of the lists that were seen, by gateway.
type Marks = HashMap<Gateway, u64>;

/// Opens our socket and answers shells there, until the task is aborted.
pub(crate) fn open(world: &World, endpoint: Arc<dyn ControlEndpoint>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for folder in folders(world) {
        match Control::open(&folder) {
            Ok(control) => {
                tasks.spawn(control.serve(endpoint));
                return tasks;
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let cause = cause.unwrap_or_default();
                tracing::warn!(%error, cause, "there is no control socket");
            }
        }
    }
    tasks
}

/// The folders of sockets, best first.
pub(crate) fn folders(world: &World) -> Vec<PathBuf> {
    let runtime = world.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute() && folder.is_dir());
    let runtime = runtime.map(|folder| folder.join("capstan"));
    runtime.into_iter().chain([world.state().join("run")]).collect()
}

// === impl LocalHost ===

impl LocalHost {
    /// The open questions of the gateways that respond, and the last error of the others.
    async fn look(&self) -> (Seen, Option<ControlError>) {
        let gateways = find(&folders(&self.world));
        let asked = gateways.iter().map(|gateway| async move {
            let listed = gateway.questions().await;
            listed.map(|listed| (gateway.clone(), listed))
        });
        let mut missed = Missed::default();
        let mut seen = Seen { gateways: 0, questions: Vec::new(), mark: Box::new(()) };
        let mut marks = Marks::new();
        for listed in join_all(asked).await {
            let (gateway, (revision, questions)) = match listed {
                Ok(listed) => listed,
                Err(error) => {
                    missed.add(error);
                    continue;
                }
            };
            seen.gateways += 1;
            marks.insert(gateway, revision);
            for question in questions {
                // Approved questions that are not yet used are in the store, which all gateways
                // share.
                if seen.questions.iter().all(|known| known.id != question.id) {
                    seen.questions.push(question);
                }
            }
        }
        seen.mark = Box::new(marks);
        (seen, missed.failed)
    }
}

impl PendingApprovals for LocalHost {
    fn questions(&self) -> BoxFuture<'_, Result<Seen, AppError>> {
        async move {
            match self.look().await {
                (seen, Some(error)) if seen.gateways == 0 => Err(failed(&error)),
                (seen, _) => Ok(seen),
            }
        }
        .boxed()
    }

    fn questions_after(&self, seen: Seen) -> BoxFuture<'_, Result<Seen, AppError>> {
        async move {
            let marks = seen.mark.downcast::<Marks>().map(|marks| *marks).unwrap_or_default();
            let mut looks: Vec<BoxFuture<'_, ()>> = vec![tokio::time::sleep(LOOK).boxed()];
            looks.extend(marks.into_iter().map(|(gateway, revision)| {
                let look = async move {
                    // A gateway that is gone fails at once, so pause before the next attempt.
                    if gateway.questions_after(revision, LOOK).await.is_err() {
                        tokio::time::sleep(LOOK).await;
                    }
                };
                look.boxed()
            }));
            drop(select_all(looks).await);
            Ok(self.look().await.0)
        }
        .boxed()
    }

    fn question<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<OpenQuestion, AppError>> {
        async move {
            let mut missed = Missed::default();
            for gateway in find(&folders(&self.world)) {
                match gateway.question(id).await {
                    Ok(question) => return Ok(question),
                    Err(error) => missed.add(error),
                }
            }
            Err(missed.failure(id))
        }
        .boxed()
    }

    fn answer<'a>(
        &'a self,
        id: &'a str,
        answer: Answer,
    ) -> BoxFuture<'a, Result<(Answered, Option<String>), AppError>> {
        async move {
            let mut missed = Missed::default();
            for gateway in find(&folders(&self.world)) {
                match gateway.answer(id, answer).await {
                    Ok(answered) => return Ok(answered),
                    Err(ControlError::Refused(reason)) => {
                        return Err(AppError::denied(reason));
                    }
                    Err(error) => missed.add(error),
                }
            }
            Err(missed.failure(id))
        }
        .boxed()
    }
}

/// Results of the gateways that do not have a question.
#[derive(Default)]
struct Missed {
    /// Number of running gateways that do not have it.
    running: usize,
    /// The last error of a running gateway.
    failed: Option<ControlError>,
}

// === impl Missed ===

impl Missed {
    fn add(&mut self, error: ControlError) {
        if matches!(error, ControlError::Unknown) {
            self.running += 1;
        } else if is_gone(&error) {
            tracing::debug!(%error, "the connection to a gateway is lost");
        } else {
            self.failed = Some(error);
        }
    }

    fn failure(self, id: &str) -> AppError {
        self.failed.map_or_else(|| unknown(id, self.running), |error| failed(&error))
    }
}

/// True if a socket is left over from a gateway that no longer runs, or is not ours.
fn is_gone(error: &ControlError) -> bool {
    if let ControlError::Io { cause, .. } = error {
        return matches!(cause.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound);
    }
    matches!(error, ControlError::Foreign { .. })
}

/// The error for a gateway that runs but could not be queried.
fn failed(error: &ControlError) -> AppError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let message =
        format!("one of your gateways cannot be reached: {error}{}", cause.unwrap_or_default());
    let hint = "try again; restart it if it is older than this command or does not answer";
    AppError::new(ErrorKind::Internal, message).hint(hint)
}

fn unknown(id: &str, running: usize) -> AppError {
    match running {
        0 => AppError::not_found("no gateway of yours is running")
            .hint("`capstan serve --http` starts one"),
        _ => AppError::not_found(format!("there is no open question `{id}`"))
            .hint("`capstan approvals` lists the open questions; each expires after ten minutes"),
    }
}

//! Open questions in all running gateways of this user, and of gateways that have ended.

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::approvals::{Answer, OpenQuestion, answer_kept, kept_questions};
use capstan_hub::ports::{BoxFuture, Clock, Store};
use futures::FutureExt;
use futures::future::{Either, join_all, select, select_all};

use crate::api::{
    self, AnswerApproval, ApprovalAnswered, Ask, Event, Interact, KnownApprovals, ListApprovals,
    Operation, ShowApproval, run_in,
};
use crate::{AppError, ControlFault, ControlSocket, ControlSockets, ErrorKind};

/// Maximum time of one wait for changes; after it, newly started gateways are found too.
const POLL: Duration = Duration::from_secs(1);

/// Time limit for a gateway to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lists and answers the open questions of all gateways. Running ones are asked first; the store
/// keeps the questions of those that have ended.
pub struct PendingApprovals {
    /// The control sockets.
    pub sockets: Arc<dyn ControlSockets>,
    /// The store of open questions.
    pub store: Arc<dyn Store>,
    /// The clock for time limits.
    pub clock: Arc<dyn Clock>,
}

/// A snapshot of the open questions.
pub struct Pending {
    /// Number of running gateways.
    pub gateways: usize,
    /// The open questions of all gateways.
    pub questions: Vec<OpenQuestion>,
    /// The error of a running gateway that could not be asked, so that its questions are missing.
    pub missed: Option<AppError>,
    /// The revision of each gateway's list, to detect later changes.
    revisions: Vec<(Arc<dyn ControlSocket>, u64)>,
}

/// The front of operations that ask nothing.
struct NoFront;

/// Results of the gateways that do not have a question.
#[derive(Default)]
struct Missed {
    /// Number of running gateways that do not have it.
    running: usize,
    /// The last error of a running gateway.
    failed: Option<AppError>,
    /// The refusal of the gateway that has it.
    denied: Option<AppError>,
}

// === impl PendingApprovals ===

impl PendingApprovals {
    /// The questions that are open now.
    ///
    /// # Errors
    /// If gateways run and none of them can be asked.
    pub async fn list(&self) -> Result<Pending, AppError> {
        match self.look().await {
            Pending { gateways: 0, missed: Some(error), .. } => Err(error),
            pending => Ok(pending),
        }
    }

    /// Waits until the open questions differ from `known`, or for a while, and returns them.
    pub async fn list_after(&self, known: Pending) -> Pending {
        let mut looks: Vec<BoxFuture<'_, ()>> = vec![self.clock.sleep(POLL)];
        looks.extend(known.revisions.into_iter().map(|(socket, revision)| {
            let look = async move {
                let operation =
                    ListApprovals { after: Some(KnownApprovals { revision, wait: POLL }) };
                // A gateway that is gone fails at once, so pause before the next attempt.
                if !matches!(self.ask(&*socket, &operation).await, Ok(Ok(_))) {
                    self.clock.sleep(POLL).await;
                }
            };
            look.boxed()
        }));
        drop(select_all(looks).await);
        self.look().await
    }

    /// One question with all of its arguments.
    ///
    /// # Errors
    /// If no gateway has it.
    pub async fn show(&self, id: &str) -> Result<OpenQuestion, AppError> {
        match self.first(&ShowApproval { id: id.to_owned() }).await {
            Ok(question) => Ok(question),
            Err(missed) => {
                let kept = self.kept().await.into_iter().find(|question| question.id == id);
                kept.ok_or_else(|| missed.error(id))
            }
        }
    }

    /// Answers a question in any gateway.
    ///
    /// # Errors
    /// If no gateway has it, or if the answer is not accepted.
    pub async fn answer(&self, id: &str, answer: Answer) -> Result<ApprovalAnswered, AppError> {
        let missed = match self.first(&AnswerApproval { id: id.to_owned(), answer }).await {
            Ok(answered) => return Ok(answered),
            Err(missed) => missed,
        };
        if missed.denied.is_some() {
            return Err(missed.error(id));
        }
        let outcome = answer_kept(&*self.store, self.clock.now(), id, answer).await?;
        let outcome = outcome.ok_or_else(|| missed.error(id))?;
        Ok(ApprovalAnswered { outcome, saved: None })
    }

    /// The result of the first gateway that has a question.
    async fn first<O: Operation>(&self, operation: &O) -> Result<O::Output, Missed> {
        let mut missed = Missed::default();
        for socket in self.sockets.find() {
            match self.ask(&*socket, operation).await {
                Ok(Ok(output)) => return Ok(output),
                Ok(Err(error)) if error.kind == ErrorKind::Denied => {
                    return Err(Missed { denied: Some(error), ..missed });
                }
                other => missed.add(other.map(|result| result.map(|_| ()))),
            }
        }
        Err(missed)
    }

    /// The questions of gateways that have ended.
    async fn kept(&self) -> Vec<OpenQuestion> {
        kept_questions(&*self.store, self.clock.now()).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the questions of gateways that have ended cannot be read");
            Vec::new()
        })
    }

    /// The open questions of the gateways that respond, and the last error of the others.
    async fn look(&self) -> Pending {
        let operation = &ListApprovals { after: None };
        let asked = self.sockets.find().into_iter().map(|socket| async move {
            let listed = self.ask(&*socket, operation).await;
            (socket, listed)
        });
        let mut missed = Missed::default();
        let mut pending =
            Pending { gateways: 0, questions: Vec::new(), missed: None, revisions: Vec::new() };
        for (socket, listed) in join_all(asked).await {
            let listed = match listed {
                Ok(Ok(listed)) => listed,
                Ok(Err(error)) => {
                    missed.failed = Some(not_asked(error.message));
                    continue;
                }
                Err(fault) => {
                    missed.add(Err(fault));
                    continue;
                }
            };
            pending.gateways += 1;
            pending.revisions.push((socket, listed.revision));
            for question in listed.questions {
                // Approved questions that are not yet used are in the store, which all gateways
                // share.
                if pending.questions.iter().all(|known| known.id != question.id) {
                    pending.questions.push(question);
                }
            }
        }
        for question in self.kept().await {
            if pending.questions.iter().all(|known| known.id != question.id) {
                pending.questions.push(question);
            }
        }
        Pending { missed: missed.failed, ..pending }
    }

    /// Runs an operation in a gateway, within the time limit.
    async fn ask<O: Operation>(
        &self,
        socket: &dyn ControlSocket,
        operation: &O,
    ) -> Result<Result<O::Output, AppError>, ControlFault> {
        let front: Arc<dyn Interact> = Arc::new(NoFront);
        let answer = std::pin::pin!(run_in(socket, operation, None, &front));
        match select(answer, self.clock.sleep(PATIENCE)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => {
                let path = socket.path().display();
                Err(ControlFault::Failed(format!("the gateway at {path} does not answer").into()))
            }
        }
    }
}

// === impl NoFront ===

impl Interact for NoFront {
    fn event(&self, _: Event) {}

    fn ask(&self, _: Ask) -> BoxFuture<'_, api::Answer> {
        futures::future::ready(api::Answer::Nobody).boxed()
    }
}

// === impl Missed ===

impl Missed {
    /// Adds the result of a gateway that does not have the question.
    fn add(&mut self, result: Result<Result<(), AppError>, ControlFault>) {
        match result {
            Ok(Err(error)) if error.kind == ErrorKind::NotFound => self.running += 1,
            Ok(Err(error)) => self.failed = Some(not_asked(error.message)),
            Ok(Ok(())) => {}
            Err(ControlFault::Gone | ControlFault::Foreign(_)) => {
                tracing::debug!("the connection to a gateway is lost");
            }
            Err(fault) => {
                let error = AppError::caused(ErrorKind::Internal, &fault);
                self.failed = Some(not_asked(error.message));
            }
        }
    }

    fn error(self, id: &str) -> AppError {
        match (self.denied.or(self.failed), self.running) {
            (Some(error), _) => error,
            (None, _) => AppError::not_found(format!("there is no open question `{id}`")).hint(
                "`capstan approvals` lists the open questions; each expires after ten minutes",
            ),
        }
    }
}

/// The error for a gateway that runs but could not be asked.
fn not_asked(reason: impl std::fmt::Display) -> AppError {
    AppError::internal(format!("one of your gateways cannot be reached: {reason}"))
        .hint("try again; restart it if it is older than this command or does not answer")
}

#[cfg(test)]
mod tests {
    use capstan_hub::approvals::{Answered, Extent, Span, Width};
    use capstan_hub::ports::{Binding, Grant, KeptQuestion};
    use capstan_model::Kind;
    use capstan_wire::Json;
    use jiff::Timestamp;

    use super::*;
    use crate::fakes::{FakeClock, FakeSocket, FakeSockets, FakeStore, Reply};

    fn approvals(sockets: Vec<Arc<FakeSocket>>) -> PendingApprovals {
        let (sockets, clock) = (Arc::new(FakeSockets(sockets)), Arc::new(FakeClock));
        PendingApprovals { sockets, store: Arc::new(FakeStore::default()), clock }
    }

    fn socket(reply: impl Fn(&Json) -> Reply + Send + Sync + 'static) -> Arc<FakeSocket> {
        FakeSocket::new(1, "", reply)
    }

    /// A gateway that always replies with this text.
    fn saying(text: &'static str) -> Arc<FakeSocket> {
        socket(move |_| Some(Ok(Json::parse(text.to_owned()).unwrap())))
    }

    /// A gateway that has no such question.
    fn without() -> Arc<FakeSocket> {
        let error = r#"{"error":{"kind":"not_found","code":"not_found","message":"none","hint":null,
            "retryable":false,"problems":[],"files":[]}}"#;
        saying(error)
    }

    /// The time of the fake clock.
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    const YES: Answer = Answer::Yes(Extent::Once);

    #[tokio::test]
    async fn the_gateway_that_has_a_question_answers_it() {
        let answered = saying(r#"{"ok":{"outcome":"runs","saved":null}}"#);
        let answered = approvals(vec![without(), answered]).answer("k7f2", YES).await.unwrap();
        assert_eq!(answered, ApprovalAnswered { outcome: Answered::Runs, saved: None });
    }

    #[tokio::test]
    async fn a_question_that_no_gateway_has_is_not_found() {
        let message = async |sockets| approvals(sockets).show("k7f2").await.unwrap_err().message;
        let gone = socket(|_| Some(Err(ControlFault::Gone)));
        for sockets in [vec![], vec![without()], vec![gone]] {
            assert_eq!(message(sockets).await, "there is no open question `k7f2`");
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_not_accepted_is_sent_to_no_other_gateway() {
        let denied = r#"{"error":{"kind":"denied","code":"policy_blocked","message":"too wide",
            "hint":null,"retryable":false,"problems":[],"files":[]}}"#;
        let other = socket(|_| panic!("asked after a refusal"));
        let error = approvals(vec![saying(denied), other]).answer("k7f2", YES).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Denied, "too wide"));
    }

    #[tokio::test]
    async fn a_gateway_that_does_not_answer_is_waited_for_only_so_long() {
        let error = approvals(vec![socket(|_| None)]).list().await.err().unwrap();
        let expected = "one of your gateways cannot be reached: the gateway at /run/gateway.sock does not answer";
        assert_eq!(error.message, expected);
    }

    #[tokio::test]
    async fn gateways_that_cannot_be_asked_do_not_hide_the_others() {
        let old = socket(|_| Some(Err(ControlFault::Declined("another version".to_owned()))));
        let listed = saying(r#"{"ok":{"revision":3,"questions":[]}}"#);
        let pending = approvals(vec![Arc::clone(&old), listed]).list().await.unwrap();
        assert_eq!((pending.gateways, pending.questions.len()), (1, 0));
        assert!(pending.missed.is_some(), "the list says that it is incomplete");
        let error = approvals(vec![old]).list().await.err().unwrap();
        assert!(
            error.message.ends_with("refused the operation: another version"),
            "{}",
            error.message
        );
    }

    #[tokio::test]
    async fn the_next_list_waits_for_another_revision() {
        let listed = socket(|request| {
            let text = request.to_string();
            let revision = if text.contains(r#""revision":3"#) { 4 } else { 3 };
            let reply = format!(r#"{{"ok":{{"revision":{revision},"questions":[]}}}}"#);
            Some(Ok(Json::parse(reply).unwrap()))
        });
        let approvals = approvals(vec![listed]);
        let first = approvals.list().await.unwrap();
        assert_eq!(approvals.list_after(first).await.gateways, 1);
    }

    fn kept(id: &str) -> KeptQuestion {
        let binding = Binding {
            subject: "anonymous (local)".to_owned(),
            kind: Kind::Tool,
            item: "files__write".to_owned(),
            arguments: "abc".to_owned(),
            policy: "1".to_owned(),
        };
        let expires_at = Timestamp::from_second(300).unwrap();
        let shown = r#"{"id":"ID","caller":"anonymous","client":null,"kind":"tool",
            "item":"files__write","server":"files","name":"write",
            "arguments":{"text":"{}","bytes":2,"sha256":"abc","masked":0,"shortened":false},
            "raw":null,"effect":"write","rule":"permissions.default: ask-writes","stands":"open",
            "age":{"secs":0,"nanos":0},"expires":{"secs":600,"nanos":0}}"#;
        let shown = shown.replace("ID", id);
        KeptQuestion { grant: Grant { id: id.to_owned(), binding, expires_at }, shown }
    }

    #[tokio::test]
    async fn a_question_of_a_gateway_that_has_ended_is_listed_and_answered() {
        let approvals = approvals(vec![]);
        for id in ["k7f2", "m3n4"] {
            approvals.store.keep(&kept(id)).await.unwrap();
        }
        let listed = approvals.list().await.unwrap();
        let ids: Vec<_> = listed.questions.iter().map(|question| &*question.id).collect();
        assert_eq!(ids, ["k7f2", "m3n4"]);
        assert_eq!(approvals.show("k7f2").await.unwrap().expires.as_secs(), 300);
        let yes = approvals.answer("k7f2", YES).await.unwrap();
        assert_eq!(yes.outcome, Answered::RunsWhenRepeated);
        assert!(approvals.store.take(&kept("k7f2").grant.binding, NOW).await.unwrap());
        let no = approvals.answer("m3n4", Answer::No).await.unwrap();
        assert_eq!(no.outcome, Answered::Refused);
        assert!(!approvals.store.take(&kept("m3n4").grant.binding, NOW).await.unwrap());
        assert_eq!(approvals.list().await.unwrap().questions, []);
    }

    #[tokio::test]
    async fn a_question_of_a_gateway_that_has_ended_is_answered_once_and_for_one_call() {
        let approvals = approvals(vec![]);
        approvals.store.keep(&kept("k7f2")).await.unwrap();
        let wide = Answer::Yes(Extent::Wider(Width::Item, Span::Saved));
        let error = approvals.answer("k7f2", wide).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{}", error.message);
        approvals.answer("k7f2", YES).await.unwrap();
        let error = approvals.answer("k7f2", YES).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
    }
}

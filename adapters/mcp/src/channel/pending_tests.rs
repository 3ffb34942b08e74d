//! Tests of deadlines and of the choice of the client.

use capstan_hub::{ClientIdentity, PersonId};

use super::*;
use crate::channel::test_clients::{TestClient, number};

/// The only client.
fn client() -> Recipient {
    Recipient::Client(TestClient::new(0).back(ClientIdentity::default()))
}

/// A subscriber that is never told anything.
struct Silent;

impl Subscriber for Silent {
    fn notify(&self, _: &str, _: &Json) {
        unreachable!()
    }
}

const LIMIT: Duration = Duration::from_secs(1);

/// Waits for request 1 while the server reports progress at every `step`; returns the reply and the
/// time it took.
async fn wait_with_progress(step: Duration) -> (Result<Reply, NoReply>, Duration) {
    let (pending, begun) = (Pending::default(), Instant::now());
    let waiting = pending.add(1, None).wait(LIMIT);
    let progress = async {
        loop {
            tokio::time::sleep(step).await;
            pending.progressed(1);
        }
    };
    tokio::select! {
        result = waiting => (result, begun.elapsed()),
        () = progress => unreachable!(),
    }
}

#[track_caller]
fn check(waited: &(Result<Reply, NoReply>, Duration), expected: Duration) {
    assert!(matches!(waited.0, Err(NoReply::Late)), "{waited:?}");
    // The clock of the runtime ticks in milliseconds.
    assert!(waited.1 >= expected && waited.1 < expected + LIMIT / 100, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn progress_puts_the_deadline_off_but_not_for_ever() {
    check(&wait_with_progress(LIMIT * 2).await, LIMIT);
    check(&wait_with_progress(LIMIT / 2).await, LIMIT * MAX_EXTENSIONS);
    check(&wait_with_progress(Duration::from_millis(1)).await, LIMIT * MAX_EXTENSIONS);
}

#[tokio::test(start_paused = true)]
async fn progress_of_another_request_puts_nothing_off() {
    let (pending, begun) = (Pending::default(), Instant::now());
    let (one, two) = (pending.add(1, None), pending.add(2, None));
    tokio::join!(
        async { check(&(one.wait(LIMIT).await, begun.elapsed()), LIMIT) },
        async {
            tokio::time::sleep(LIMIT / 2).await;
            pending.progressed(2);
        },
        async { check(&(two.wait(LIMIT).await, begun.elapsed()), LIMIT + LIMIT / 2) },
    );
}

fn ask(pending: &Pending) -> Option<OpenQuestion> {
    pending.ask(None, &Json::empty_object())
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_question_is_open_does_not_count_for_its_call() {
    let (pending, begun) = (Pending::default(), Instant::now());
    let (older, younger) = (pending.add(1, Some(client())), pending.add(2, Some(client())));
    tokio::join!(
        async { check(&(older.wait(LIMIT).await, begun.elapsed()), LIMIT) },
        async { check(&(younger.wait(LIMIT).await, begun.elapsed()), LIMIT * 31) },
        async {
            tokio::time::sleep(LIMIT / 2).await;
            let question = || pending.ask(Some(2), &Json::empty_object()).unwrap();
            let (one, two) = (question(), question());
            tokio::time::sleep(LIMIT * 20).await;
            drop(one);
            tokio::time::sleep(LIMIT * 10).await;
            drop(two);
        },
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_puts_off_no_end_but_the_deadline() {
    let pending = Pending::default();
    let waiting = pending.add(1, Some(client()));
    let question = ask(&pending).unwrap();
    tokio::join!(
        async { assert!(matches!(waiting.wait(LIMIT).await, Err(NoReply::Gone))) },
        async { pending.clear() },
    );
    drop(question);
    assert!(ask(&pending).is_none());
    pending.add(2, None);
    assert!(ask(&pending).is_none(), "nobody is behind it");
}

/// Calls from the oldest on: group, person, and `true` if it waits for an answer.
type Calls = &'static [(u64, u64, bool)];

#[test]
fn what_no_call_is_named_for_is_for_the_only_group_that_can_be_meant() {
    const ASKED: bool = true;
    // With the client that gets notices, and the client that gets questions.
    let table: [(Calls, Option<u64>, Option<u64>); 11] = [
        (&[], None, None),
        (&[(1, 1, false)], Some(0), Some(0)),
        (&[(1, 1, false), (1, 1, false)], Some(1), Some(1)),
        (&[(1, 1, false), (1, 1, ASKED)], Some(1), Some(1)),
        (&[(1, 1, ASKED)], Some(0), Some(0)),
        (&[(1, 1, false), (2, 1, false)], None, None),
        // A call with an open question is not expected to ask more, but may send more notices.
        (&[(1, 1, ASKED), (2, 1, false)], None, Some(1)),
        (&[(1, 1, false), (2, 1, ASKED)], None, Some(0)),
        (&[(1, 1, ASKED), (2, 1, ASKED)], None, None),
        (&[(1, 1, ASKED), (2, 1, false), (3, 1, false)], None, None),
        // But a question must not go to another person because of that.
        (&[(1, 1, ASKED), (2, 2, false)], None, None),
    ];
    for (calls, told, asked) in table {
        let pending = Pending::default();
        let mut held = Vec::new();
        for (id, (group, person, has_asked)) in (0..).zip(calls) {
            let (group, person) = (CallGroup(*group), PersonId(*person));
            let identity = ClientIdentity { group, person, client: None };
            let back = TestClient::new(id).back(identity);
            held.push(pending.add(id, Some(Recipient::Client(back))));
            if *has_asked {
                pending.map()[&id].signals.ask();
            }
        }
        assert_eq!(pending.client(None).as_ref().map(number), told, "{calls:?}");
        assert_eq!(ask(&pending).map(|asking| number(&asking.back)), asked, "{calls:?}");
        assert_eq!(pending.has_calls(), !calls.is_empty());
    }
}

#[test]
fn a_subscription_is_heard_by_its_own_name_and_is_otherwise_nobodys_call() {
    let pending = Pending::default();
    let subscriber: Arc<dyn Subscriber> = Arc::new(Silent);
    let _subscription = pending.add(
        1,
        Some(Recipient::Subscriber {
            subscriber: Arc::clone(&subscriber),
            capabilities: Json::empty_object(),
        }),
    );
    assert!(pending.client(None).is_none() && ask(&pending).is_none());
    assert!(!pending.has_calls() && pending.ask_group(CallGroup(0)).is_none());
    let back = TestClient::new(7).back(ClientIdentity::default());
    let _call = pending.add(2, Some(Recipient::Client(back)));
    assert_eq!(pending.client(None).as_ref().map(number), Some(7));
    assert_eq!(ask(&pending).map(|asking| number(&asking.back)), Some(7));
    assert!(Arc::ptr_eq(&pending.subscriber(1).unwrap(), &subscriber));
    assert!(pending.client(Some(1)).is_none() && pending.subscriber(2).is_none());
}

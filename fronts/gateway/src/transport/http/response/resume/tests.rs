//! Tests which streams are kept, and which are dropped first.

use capstan_model::{Caller, Front};
use tokio::sync::mpsc;

use super::*;
use crate::fairness::fair_share::Peer;

/// A stream with one large event: its reader, and the sender that ends it.
fn large(number: u64, budget: &Arc<Budget>) -> (Reader, mpsc::Sender<Bytes>) {
    let (sender, inbox) = mpsc::channel(1);
    sender.try_send(vec![b'x'; MAX_BYTES - 1024].into()).unwrap();
    let peer = Peer::of(&Caller::named("ann", Front::Gateway));
    let track = Track {
        kind: Kind::Call,
        number,
        state: Mutex::new(State::new(Source::Inbox(inbox))),
        budget: Arc::clone(budget),
        _share: FairShares::new(1, 1).take(peer).unwrap(),
    };
    let reader =
        Reader { track: Arc::new(track), turn: 0, at: 1, wait: Duration::MAX, session: None };
    (reader, sender)
}

/// Reads the event of a stream; returns true if it is kept.
async fn read(reader: &mut Reader) -> bool {
    assert!(poll_fn(|cx| reader.poll_next(cx)).await.is_some());
    !reader.track.state().kept.is_empty()
}

#[tokio::test]
async fn streams_that_were_read_to_their_end_make_room_for_those_that_go_on() {
    let budget = Arc::<Budget>::default().of_session();
    let mut open = Vec::new();
    for number in 1..9 {
        let (mut reader, sender) = large(number, &budget);
        assert!(read(&mut reader).await, "{number}");
        open.push((reader, sender));
    }
    let (mut ninth, _ninth_end) = large(9, &budget);
    assert!(!read(&mut ninth).await, "all others go on");
    let mut over = Vec::new();
    for (mut reader, sender) in open {
        drop(sender);
        assert!(poll_fn(|cx| reader.poll_next(cx)).await.is_none());
        over.push(Arc::clone(&reader.track));
    }
    let (mut tenth, _tenth_end) = large(10, &budget);
    assert!(read(&mut tenth).await);
    let kept = over.iter().filter(|track| !track.state().kept.is_empty());
    assert_eq!(kept.map(|track| track.number).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8]);
}

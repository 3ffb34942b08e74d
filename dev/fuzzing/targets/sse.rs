//! Streams of server-sent events, of servers and of model providers. The parsers are private to their
//! crates, so their files are compiled here.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use libfuzzer_sys::fuzz_target;

#[path = "../../../adapters/mcp/src/http/events.rs"]
#[allow(dead_code, unused_imports, clippy::all)]
mod events;
#[path = "../../../adapters/provider/src/events.rs"]
#[allow(dead_code, unused_imports, clippy::all)]
mod model_events;

/// The largest event of a server that is accepted.
const LIMIT: usize = 256;

type Read = (Vec<events::Event>, bool, Option<String>, Option<Duration>);

/// Reads a stream that arrives in pieces of this size.
fn read(data: &[u8], size: usize) -> Read {
    let pieces: Vec<_> = data.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let mut events = events::Events::new(stream::iter(pieces).boxed(), LIMIT);
    let mut found = Vec::new();
    let is_whole = loop {
        match block_on(events.next()) {
            Ok(Some(event)) => {
                assert!(event.data.len() <= LIMIT);
                found.push(event);
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    (found, is_whole, events.last_id().map(str::to_owned), events.retry())
}

fuzz_target!(|data: &[u8]| {
    let (whole, is_whole, id, retry) = read(data, data.len().max(1));
    for size in [1, 7] {
        let (events, complete, other_id, other_retry) = read(data, size);
        // Where the limit is met depends on the pieces; without it nothing does.
        if is_whole && complete {
            assert_eq!((&events, &other_id, other_retry), (&whole, &id, retry));
        }
    }
    let (mut all, mut single) = (model_events::Events::default(), model_events::Events::default());
    let mut at_once = all.push(data).expect("below the limit");
    at_once.extend(all.end().expect("below the limit"));
    let mut one_by_one = Vec::new();
    for byte in data {
        one_by_one.extend(single.push(std::slice::from_ref(byte)).expect("below the limit"));
    }
    one_by_one.extend(single.end().expect("below the limit"));
    assert_eq!(at_once, one_by_one);
});

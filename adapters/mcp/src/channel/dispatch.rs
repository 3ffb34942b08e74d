//! Parses the messages of a server and passes each to its receiver.

use bytes::Bytes;
use capstan_wire::{Json, Message, RequestId, object};
use tracing::debug;

use crate::channel::inbound::Inbound;

/// Dispatches an incoming line; `of` is the request whose stream it came on, if there are streams.
pub(crate) async fn dispatch(line: &Bytes, inbound: &Inbound, of: Option<u64>) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    inbound.log(line);
    // Servers of 2025-03-26 may send several messages in one line.
    let batch = line.first() == Some(&b'[');
    let parts = if batch {
        Json::parse(line.clone()).ok().and_then(|j| object::items(&j).ok())
    } else {
        None
    };
    match parts {
        Some(parts) => {
            for part in parts {
                dispatch_one(part.bytes(), inbound, of).await;
            }
        }
        None => dispatch_one(line, inbound, of).await,
    }
}

async fn dispatch_one(line: &Bytes, inbound: &Inbound, of: Option<u64>) {
    match Message::parse(line) {
        Ok(Message::Reply { id: Some(RequestId::Number(id)), reply }) => {
            if let Ok(id) = u64::try_from(id) {
                inbound.requests.pending.answer(id, reply);
            }
        }
        Ok(Message::Reply { reply, .. }) => debug!(?reply, "a reply without a matching request"),
        Ok(Message::Notification { method, params }) => {
            inbound.notification(&method, params.as_ref(), of);
            // Lets the receivers handle the notification before the next message is read.
            tokio::task::yield_now().await;
        }
        // Only clients send these.
        Ok(Message::Request { method, .. })
            if matches!(&*method, "initialize" | "server/discover") =>
        {
            inbound.repeats_input();
        }
        Ok(Message::Request { id, method, params }) => {
            // Boxed, because it is rare, and its size would be part of every reply's future.
            Box::pin(inbound.request(id, &method, params, of)).await;
        }
        Err(problem) => inbound.not_protocol(line, problem),
    }
}

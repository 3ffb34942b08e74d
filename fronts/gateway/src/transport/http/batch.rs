//! Batches over HTTP.

use bytes::Bytes;
use capstan_model::rpc_code::INVALID_REQUEST;
use capstan_wire::Message;
use futures::StreamExt as _;
use futures::stream::SelectAll;
use hyper::Response;
use hyper::http::StatusCode;

use crate::protocol::era::{Contact, Era, Hint};
use crate::protocol::messages::messages;
use crate::transport::http::request::caller_header;
use crate::transport::http::request::request_body::Accepts;
use crate::transport::http::request::trace_headers;
use crate::transport::http::response::body::{self, Body};
use crate::transport::http::response::events::{Form, outs};
use crate::transport::http::sessions::SessionGuard;
use crate::transport::http::streamable::Post;
use crate::{Answer, Out};

/// Only sessions of the legacy era have batches.
const LEGACY: Hint = Hint::Declared(Era::Legacy);

/// Answers a batch of a client with a session.
pub(crate) async fn answer(
    post: Post<'_>,
    text: &Bytes,
    accepts: Accepts,
    session: SessionGuard,
) -> Response<Body> {
    let Post { mcp, head, state } = post;
    let messages = match messages(text, Some(session.client().revision())) {
        Ok(messages) => messages,
        Err(answer) => return body::json(StatusCode::BAD_REQUEST, answer),
    };
    let is_request =
        |message: &Result<Message, Answer>| matches!(message, Ok(Message::Request { .. }));
    if !mcp.gateway().is_ready() && messages.iter().any(is_request) {
        return body::stopping(None);
    }
    let (mut requests, mut answers) = (SelectAll::new(), Vec::new());
    for message in messages {
        match message {
            Ok(Message::Request { id, method, .. })
                if Contact::of(LEGACY, &method, None) == Contact::Initialize =>
            {
                let words = "`initialize` must not be part of a batch";
                answers.push(Answer::error(Some(&id), INVALID_REQUEST, words));
            }
            Ok(Message::Request { id, method, params }) => {
                let params = trace_headers::adopt(&head.headers, params);
                let params = caller_header::adopt(&head.headers, params);
                requests.push(outs(mcp.gateway().request(session.client(), id, &method, params)));
            }
            Ok(Message::Notification { method, params }) => {
                mcp.gateway().notification(session.client(), &method, params.as_ref());
            }
            Ok(Message::Reply { id: Some(id), reply }) => session.client().take_reply(&id, reply),
            Ok(Message::Reply { id: None, .. }) => {}
            Err(answer) => answers.push(answer),
        }
    }
    loop {
        let out = tokio::select! {
            biased;
            out = requests.next() => out,
            () = state.probed() => {
                let first = answers.into_iter().map(Out::Answer).collect();
                let array = Form::JsonArray { has_some: false };
                let form = if accepts.events() { Form::Events } else { array };
                return mcp.begun(form, first, requests.boxed(), Some(session));
            }
        };
        let Some(out) = out else { break };
        match out {
            Out::Answer(answer) => answers.push(answer),
            Out::Message(message) if !accepts.events() => session.client().unheard(&message),
            Out::Message(message) => {
                let answers = answers.into_iter().map(Out::Answer);
                let first = answers.chain([Out::Message(message)]).collect();
                return mcp.streamed(first, requests.boxed(), Some(session));
            }
        }
    }
    if answers.is_empty() { body::bare(StatusCode::ACCEPTED) } else { body::batch(answers) }
}

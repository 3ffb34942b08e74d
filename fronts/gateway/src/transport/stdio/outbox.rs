//! Queue of outgoing messages, written with as few system calls as possible.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes, BytesMut};
use capstan_wire::line::one_line;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::Answer;

/// Pieces from this length on are not copied.
const LARGE: usize = 16 * 1024;

/// Maximum number of pieces in one write.
const SLICES: usize = 32;

/// Queue of outgoing messages.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Pieces to write first.
    pieces: VecDeque<Bytes>,
    /// Small messages after all pieces, contiguous.
    tail: BytesMut,
    waiting: usize,
}

// === impl Outbox ===

impl Outbox {
    /// Adds a message.
    pub(crate) fn message(&mut self, message: Bytes) {
        self.put(message);
        self.newline();
    }

    /// Adds an answer.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.put_answer(answer);
        self.newline();
    }

    /// Adds the answers to a batch, as one message.
    pub(crate) fn answers(&mut self, answers: Vec<Answer>) {
        for (index, answer) in answers.into_iter().enumerate() {
            self.put(Bytes::from_static(if index == 0 { b"[" } else { b"," }));
            self.put_answer(answer);
        }
        self.put(Bytes::from_static(b"]"));
        self.newline();
    }

    /// Number of queued bytes.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Performs one write. Cancel-safe: no byte is lost or written twice.
    pub(crate) async fn write_to(
        &mut self,
        output: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
        let written = match self.pieces.front() {
            None => return Ok(()),
            Some(piece) if self.pieces.len() == 1 => output.write(piece).await?,
            Some(_) => {
                let mut slices = [IoSlice::new(&[]); SLICES];
                for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                    *slice = IoSlice::new(piece);
                }
                let used = self.pieces.len().min(SLICES);
                output.write_vectored(slices.get(..used).unwrap_or_default()).await?
            }
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.advance(written);
        // Only a stream with its own thread buffers; for the others this does nothing.
        if self.waiting == 0 { output.flush().await } else { Ok(()) }
    }

    fn put_answer(&mut self, answer: Answer) {
        for piece in answer.pieces() {
            self.put(piece);
        }
    }

    fn put(&mut self, piece: Bytes) {
        let piece = one_line(piece);
        self.waiting += piece.len();
        if piece.len() < LARGE {
            self.tail.extend_from_slice(&piece);
            return;
        }
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
        self.pieces.push_back(piece);
    }

    fn newline(&mut self) {
        self.waiting += 1;
        self.tail.extend_from_slice(b"\n");
    }

    fn advance(&mut self, mut written: usize) {
        self.waiting = self.waiting.saturating_sub(written);
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use capstan_wire::RequestId;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn everything_comes_out_in_order_whatever_the_reader_takes_at_once() {
        let large = Bytes::from("y".repeat(LARGE + 1));
        for room in [1, 7, 1000, 1 << 20] {
            let (mut near, mut far) = tokio::io::duplex(room);
            let reader = tokio::spawn(async move {
                let mut text = String::new();
                far.read_to_string(&mut text).await.unwrap();
                text
            });
            let mut out = Outbox::default();
            let mut expected = String::new();
            for number in 0..40 {
                let small = format!("message {number}");
                out.message(Bytes::from(small.clone()));
                out.message(large.clone());
                expected.push_str(&small);
                expected.push('\n');
                expected.push_str(&"y".repeat(LARGE + 1));
                expected.push('\n');
            }
            while !out.is_empty() {
                out.write_to(&mut near).await.unwrap();
            }
            drop(near);
            assert!(reader.await.unwrap() == expected, "with room for {room}");
        }
    }

    #[tokio::test]
    async fn what_was_written_on_several_lines_is_one_message() {
        let mut out = Outbox::default();
        out.message(Bytes::from_static(b"{\"a\":\r\n[1]}"));
        let mut text = Vec::new();
        out.write_to(&mut text).await.unwrap();
        assert_eq!(text, b"{\"a\":  [1]}\n");
    }

    #[tokio::test]
    async fn the_answers_of_a_batch_are_one_message() {
        let mut out = Outbox::default();
        let answer = |id| Answer::error(Some(&RequestId::Number(id)), -1, "no");
        out.answers(vec![answer(1), answer(2)]);
        let mut text = Vec::new();
        out.write_to(&mut text).await.unwrap();
        let one =
            |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#);
        assert_eq!(String::from_utf8(text).unwrap(), format!("[{},{}]\n", one(1), one(2)));
    }
}

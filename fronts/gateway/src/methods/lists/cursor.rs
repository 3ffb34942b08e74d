//! Cursors: positions in the lists of a caller.
//!
//! A cursor of an authenticated caller carries a tag of its identity. In the hands of another
//! caller it is as unknown as one that was made up.

use crate::{Client, Gateway};

impl Gateway {
    /// The cursor of a position in a list; `list` tells kinds of lists apart.
    pub(crate) fn cursor(&self, client: &Client, list: char, at: usize) -> String {
        match self.cursor_tag(client, list, at) {
            Some(tag) => format!("{list}{at}.{tag}"),
            None => format!("{list}{at}"),
        }
    }

    /// The position that a cursor stands for; `None` for one that this caller did not get.
    pub(crate) fn position(&self, client: &Client, list: char, cursor: &str) -> Option<usize> {
        let cursor = cursor.strip_prefix(list)?;
        let (at, tag) = match cursor.split_once('.') {
            Some((at, tag)) => (at, Some(tag)),
            None => (cursor, None),
        };
        let at = at.parse().ok()?;
        (self.cursor_tag(client, list, at).as_deref() == tag).then_some(at)
    }

    fn cursor_tag(&self, client: &Client, list: char, at: usize) -> Option<String> {
        let caller = &client.caller;
        caller
            .is_authenticated()
            .then(|| self.sealer.tag(&format!("{list}{at}\n{}", caller.identity())))
    }
}

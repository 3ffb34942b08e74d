//! The frame of a demo server: the trait that it implements and the loop that serves it.
//!
//! Read [`session`] for the protocol itself.

mod line;
mod session;

use std::io::{self, BufRead, Write};

use serde_json::{Map, Value};

use crate::describe::{Answer, Tool};
use crate::fault::Fault;
use line::Line;
use session::Session;

pub(crate) use session::MODERN;

/// The part of a server that the loop calls.
pub(crate) trait Server {
    fn profile(&self) -> Profile;
    fn tools(&self) -> Vec<Tool>;
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, Fault>;

    fn resources(&mut self) -> Result<Vec<Value>, Fault> {
        Ok(Vec::new())
    }

    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The contents of one resource.
    fn read(&mut self, uri: &str) -> Result<Value, Fault> {
        Err(Fault::UnknownResource { uri: uri.to_owned() })
    }

    fn prompts(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The result of `prompts/get`.
    fn prompt(
        &mut self,
        name: &str,
        _arguments: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Fault> {
        Err(Fault::UnknownPrompt { name: name.to_owned() })
    }
}

/// The description that a server gives of itself.
#[derive(Clone, Copy)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) instructions: &'static str,
    pub(crate) resources: Resources,
    pub(crate) prompts: Prompts,
}

/// Whether a server has resources, and whether it tells when their list changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resources {
    None,
    Unannounced,
    Announced,
}

/// Whether a server has prompts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompts {
    None,
    Some,
}

/// How the protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// With a handshake: 2025-11-25 and before.
    Legacy,
    /// With metadata on every request: 2026-07-28.
    Modern,
}

/// Serves until the input ends.
pub(crate) fn serve<S: Server>(
    server: S,
    mut input: impl BufRead,
    output: impl Write,
) -> io::Result<()> {
    let mut session = Session::new(server, output);
    loop {
        match line::next(&mut input)? {
            Line::End => return Ok(()),
            Line::TooLong => session.refuse_long_line()?,
            Line::Whole(line) => session.receive(&line)?,
        }
    }
}

//! The command line of the conformance server.

use std::ffi::OsString;
use std::net::SocketAddr;

use super::message::{LEGACY, Revision};

/// How to use it, in a line.
pub(super) const USAGE: &str = "usage: capstan-conformance-server (--http ADDRESS | --stdio) \
     [--era legacy|modern|both] [--revision R]";

/// What the server is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) face: Face,
    pub(super) era: Era,
    /// The only legacy revision, where one was named.
    pub(super) revision: Option<Revision>,
}

/// Where clients come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    Http(SocketAddr),
    Stdio,
}

/// Which of the two lifecycles is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
    Both,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadOptions {
    #[error("{USAGE}")]
    Usage,
    #[error("`{0}` is not an option")]
    Unknown(String),
    #[error("`{option}` cannot be `{value}`")]
    Value { option: &'static str, value: String },
    #[error("a modern server has no legacy revision")]
    RevisionOfModern,
}

// === impl Options ===

impl Options {
    pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, BadOptions> {
        let mut arguments = arguments.into_iter();
        let (mut face, mut era, mut revision) = (None, Era::Both, None);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(BadOptions::Usage).map(text);
            match text(argument).as_str() {
                "--http" => face = Some(Face::Http(read("--http", value()?, |v| v.parse().ok())?)),
                "--stdio" => face = Some(Face::Stdio),
                "--era" => era = read("--era", value()?, Era::named)?,
                "--revision" => {
                    revision = Some(read("--revision", value()?, Revision::legacy)?);
                }
                "-h" | "--help" => return Err(BadOptions::Usage),
                other => return Err(BadOptions::Unknown(other.to_owned())),
            }
        }
        if era == Era::Modern && revision.is_some() {
            return Err(BadOptions::RevisionOfModern);
        }
        Ok(Self { face: face.ok_or(BadOptions::Usage)?, era, revision })
    }

    /// The revision that answers a handshake for that one.
    pub(super) fn negotiate(&self, asked: &str) -> Revision {
        let newest = Revision::newest_legacy();
        self.revision.unwrap_or_else(|| Revision::legacy(asked).unwrap_or(newest))
    }

    /// Whether a client may name this revision in a header.
    pub(super) fn speaks(&self, name: &str) -> bool {
        match self.revision {
            Some(only) => only.name() == name,
            None => LEGACY.iter().any(|known| known.name() == name),
        }
    }
}

// === impl Era ===

impl Era {
    fn named(name: &str) -> Option<Self> {
        match name {
            "legacy" => Some(Self::Legacy),
            "modern" => Some(Self::Modern),
            "both" => Some(Self::Both),
            _ => None,
        }
    }
}

fn text(argument: OsString) -> String {
    argument.into_string().unwrap_or_else(|bad| bad.display().to_string())
}

fn read<T>(
    option: &'static str,
    value: String,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, BadOptions> {
    parse(&value).ok_or(BadOptions::Value { option, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, BadOptions> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_server_is_dual_unless_told_otherwise() {
        let options = parse("--stdio").unwrap();
        assert_eq!((options.face, options.era), (Face::Stdio, Era::Both));
        assert_eq!(options.negotiate("2025-03-26").name(), "2025-03-26");
        assert_eq!(options.negotiate("1999-01-01").name(), "2025-11-25");
    }

    #[test]
    fn a_pinned_revision_answers_every_handshake() {
        let options = parse("--http 127.0.0.1:0 --era legacy --revision 2025-06-18").unwrap();
        assert_eq!(options.negotiate("2025-11-25").name(), "2025-06-18");
        assert!(options.speaks("2025-06-18") && !options.speaks("2025-11-25"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "",
            "--era legacy",
            "--http",
            "--http nowhere",
            "--stdio --era old",
            "--stdio --revision 2026-07-28",
            "--stdio --era modern --revision 2025-11-25",
            "--stdio --verbose",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}

//! Flows: rules about what may follow what in one conversation.
//!
//! An item has tags: it reads content of strangers, it reads private data, or it can send data out.
//! A flow is a tag of an answer that a conversation has received, and a tag of a call that follows.
//! The hub remembers the answers; this module knows the tags and the rules.

mod infer;
mod words;

use capstan_model::{By, Effect, ItemId, Kind, Ruling, Trust, Verdict};
use capstan_wire::Json;
use globset::GlobMatcher;

use crate::pattern::{BadPattern, glob};

/// A property of an item that flows depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Its answers contain text of strangers, such as a web page or a mail.
    Untrusted,
    /// Its answers contain data of the user.
    Private,
    /// It can send data to others.
    Sends,
    /// It only reads, but from an address that the caller chooses, so that the address can carry
    /// data.
    Addresses,
}

/// The tags of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags(u8);

/// The treatment of a flow. The strictest is the smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowAction {
    /// The call is refused.
    Deny,
    /// The operator is asked about the call.
    Ask,
    /// The call is treated like any other.
    #[default]
    Off,
}

/// The treatment of each flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRules {
    /// Content of strangers was read, and a call can send data out.
    pub untrusted_then_send: FlowAction,
    /// Private data was read, and a call can send data out.
    pub private_then_send: FlowAction,
}

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Content of strangers, then sending.
    UntrustedThenSend,
    /// Private data, then sending.
    PrivateThenSend,
}

/// The operator's tags for the items of one server.
#[derive(Clone, Debug, Default)]
pub struct TagRules {
    /// Items that read content of strangers; `None` where the tag is inferred.
    untrusted: Option<Vec<GlobMatcher>>,
    private: Option<Vec<GlobMatcher>>,
    sends: Option<Vec<GlobMatcher>>,
    /// The effect of the lists on inferred tags.
    lists: ListedTags,
    /// Where the server runs.
    pub place: Place,
}

/// The effect of the operator's lists on inferred tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedTags {
    /// They replace them.
    #[default]
    Replace,
    /// They add to them.
    Add,
}

/// Where a server runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// On this machine.
    #[default]
    Here,
    /// Elsewhere: the arguments of a call leave this machine.
    Elsewhere,
}

/// An item whose tags are asked for.
#[derive(Clone, Copy, Debug)]
pub struct TaggedItem<'a> {
    /// The item.
    pub id: &'a ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The definition of the server.
    pub definition: &'a Json,
    /// The effect.
    pub effect: Effect,
    /// The trust in the server.
    pub trust: Trust,
}

// === impl Tag ===

impl Tag {
    /// All tags.
    pub const ALL: [Self; 4] = [Self::Untrusted, Self::Private, Self::Sends, Self::Addresses];

    /// The tag as it is written in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Private => "private",
            Self::Sends => "sends",
            Self::Addresses => "addresses",
        }
    }

    /// The tag in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Untrusted => "reads content of strangers",
            Self::Private => "reads private data",
            Self::Sends => "can send data out",
            Self::Addresses => "reads from addresses that the caller chooses",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Untrusted => 1,
            Self::Private => 2,
            Self::Sends => 4,
            Self::Addresses => 8,
        }
    }
}

// === impl Tags ===

impl Tags {
    /// No tag.
    pub const NONE: Self = Self(0);

    /// True if the item has the tag.
    pub fn has(self, tag: Tag) -> bool {
        self.0 & tag.bit() != 0
    }

    /// Adds a tag.
    #[must_use]
    pub fn with(self, tag: Tag) -> Self {
        Self(self.0 | tag.bit())
    }

    /// Removes a tag.
    #[must_use]
    pub fn without(self, tag: Tag) -> Self {
        Self(self.0 & !tag.bit())
    }

    /// The tags, in order.
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        Tag::ALL.into_iter().filter(move |tag| self.has(*tag))
    }

    /// The tags as a number, for storage.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Reads tags from a number; unknown ones are ignored.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & 0b1111)
    }
}

// === impl FlowAction ===

impl FlowAction {
    /// The verdict on a call that completes the flow; `None` if there is none.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Deny => Some(Verdict::Deny),
            Self::Ask => Some(Verdict::Ask),
            Self::Off => None,
        }
    }
}

// === impl FlowRules ===

impl FlowRules {
    /// True if any flow is treated.
    pub fn are_on(&self) -> bool {
        *self != Self::default()
    }

    /// The treatment of a flow.
    pub fn of(&self, flow: Flow) -> FlowAction {
        match flow {
            Flow::UntrustedThenSend => self.untrusted_then_send,
            Flow::PrivateThenSend => self.private_then_send,
        }
    }

    /// The rules that a call with these tags can meet, with their verdicts.
    pub fn ending_with(&self, tags: Tags) -> impl Iterator<Item = (Flow, Verdict)> {
        let rules = *self;
        let ends = Flow::ALL.into_iter().filter(move |flow| flow.ends_with(tags));
        ends.filter_map(move |flow| Some((flow, rules.of(flow).verdict()?)))
    }
}

// === impl Flow ===

impl Flow {
    /// All flows.
    pub const ALL: [Self; 2] = [Self::UntrustedThenSend, Self::PrivateThenSend];

    /// The key of its rule.
    pub fn key(self) -> &'static str {
        match self {
            Self::UntrustedThenSend => "flows.untrusted_then_send",
            Self::PrivateThenSend => "flows.private_then_send",
        }
    }

    /// The tag of the answer that begins it.
    pub fn begins_with(self) -> Tag {
        match self {
            Self::UntrustedThenSend => Tag::Untrusted,
            Self::PrivateThenSend => Tag::Private,
        }
    }

    /// True if a call with these tags ends it.
    ///
    /// Reading several pages after each other is what a browser is for. Only after private data an
    /// address counts as a way out.
    pub fn ends_with(self, tags: Tags) -> bool {
        match self {
            Self::UntrustedThenSend => tags.has(Tag::Sends),
            Self::PrivateThenSend => tags.has(Tag::Sends) || tags.has(Tag::Addresses),
        }
    }

    /// The ruling on a call that ends the flow, after an answer of `source`.
    pub fn ruling(self, verdict: Verdict, source: &ItemId) -> Ruling {
        let read = match self {
            Self::UntrustedThenSend => "content of strangers",
            Self::PrivateThenSend => "private data",
        };
        let rule = format!("{}: this conversation has read {read} by {source}", self.key());
        Ruling { verdict, rule, by: By::Rule }
    }

    /// True if a rule in the audit log is that of a flow.
    pub fn is_rule(rule: &str) -> bool {
        Self::ALL.iter().any(|flow| rule.starts_with(flow.key()))
    }
}

// === impl TagRules ===

impl TagRules {
    /// Parses the lists of a server; a list that is missing leaves its tag to inference.
    ///
    /// # Errors
    /// The first pattern that cannot be parsed.
    pub fn new(
        [untrusted, private, sends]: [Option<&[String]>; 3],
        lists: ListedTags,
        place: Place,
    ) -> Result<Self, BadPattern> {
        let globs = |list: Option<&[String]>| -> Result<Option<Vec<GlobMatcher>>, BadPattern> {
            list.map(|list| list.iter().map(|text| glob(text)).collect()).transpose()
        };
        Ok(Self {
            untrusted: globs(untrusted)?,
            private: globs(private)?,
            sends: globs(sends)?,
            lists,
            place,
        })
    }

    /// The tags of an item. `server` is the operator's name for its server.
    pub fn of(&self, item: &TaggedItem<'_>, server: &str) -> Tags {
        let mut tags = infer::infer(item, server, self.place);
        let lists = [
            (Tag::Untrusted, &self.untrusted),
            (Tag::Private, &self.private),
            (Tag::Sends, &self.sends),
        ];
        for (tag, list) in lists {
            let Some(list) = list else { continue };
            if self.lists == ListedTags::Replace {
                tags = tags.without(tag);
                if tag == Tag::Sends {
                    tags = tags.without(Tag::Addresses);
                }
            }
            if list.iter().any(|glob| glob.is_match(&item.id.item)) {
                tags = tags.with(tag);
            }
        }
        tags
    }
}

#[cfg(test)]
mod tests;

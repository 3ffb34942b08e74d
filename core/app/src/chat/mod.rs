//! Conversations with a language model that calls the tools of servers.
//!
//! [`Chat`] runs the turns of a conversation; `toolbox` offers tools and calls them on the road,
//! `own_tools` are those with which the model finds others, `ranking` lets a model select tools;
//! `talk` is a conversation with a model that a person can change;
//! `parts` turns results of servers into parts of messages; [`Conversation`] is what was said, kept
//! line by line in a [`ConversationStore`]; `compaction` shortens it before the model's limit.
//!
//! **Invariant:** a conversation that is sent has a result for each call, also after a crash.

mod compaction;
mod conversation;
mod engine;
mod own_tools;
mod parts;
mod ranking;
mod talk;
mod toolbox;
#[cfg(test)]
mod tests;

pub use conversation::{Conversation, ConversationStore};
pub use engine::{CallReport, Chat, ChatLimits, Outcome, TurnEvent, Watch};
pub use parts::{MAX_INLINE, inlined, of_prompt, of_resource, of_tool, summary};
pub use ranking::{ModelRanking, Ranker};
pub use talk::{Talk, TalkParts};
pub use toolbox::{HubToolbox, Offer, ToolAnswer, Toolbox};

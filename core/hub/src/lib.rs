//! The hub: every call to a server runs through this crate.
//!
//! A front builds a [`Call`] and passes it to [`Hub::call`]; no other code in the workspace can
//! send a call to a server. Read the modules in this order:
//!
//! - [`call`]: the request, the answer and the session; [`flow`]: an answer that is still arriving.
//! - [`ports`]: the traits that connect the pipeline to the outside.
//! - [`pipeline`]: the steps of a call, one file each; [`entry`]: the audit entry of a call.
//! - [`catalog`]: the tools, resources and prompts of all servers.
//! - [`approvals`]: the operator's answers to `ask`, and how long they hold.
//! - [`requester`]: the other side of a front; [`back_channel`]: the way from a server back to it.
//! - [`trace`]: tracing of calls.
//! - [`life`]: starting and stopping servers; [`rates`]: limits on calls over time.
//! - [`search`] ranks tools; [`own_tools`]: the tools by which clients find others.
//! - [`pins`]: the approved definitions of tools.
//! - `taint`: the answers that a conversation has received, for rules about flows.
//! - [`spills`]: long answers, kept and read in pages.
//! - [`explain`] and [`replay`]: explain the decision about a call, or repeat it for past calls.
//! - `hub`: the type that ties these together.
//!
//! **Invariant:** this crate contains no transport, terminal, file format or clock. Those are in
//! the crates that implement [`ports`].

pub mod call;
pub mod flow;
pub mod ports;
pub mod pipeline;
pub mod entry;
pub mod catalog;
pub mod approvals;
pub mod back_channel;
pub mod requester;
pub mod absent;
pub mod life;
pub mod trace;
pub mod explain;
pub mod replay;
pub mod rates;
pub mod pins;
pub mod search;
pub mod own_tools;
pub mod spills;
mod caller_lists;
mod hub;
mod taint;
mod builder;
mod servers;

pub use absent::Absent;
pub use approvals::Approvals;
pub use back_channel::BackChannel;
pub use builder::HubBuilder;
pub use call::{Answer, Call, Part, Session};
pub use entry::{Entry, Ground, Outcome};
pub use explain::{DescribedCall, EntryPoint, Explanation};
pub use flow::{Begun, Flow, Source};
pub use hub::{Check, Hub, Keep, Limits};
pub use pins::{NewTools, PinRules, Pins, Review, Standing};
pub use pipeline::{
    Admission, ApprovalFrom, Attempt, Continuation, Delivery, ExtensionMethod,
    ExtensionNotification, Message, OpenAttempt, OpenTask, Outgoing, Screened, Shape, SideOp,
    Streaming, System, SystemMessage, TaskHandle, TaskOp, TaskRequest, TaskSubscription, Ticket,
};
pub use rates::Rates;
pub use requester::{CallGroup, ClientId, ClientIdentity, PersonId, Requester, Unattended};
pub use servers::{Freshness, Retired, Vitals};
pub use spills::Spills;
pub use taint::ReadSources;

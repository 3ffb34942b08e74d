//! The road every call takes.
//!
//! A front builds a [`Call`] and hands it to [`Hub::call`]; nothing else in the workspace can
//! reach a server. Read in this order: [`call`] is what comes in and goes out, [`flow`] what is
//! still coming, [`ports`] are the
//! places where the road touches the world, [`pipeline`] is the road, one file a step, [`entry`]
//! is what is written down about a call, [`catalog`] what there is to call, [`approvals`] who may
//! say yes and for how long, [`elicit`] what a server may ask back, [`trace`] who may watch,
//! [`life`] when servers come and go, [`rates`] how many calls there may be, [`pins`] which
//! definitions of tools were approved, [`told`] and [`replay`] what would be decided, and [`hub`]
//! ties them together.
//!
//! **Invariant:** this crate knows no transport, no terminal, no file format and no clock. Those
//! live in the crates that implement [`ports`].

pub mod call;
pub mod flow;
pub mod ports;
pub mod pipeline;
pub mod entry;
pub mod catalog;
pub mod approvals;
pub mod elicit;
pub mod absent;
pub mod life;
pub mod trace;
pub mod told;
pub mod replay;
pub mod rates;
pub mod pins;
pub mod hub;
mod builder;
mod servers;

pub use absent::Absent;
pub use approvals::Approvals;
pub use builder::HubBuilder;
pub use call::{Answer, Call, Part, Session};
pub use entry::{Entry, Ground, Outcome};
pub use flow::{Begun, Flow, Source};
pub use hub::{Check, Hub, Keep, Limits};
pub use pins::{NewTools, PinRules, Pins, Review, Standing};
pub use pipeline::{
    Admission, Asks, Attempt, Delivery, Flowing, Message, Outgoing, Screened, Shape, SideOp,
    System, SystemMessage, TaskHandle, TaskOp, TaskRequest, Ticket,
};
pub use rates::{Rate, Rates};
pub use servers::{Freshness, Retired, Vitals};
pub use told::{Door, Explained, Told};

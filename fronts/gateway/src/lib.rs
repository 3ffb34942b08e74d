//! The gateway: all servers behind one endpoint, for clients of every revision of the protocol.
//!
//! Read in this order: [`revision`] and [`client`] are who is on the other side, [`exchange`] is
//! one request and what comes back (`telling` is how more than the answer comes out), [`gateway`] takes requests and hands each to its method:
//! `hello` (who we are, with `able`: what can be done), `lists` (what there is), `call` (the road),
//! `errand` (completion, log levels), `task` with `tasks` and `follow` (results that are fetched later) and
//! `listen` (changes); `renew` puts another hub behind it, `ending` is its end. `operator` is the client as the road sees
//! it (`hearing`: what it wants to hear), `sign` says which server asks it something, `approve` how it is asked whether a call may run,
//! `park` keeps calls whose client has to come back with an answer, `seal` protects what such a
//! client carries, and `fault` says how things fail. The faces carry messages: [`stdio`] and
//! [`http`].
//!
//! **Invariant:** a face knows bytes and connections and no method; a method knows no face.

pub mod revision;
mod classes;
pub mod client;
mod telling;
pub mod exchange;
pub mod gateway;
mod fault;
mod batch;
mod seal;
mod names;
mod shares;
mod conversations;
mod tasks;
mod able;
mod park;
mod approve;
mod hearing;
mod operator;
mod sign;
mod identity;
mod hello;
mod page;
mod built;
mod lists;
mod changes;
mod coming;
mod call;
mod delivering;
mod errand;
mod task;
mod follow;
mod watch;
mod listen;
mod unasked;
mod renew;
mod ending;
mod metrics;
mod vitals;
pub mod http;
pub mod stdio;

pub use client::{Client, Party, View};
pub use delivering::{Cut, Delivering};
pub use exchange::{Answer, Exchange, Next, Out, Partly};
pub use gateway::Gateway;
pub use metrics::Readings;
pub use revision::Revision;
pub use seal::NoRandomness;

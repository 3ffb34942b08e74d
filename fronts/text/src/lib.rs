//! Output and input for people, shared by all fronts that people use.
//!
//! `clean` lays out cleaned text from servers; `answer`, `table` and `diagnose` lay out answers,
//! lists and configuration errors; `confirm`, `form` and `panel` ask questions; `arguments` parses
//! arguments from words, `message` what is typed to a model; `gather` turns it into messages;
//! `conversation` is what a front needs for a conversation; `screen` measures the terminal.
//!
//! **Invariant:** text from a server passes through `capstan_safety::clean` before a person sees
//! it.

pub mod clean;
pub mod screen;
pub mod table;
pub mod answer;
pub mod diagnose;
pub mod message;
pub mod gather;
pub mod conversation;
pub mod panel;
pub mod form;
pub mod confirm;
pub mod arguments;

//! The command line from outside: the real binary, real servers, one file a topic.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

mod stage;
mod spills;
mod add;
mod added;
mod relative_paths;
mod edit;
mod edited;
mod call;
mod names;
mod errors;
mod questions;
mod record;
mod registry;
mod permissions;
mod pins;
mod scan;
mod broken_folders;
mod first_hour;
mod surroundings;
mod list;
mod states;
mod saved_lists;
mod search;
mod patience;
mod trust;
mod config;
mod dialects;
mod clients;
mod adopt;
mod adopt_undo;
mod sandbox;
mod secrets;
mod secret_store;
mod redaction;
mod logs;
mod packages;
mod programs;
mod openapi;
mod overrides;
mod audit;
mod doctor;
mod engines;
mod why;
mod policy;
mod classify;
mod acl_check;
mod shell;
mod signals;

//! What the command line needs to work in a gateway that runs.

use std::path::PathBuf;
use std::sync::Arc;

use capstan_app::{AppError, Selection, Setup};
use capstan_hub::Hub;
use capstan_hub::ports::BoxFuture;
use capstan_model::ServerName;

use crate::exit::Exit;
use crate::far::{Near, Order};

/// The gateways of this user that run on this machine.
pub trait Attach: Send + Sync {
    /// The folder that the command was typed in.
    fn here(&self) -> PathBuf;

    /// Runs a command in the gateway of this process id, or in the only one that runs.
    fn run_in<'a>(
        &'a self,
        process: Option<u32>,
        order: Order,
        selection: &'a Selection,
        near: &'a Near,
    ) -> BoxFuture<'a, Result<Exit, AppError>>;

    /// Runs a command in the only gateway that has the very configuration that these options mean;
    /// `None` when there is none and nothing was run.
    fn run_in_like<'a>(
        &'a self,
        order: Order,
        selection: &'a Selection,
        near: &'a Near,
    ) -> BoxFuture<'a, Option<Result<Exit, AppError>>>;
}

/// The gateway that a command runs in.
pub trait Inside: Send + Sync {
    /// What is in force there.
    fn setup(&self) -> Setup;

    /// What stands behind it.
    fn hub(&self) -> Arc<Hub>;

    /// Adds a server until the gateway ends; `text` is its entry, as a file would have it.
    fn add<'a>(
        &'a self,
        name: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<ServerName, AppError>>;

    /// Takes a server away that was added so: the name it was given.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, AppError>>;

    /// Has the configuration read again: whether anything in it has changed.
    fn reload(&self) -> BoxFuture<'_, Result<bool, AppError>>;

    /// Why what the files say is not in force.
    fn trouble(&self) -> Option<String>;

    /// Keys that have changed since it was started and count only when it is started again.
    fn needs_restart(&self) -> Vec<&'static str>;
}

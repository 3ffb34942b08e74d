//! Reads the environment of the program.
//!
//! Only this file reads environment variables; the OpenTelemetry SDK reads its own (`OTEL_…`).

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use capstan_app::Environment;
use etcetera::{BaseStrategy, choose_base_strategy};

use crate::files::LocalFiles;

/// Reads the variables and folders.
pub(crate) fn read() -> anyhow::Result<Environment> {
    let current_folder = std::env::current_dir().context("the current folder does not exist")?;
    // A configuration cannot refer to names or values that are not UTF-8.
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let base = choose_base_strategy().context("HOME is not set")?;
    anyhow::ensure!(
        base.home_dir().is_absolute(),
        "HOME is `{}`, which is not an absolute path",
        base.home_dir().display()
    );
    let own = |folder: PathBuf| folder.join("capstan");
    Ok(Environment {
        variables: std::env::vars_os().filter_map(text).collect(),
        current_folder,
        home: base.home_dir().to_owned(),
        shared_config: base.config_dir(),
        config: own(base.config_dir()),
        state: own(base.state_dir().unwrap_or_else(|| base.data_dir())),
        cache: own(base.cache_dir()),
        data: own(base.data_dir()),
        program: std::env::current_exe().map_err(|error| error.to_string()),
        files: Arc::new(LocalFiles),
    })
}

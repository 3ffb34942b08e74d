//! New tokens for callers, and the audit log that commands about them write to.

use std::sync::Arc;

use capstan_app::{AppError, AuditWriter, Environment, ErrorKind, MadeToken, Setup, TokenSource};
use capstan_auth::{NewToken, new_token};
use capstan_hub::Entry;
use capstan_hub::ports::AuditLog as _;

/// Makes tokens of random bytes of the system.
pub(crate) struct RandomTokens;

/// Writes to the audit logs of this machine.
pub(crate) struct AuditFileWriter(pub(crate) Arc<Environment>);

// === impl RandomTokens ===

impl TokenSource for RandomTokens {
    fn make(&self) -> Result<MadeToken, AppError> {
        let made = new_token(getrandom::fill);
        let NewToken { token, digest, id } = made.map_err(|error| {
            AppError::internal(format!("the system has no random numbers: {error}"))
        })?;
        Ok(MadeToken { token, digest, id })
    }
}

// === impl AuditFileWriter ===

impl AuditWriter for AuditFileWriter {
    fn write(&self, setup: &Setup, entry: Entry) -> Result<(), AppError> {
        let config = &setup.loaded.config;
        if !config.audit.enabled {
            return Ok(());
        }
        let log = crate::audit::open(&self.0, config);
        let log = log.map_err(|error| AppError::caused(ErrorKind::Internal, &error))?;
        log.record(entry);
        Ok(())
    }
}

//! The accounts of the authorization server: users with a password, and clients that they let in.

use std::sync::Arc;

use capstan_hub::ports::{AuthorizationStore, Clock, StoreError, StoredClient, StoredUser};
use capstan_model::Secret;

use crate::{AppError, ErrorKind};

/// Most users and clients that are listed.
const MAX_LISTED: u32 = 10_000;

/// Longest name of a user, in characters.
const MAX_NAME: usize = 64;

/// Subjects that the audit log uses for others.
const RESERVED: [&str; 2] = capstan_config::RESERVED_SUBJECTS;

/// The port that hashes passwords.
pub trait PasswordHash: Send + Sync {
    /// Hashes a password. This takes a while.
    ///
    /// # Errors
    /// If the password is not acceptable; the text has the reason.
    fn hash(&self, password: &Secret<String>) -> Result<Secret<String>, String>;
}

/// Manages users and clients.
pub struct Accounts {
    /// The state of the authorization server.
    pub store: Arc<dyn AuthorizationStore>,
    /// Hashes passwords.
    pub passwords: Arc<dyn PasswordHash>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

// === impl Accounts ===

impl Accounts {
    /// Adds a user.
    ///
    /// # Errors
    /// If the name or password cannot be used, or the name is taken.
    pub async fn add_user(
        &self,
        name: &str,
        roles: Vec<String>,
        password: &Secret<String>,
    ) -> Result<(), AppError> {
        check_name(name)?;
        let is_empty = |role: &String| role.trim().is_empty() || role.contains(char::is_control);
        if roles.iter().any(is_empty) {
            return Err(AppError::new(ErrorKind::Usage, "a role is empty"));
        }
        let user = StoredUser {
            name: name.to_owned(),
            password: self.hash(password)?,
            roles,
            created_at: self.clock.now(),
        };
        if self.store.add_user(&user).await.map_err(|error| failed(&error))? {
            return Ok(());
        }
        let hint = format!("`capstan user password {name}` changes the password");
        Err(AppError::new(ErrorKind::Usage, format!("there is a user `{name}` already")).hint(hint))
    }

    /// Returns the users by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn users(&self) -> Result<Vec<StoredUser>, AppError> {
        self.store.users(MAX_LISTED).await.map_err(|error| failed(&error))
    }

    /// Replaces a password, and ends the logins of the user. Returns their number.
    ///
    /// # Errors
    /// If there is no such user or the password cannot be used.
    pub async fn set_password(
        &self,
        name: &str,
        password: &Secret<String>,
    ) -> Result<u64, AppError> {
        let password = self.hash(password)?;
        let changed = self.store.set_password(name, &password).await;
        if !changed.map_err(|error| failed(&error))? {
            return Err(unknown("user", name, "`capstan user list` lists them"));
        }
        self.store.revoke_subject(name).await.map_err(|error| failed(&error))
    }

    /// Removes a user, and ends the logins of the user. Returns their number.
    ///
    /// # Errors
    /// If there is no such user.
    pub async fn remove_user(&self, name: &str) -> Result<u64, AppError> {
        if !self.store.remove_user(name).await.map_err(|error| failed(&error))? {
            return Err(unknown("user", name, "`capstan user list` lists them"));
        }
        self.store.revoke_subject(name).await.map_err(|error| failed(&error))
    }

    /// Returns the clients that may ask for tokens.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn clients(&self) -> Result<Vec<StoredClient>, AppError> {
        let listed = self.store.clients(self.clock.now(), MAX_LISTED).await;
        listed.map_err(|error| failed(&error))
    }

    /// Removes a client with all of its logins.
    ///
    /// # Errors
    /// If there is no such client.
    pub async fn revoke_client(&self, id: &str) -> Result<(), AppError> {
        if self.store.remove_client(id).await.map_err(|error| failed(&error))? {
            return Ok(());
        }
        Err(unknown("client", id, "`capstan auth clients list` lists them"))
    }

    fn hash(&self, password: &Secret<String>) -> Result<Secret<String>, AppError> {
        let hash = self.passwords.hash(password);
        hash.map_err(|reason| AppError::new(ErrorKind::Usage, reason))
    }
}

fn check_name(name: &str) -> Result<(), AppError> {
    let fits = |c: char| c.is_alphanumeric() || "-_.@+".contains(c);
    let is_name = !name.is_empty() && name.chars().count() <= MAX_NAME && name.chars().all(fits);
    if !is_name {
        let hint = "use letters, digits and `-_.@+`, at most 64 characters";
        let message = "this name of a user cannot be used";
        return Err(AppError::new(ErrorKind::Usage, message).hint(hint));
    }
    if RESERVED.contains(&name) {
        let message = format!("the name `{name}` is reserved");
        return Err(AppError::new(ErrorKind::Usage, message).hint("choose another name"));
    }
    Ok(())
}

fn unknown(what: &str, name: &str, hint: &str) -> AppError {
    AppError::new(ErrorKind::NotFound, format!("there is no {what} `{name}`")).hint(hint)
}

fn failed(error: &StoreError) -> AppError {
    let message = match &error.cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    AppError::new(ErrorKind::Internal, message)
}
